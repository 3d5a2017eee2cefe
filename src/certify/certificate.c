/* The bytes of a certificate, little-endian (docs/certificate.md):
 *
 *   "DCRFCERT", u32 version, u32 exact?, u64 variables, u64 labels, u64 kernels, u64 cliques,
 *   u64 rounds, u64 proven, f64 energy, f64 bound, sha256 of the unaries, sha256 of the cliques,
 *   for every kernel  f64 weight, u32 normalization, u32 d, sha256 of the features, d x f64 factor,
 *   f64 epsilon of every round and of the rest,
 *   u16 label of every variable, u16 round of every variable,
 *   u64 count of labels with values, u16 each, then for each of them u8 of every variable,
 *   sha256 of all bytes before. */
#include "certify/certificate.h"

#include "certify/knowledge.h"
#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

static const char magic[8] = {'D', 'C', 'R', 'F', 'C', 'E', 'R', 'T'};
#define VERSION 1
#define MOST_ROUNDS 65535

void dcrf_certificate_clear(struct dcrf_certificate_content *content) {
    dcrf_identity_clear(&content->identity);
    dcrf_release(content->epsilon);
    dcrf_release(content->labels);
    dcrf_release(content->round);
    dcrf_release(content->plane);
    dcrf_release(content->values);
    *content = (struct dcrf_certificate_content){0};
}

/* ---- writing -------------------------------------------------------------------------------- */

/* With bytes = NULL it only counts. */
struct sink {
    uint8_t *bytes;
    size_t count;
    bool is_too_long; /* to be counted */
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

static void put_values(struct sink *sink, const struct dcrf_certificate_content *content) {
    const size_t n = content->identity.variables;
    put_number(sink, content->plane_count, 8);
    for (size_t k = 1; k <= content->plane_count; k++)
        for (size_t i = 0; i < content->identity.labels; i++)
            if (content->plane[i] == k)
                put_number(sink, i, 2);
    put(sink, content->values, content->plane_count * n);
}

static void put_content(struct sink *sink, const struct dcrf_certificate_content *content) {
    const struct dcrf_identity *identity = &content->identity;
    put(sink, magic, sizeof magic);
    put_number(sink, VERSION, 4);
    put_number(sink, identity->is_exact, 4);
    put_number(sink, identity->variables, 8);
    put_number(sink, identity->labels, 8);
    put_number(sink, identity->kernel_count, 8);
    put_number(sink, identity->clique_count, 8);
    put_number(sink, content->rounds, 8);
    put_number(sink, content->proven, 8);
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
        for (size_t i = 0; i < kernel->dimension; i++)
            put_double(sink, kernel->factor[i]);
    }
    for (size_t r = 0; r <= content->rounds; r++)
        put_double(sink, content->epsilon[r]);
    for (size_t a = 0; a < identity->variables; a++)
        put_number(sink, content->labels[a], 2);
    for (size_t a = 0; a < identity->variables; a++)
        put_number(sink, content->round[a], 2);
    put_values(sink, content);
}

