/* The bytes of a certificate, little-endian (docs/reference/certificate.md):
 *
 *   "DCRFCERT", u32 version, u32 exact?, u64 variables, u64 labels, u64 kernels, u64 cliques,
 *   u64 rounds, u64 proven, u64 mixtures, f64 energy, f64 bound, sha256 of the unaries, sha256 of
 *   the cliques,
 *   per kernel  f64 weight, u32 normalization, u32 d, sha256 of the features, sha256 of the
 *   matrix, d x f64 factor,
 *   (version 3: u32 cuts, per cut  f64 length, one bit per label, the lowest first, padded to
 *   whole bytes)
 *   f64 epsilon of every round,
 *   the labels, the rounds of the variables: packed,
 *   u64 count of labels with values, u16 each, then for each of them the values, packed,
 *   per mixture  u32 after, u32 points, u32 shares?, per point  f64 weight, f64
 *   epsilon, u32 nodes, u32 levels, u32 planes, u16 each, their values, packed; the shares of every
 *   label, packed,
 *   sha256 of all preceding bytes.
 *
 * Packed numbers are differences d from the previous number, stored as 2 d or -2 d - 1, seven bits
 * per byte, the lowest first, with the eighth bit set if more bytes follow. A difference of 0 is
 * followed by the number of further zeros in the run. */
#include "verify/certificate.h"

#include "core/error.h"

#include <string.h>

void dcrf_certificate_mixture_clear(struct dcrf_certificate_mixture *mixture) {
    dcrf_disown(&mixture->owned);
    *mixture = (struct dcrf_certificate_mixture){0};
}

void dcrf_certificate_clear(struct dcrf_certificate_content *content) {
    for (size_t k = 0; k < content->mixture_count && content->mixtures; k++)
        dcrf_certificate_mixture_clear(&content->mixtures[k]);
    dcrf_identity_clear(&content->identity);
    dcrf_disown(&content->owned);
    *content = (struct dcrf_certificate_content){0};
}

/* ---- writing -------------------------------------------------------------------------------- */

/* With bytes = NULL, only count. */
struct sink {
    uint8_t *bytes;
    size_t count;
    bool is_too_long; /* overflow of the count */
};

static void put(struct sink *sink, const void *bytes, size_t count) {
    sink->is_too_long |= count > SIZE_MAX - DCRF_SHA256_BYTES - sink->count;
    if (sink->is_too_long)
        return;
    if (sink->bytes)
        memcpy(sink->bytes + sink->count, bytes, count);
    sink->count += count;
}

static void put_number(struct sink *sink, uint64_t value, size_t width) {
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    put(sink, bytes, width);
}

static void put_double(struct sink *sink, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(sink, bits, 8);
}

static void put_varint(struct sink *sink, uint64_t value) {
    for (; value >= 128; value >>= 7)
        put_number(sink, (value & 127) | 128, 1);
    put_number(sink, value, 1);
}

struct packing {
    struct sink *sink;
    int64_t previous;
    uint64_t run; /* of equal numbers not yet written */
};

static void end_run(struct packing *packing) {
    if (packing->run > 0) {
        put_number(packing->sink, 0, 1);
        put_varint(packing->sink, packing->run - 1);
    }
    packing->run = 0;
}

static void pack(struct packing *packing, int64_t value) {
    const int64_t difference = value - packing->previous;
    packing->previous = value;
    packing->run += difference == 0;
    if (difference == 0)
        return;
    end_run(packing);
    put_varint(packing->sink,
               difference > 0 ? 2 * (uint64_t)difference : 2 * (uint64_t)-difference - 1);
}

/* Numbers of `width` bytes. */
static void put_packed(struct sink *sink, const void *numbers, size_t width, size_t count) {
    struct packing packing = {.sink = sink};
    for (size_t k = 0; k < count; k++)
        pack(&packing, width == 1   ? ((const uint8_t *)numbers)[k]
                       : width == 2 ? ((const uint16_t *)numbers)[k]
                                    : ((const uint32_t *)numbers)[k]);
    end_run(&packing);
}

/* The labels of the planes, in the order of the planes. */
static void put_planes(struct sink *sink, const uint16_t *plane, size_t count, size_t labels) {
    for (size_t k = 1; k <= count; k++)
        for (size_t i = 0; i < labels; i++)
            if (plane[i] == k)
                put_number(sink, i, 2);
}

static void put_values(struct sink *sink, const struct dcrf_certificate_content *content) {
    const size_t n = content->identity.variables;
    put_number(sink, content->plane_count, 8);
    put_planes(sink, content->plane, content->plane_count, content->identity.labels);
    for (size_t k = 0; k < content->plane_count; k++)
        put_packed(sink, content->values + k * n, 1, n);
}