static void hash_bytes(const uint8_t *bytes, size_t count, uint8_t *digest) {
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
    hash_bytes(*bytes, sink.count, *bytes + sink.count);
    *count = sink.count + DCRF_SHA256_BYTES;
    return DCRF_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Reading past the end gives zeros and is remembered, and so are sizes that this machine cannot
 * count to. */
struct source {
    const uint8_t *bytes;
    size_t left;
    bool is_short;
    bool has_large_size;
};

static const uint8_t *take(struct source *source, size_t count) {
    static const uint8_t zeros[DCRF_SHA256_BYTES];
    if (count > source->left) {
        source->is_short = true;
        source->left = 0;
        return zeros; /* no caller asks for more at a time without looking first */
    }
    source->bytes += count;
    source->left -= count;
    return source->bytes - count;
}

static uint64_t take_number(struct source *source, size_t width) {
    const uint8_t *bytes = take(source, width);
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static size_t take_size(struct source *source) {
    const uint64_t size = take_number(source, 8);
    source->has_large_size |= size > SIZE_MAX;
    return (size_t)size;
}

static double take_double(struct source *source) {
    const uint64_t bits = take_number(source, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static dcrf_status broken(const char *what, dcrf_error *error) {
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "this is no whole certificate: %s", what);
}

/* Sizes that the bytes that are left can hold, so that no number in a file asks for memory that its
 * size does not justify. */
static bool are_sizes_possible(const struct dcrf_identity *identity, size_t rounds,
                               const struct source *source) {
    return !source->has_large_size && identity->variables >= 1 &&
           identity->variables <= source->left / 4 && identity->labels >= 1 &&
           identity->labels <= DCRF_MAX_LABELS && identity->kernel_count <= source->left / 48 &&
           rounds <= MOST_ROUNDS && rounds <= source->left / 8;
}

static dcrf_status take_kernels(struct dcrf_identity *identity, struct source *source,
                                dcrf_error *error) {
    identity->kernels = dcrf_allocate_zero(identity->kernel_count, sizeof *identity->kernels);
    if (!identity->kernels)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t m = 0; m < identity->kernel_count; m++) {
        struct dcrf_identity_kernel *kernel = &identity->kernels[m];
        kernel->weight = take_double(source);
        kernel->normalization = (uint32_t)take_number(source, 4);
        kernel->dimension = (uint32_t)take_number(source, 4);
        memcpy(kernel->features, take(source, DCRF_SHA256_BYTES), DCRF_SHA256_BYTES);
        if (kernel->dimension > DCRF_MAX_FEATURES)
            return broken("a kernel has too many features", error);
        for (size_t i = 0; i < kernel->dimension; i++)
            kernel->factor[i] = take_double(source);
    }
    return DCRF_OK;
}

static dcrf_status take_values(struct dcrf_certificate_content *content, struct source *source,
                               dcrf_error *error) {
    const size_t n = content->identity.variables, labels = content->identity.labels;
    content->plane_count = take_size(source);
    if (source->has_large_size || content->plane_count > labels ||
        source->left / (n + 2) < content->plane_count)
        return broken("it ends too early", error);
    content->plane = dcrf_allocate_zero(labels, sizeof *content->plane);
    content->values = dcrf_allocate(n, content->plane_count);
    if (!content->plane || !content->values)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t k = 1; k <= content->plane_count; k++) {
        const size_t label = (size_t)take_number(source, 2);
        if (label >= labels || content->plane[label] != 0)
            return broken("a label is too large, or there twice", error);
        content->plane[label] = (uint16_t)k;
    }
    memcpy(content->values, take(source, content->plane_count * n), content->plane_count * n);
    for (size_t k = 0; k < content->plane_count * n; k++)
        if (content->values[k] > DCRF_VALUE_MOST)
            return broken("a value is too large", error);
    return DCRF_OK;
}

static dcrf_status take_arrays(struct dcrf_certificate_content *content, struct source *source,
                               dcrf_error *error) {
    const size_t n = content->identity.variables, labels = content->identity.labels;
    content->epsilon = dcrf_allocate(content->rounds + 1, sizeof *content->epsilon);
    content->labels = dcrf_allocate(n, sizeof *content->labels);
    content->round = dcrf_allocate(n, sizeof *content->round);
    if (!content->epsilon || !content->labels || !content->round)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t r = 0; r <= content->rounds; r++) {
        content->epsilon[r] = take_double(source);
        if (!(content->epsilon[r] > 0 && content->epsilon[r] <= 1))
            return broken("a width is not between 0 and 1", error);
    }
    for (size_t a = 0; a < n; a++)
        if ((content->labels[a] = (uint16_t)take_number(source, 2)) >= labels)
            return broken("a label is too large", error);
    for (size_t a = 0; a < n; a++)
        if ((content->round[a] = (uint16_t)take_number(source, 2)) > content->rounds)
            return broken("a round is too large", error);
    return take_values(content, source, error);
}

static dcrf_status take_content(struct dcrf_certificate_content *content, struct source *source,
                                dcrf_error *error) {
    struct dcrf_identity *identity = &content->identity;
    if (take_number(source, 4) != VERSION)
        return broken("its version is another one", error);
    identity->is_exact = take_number(source, 4) != 0;
    identity->variables = take_size(source);
    identity->labels = take_size(source);
    identity->kernel_count = take_size(source);
    identity->clique_count = take_size(source);
    content->rounds = take_size(source);
    content->proven = take_size(source);
    content->energy = take_double(source);
    content->lower_bound = take_double(source);
    memcpy(identity->unary, take(source, DCRF_SHA256_BYTES), DCRF_SHA256_BYTES);
    memcpy(identity->cliques, take(source, DCRF_SHA256_BYTES), DCRF_SHA256_BYTES);
    if (source->is_short || !are_sizes_possible(identity, content->rounds, source))
        return broken("its sizes do not fit its length", error);
    dcrf_status status = take_kernels(identity, source, error);
    if (status == DCRF_OK)
        status = take_arrays(content, source, error);
    if (status == DCRF_OK && (source->is_short || source->left > 0))
        return broken("its length is wrong", error);
    return status;
}

dcrf_status dcrf_certificate_decode(struct dcrf_certificate_content *content, const uint8_t *bytes,
                                    size_t count, dcrf_error *error) {
    uint8_t digest[DCRF_SHA256_BYTES];
    *content = (struct dcrf_certificate_content){0};
    if (count < sizeof magic + DCRF_SHA256_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return broken("it does not begin like one", error);
    struct source source = {.bytes = bytes + sizeof magic,
                            .left = count - sizeof magic - DCRF_SHA256_BYTES};
    hash_bytes(bytes, count - DCRF_SHA256_BYTES, digest);
    if (memcmp(digest, bytes + count - DCRF_SHA256_BYTES, DCRF_SHA256_BYTES) != 0)
        return broken("it was changed or cut off (its checksum is wrong)", error);
    const dcrf_status status = take_content(content, &source, error);
    if (status < 0)
        dcrf_certificate_clear(content);
    return status;
}