static void put_mixture(struct sink *sink, const struct dcrf_certificate_mixture *mixture,
                        size_t labels) {
    put_number(sink, mixture->after, 4);
    put_number(sink, mixture->point_count, 4);
    put_number(sink, mixture->shares != NULL, 4);
    for (size_t k = 0; k < mixture->point_count; k++) {
        const struct dcrf_certificate_point *point = &mixture->points[k];
        put_double(sink, point->weight);
        put_double(sink, point->epsilon);
        put_number(sink, point->nodes, 4);
        put_number(sink, point->levels, 4);
        put_number(sink, point->plane_count, 4);
        put_planes(sink, point->plane, point->plane_count, labels);
        for (size_t i = 0; i < point->plane_count; i++)
            put_packed(sink, point->values + i * mixture->size, 4, mixture->size);
    }
    for (size_t i = 0; i < labels && mixture->shares; i++)
        put_packed(sink, mixture->shares + i * mixture->size, 4, mixture->size);
}

static void put_cuts(struct sink *sink, const struct dcrf_certificate_content *content) {
    const size_t labels = content->identity.labels;
    if (!content->has_cuts)
        return;
    put_number(sink, content->cut_count, 4);
    for (size_t c = 0; c < content->cut_count; c++) {
        put_double(sink, content->cut_lengths[c]);
        for (size_t i = 0; i < labels; i += 8) {
            uint64_t bits = 0;
            for (size_t k = i; k < labels && k < i + 8; k++)
                bits |= (uint64_t)(content->cut_sets[c * labels + k] != 0) << (k - i);
            put_number(sink, bits, 1);
        }
    }
}

static void put_content(struct sink *sink, const struct dcrf_certificate_content *content) {
    const struct dcrf_identity *identity = &content->identity;
    put(sink, DCRF_CERTIFICATE_MAGIC, DCRF_CERTIFICATE_MAGIC_BYTES);
    put_number(
        sink, content->has_cuts ? DCRF_CERTIFICATE_VERSION_WITH_CUTS : DCRF_CERTIFICATE_VERSION, 4);
    put_number(sink, identity->is_exact, 4);
    put_number(sink, identity->variables, 8);
    put_number(sink, identity->labels, 8);
    put_number(sink, identity->kernel_count, 8);
    put_number(sink, identity->clique_count, 8);
    put_number(sink, content->rounds, 8);
    put_number(sink, content->proven, 8);
    put_number(sink, content->mixture_count, 8);
    put_double(sink, content->energy);
    put_double(sink, content->lower_bound);
    put(sink, identity->unary, DCRF_SHA256_BYTES);
    put(sink, identity->cliques, DCRF_SHA256_BYTES);
    for (size_t m = 0; m < identity->kernel_count; m++) {
        const struct dcrf_identity_kernel *kernel = &identity->kernels[m];
        put_double(sink, kernel->weight);
        put_number(sink, kernel->normalization, 4);
        put_number(sink, kernel->dimension, 4);
        put(sink, kernel->features, DCRF_SHA256_BYTES);
        put(sink, kernel->matrix, DCRF_SHA256_BYTES);
        for (size_t i = 0; i < kernel->dimension; i++)
            put_double(sink, kernel->factor[i]);
    }
    put_cuts(sink, content);
    for (size_t r = 0; r < content->rounds; r++)
        put_double(sink, content->epsilon[r]);
    put_packed(sink, content->labels, 2, identity->variables);
    put_packed(sink, content->round, 2, identity->variables);
    put_values(sink, content);
    for (size_t k = 0; k < content->mixture_count; k++)
        put_mixture(sink, &content->mixtures[k], identity->labels);
}

void dcrf_certificate_hash(const uint8_t *bytes, size_t count, uint8_t *digest) {
    struct dcrf_sha256 hash;
    dcrf_sha256_begin(&hash);
    dcrf_sha256_add(&hash, bytes, count);
    dcrf_sha256_end(&hash, digest);
}

dcrf_status dcrf_certificate_encode(const struct dcrf_certificate_content *content, uint8_t **bytes,
                                    size_t *count, dcrf_error *error) {
    struct sink sink = {0};
    put_content(&sink, content);
    *bytes = sink.is_too_long ? NULL : dcrf_allocate(sink.count + DCRF_SHA256_BYTES, 1);
    if (!*bytes)
        return dcrf_fail_memory(error, "a certificate");
    sink = (struct sink){.bytes = *bytes};
    put_content(&sink, content);
    dcrf_certificate_hash(*bytes, sink.count, *bytes + sink.count);
    *count = sink.count + DCRF_SHA256_BYTES;
    return DCRF_OK;
}
