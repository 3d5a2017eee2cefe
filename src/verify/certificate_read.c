/* Reading a certificate (the bytes: certificate.c). Nothing in them is trusted. */
#include "verify/certificate.h"

#include "core/error.h"

#include <float.h>
#include <string.h>

/* Reading past the end returns zeros and sets is_short; sizes beyond SIZE_MAX set
 * has_large_size. */
struct source {
    const uint8_t *bytes;
    size_t left;
    bool is_short;
    bool has_large_size;
    size_t points;             /* of all mixtures so far */
    dcrf_workspace *workspace; /* NULL: no time limit */
};

static const uint8_t *take(struct source *source, size_t count) {
    static const uint8_t zeros[DCRF_SHA256_BYTES];
    if (count > source->left) {
        source->is_short = true;
        source->left = 0;
        return zeros; /* no caller asks for more at once without checking first */
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

static uint64_t take_varint(struct source *source) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take_number(source, 1);
        value |= (byte & 127) << shift;
        if (byte < 128 && byte << shift >> shift == byte) /* no bits are lost */
            return value;
    }
    source->is_short = true; /* too long for a varint */
    return 0;
}

struct unpacking {
    struct source *source;
    uint64_t most; /* largest valid number */
    uint64_t previous, run;
};

/* The next number; one that is out of range sets is_short. */
static uint64_t unpack(struct unpacking *unpacking) {
    struct source *source = unpacking->source;
    if (unpacking->run > 0) {
        unpacking->run--;
        return unpacking->previous;
    }
    const uint64_t token = take_varint(source);
    if (token == 0) {
        unpacking->run = take_varint(source);
        return unpacking->previous;
    }
    const uint64_t size = token / 2 + token % 2;
    const uint64_t value =
        token % 2 ? unpacking->previous - size : unpacking->previous + size; /* may wrap around */
    source->is_short |= size > unpacking->most || value > unpacking->most;
    unpacking->previous = source->is_short ? 0 : value;
    return unpacking->previous;
}

/* Numbers of `width` bytes. Fails with `what` if one is out of range or they end too early. */
static dcrf_status take_packed(struct source *source, void *numbers, size_t width, size_t count,
                               uint64_t most, const char *what, dcrf_error *error) {
    if (source->workspace)
        TRY(dcrf_go_on(source->workspace, "reading a certificate", error));
    struct unpacking unpacking = {.source = source, .most = most};
    for (size_t k = 0; k < count; k++) {
        const uint64_t number = unpack(&unpacking);
        if (width == 1)
            ((uint8_t *)numbers)[k] = (uint8_t)number;
        else if (width == 2)
            ((uint16_t *)numbers)[k] = (uint16_t)number;
        else
            ((uint32_t *)numbers)[k] = (uint32_t)number;
    }
    /* A run that extends past the last number is invalid. */
    return source->is_short || unpacking.run > 0 ? broken(what, error) : DCRF_OK;
}

/* Memory is allocated for the sizes of the model; check here the sizes that could demand more. */
static bool are_sizes_possible(const struct dcrf_certificate_content *content,
                               const struct source *source) {
    const struct dcrf_identity *identity = &content->identity;
    return !source->has_large_size && identity->variables >= 1 && identity->labels >= 1 &&
           identity->kernel_count <= source->left / 80 && content->rounds <= DCRF_MOST_ROUNDS &&
           content->mixture_count <= DCRF_MOST_POINTS;
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
        memcpy(kernel->matrix, take(source, DCRF_SHA256_BYTES), DCRF_SHA256_BYTES);
        if (kernel->dimension > DCRF_MAX_FEATURES)
            return broken("a kernel has too many features", error);
        for (size_t i = 0; i < kernel->dimension; i++)
            kernel->factor[i] = take_double(source);
    }
    return DCRF_OK;
}

static dcrf_status take_cuts(struct dcrf_certificate_content *content, struct source *source,
                             dcrf_error *error) {
    const size_t labels = content->identity.labels;
    if (!content->has_cuts)
        return DCRF_OK;
    const size_t count = (size_t)take_number(source, 4);
    if (count > DCRF_MOST_CUTS || count > source->left / (8 + (labels + 7) / 8) ||
        content->rounds > 0)
        return broken("it has too many cuts, or rounds besides", error);
    content->cut_count = count;
    content->cut_lengths = dcrf_own(&content->owned, count, sizeof *content->cut_lengths);
    content->cut_sets = dcrf_own(&content->owned, count, labels);
    if (content->owned.is_short)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t c = 0; c < count; c++) {
        content->cut_lengths[c] = take_double(source);
        if (!(content->cut_lengths[c] >= 0 && content->cut_lengths[c] <= (double)FLT_MAX))
            return broken("the length of a cut is negative or not finite", error);
        for (size_t i = 0; i < labels; i += 8) {
            const uint64_t bits = take_number(source, 1);
            for (size_t k = i; k < labels && k < i + 8; k++)
                content->cut_sets[c * labels + k] = bits >> (k - i) & 1;
        }
    }
    return DCRF_OK;
}

/* Fill plane[label] for the next `count` labels; `plane` has `labels` entries. */
static dcrf_status take_planes(struct source *source, uint16_t *plane, size_t count, size_t labels,
                               dcrf_error *error) {
    for (size_t k = 1; k <= count; k++) {
        const size_t label = (size_t)take_number(source, 2);
        if (label >= labels || plane[label] != 0)
            return broken("a label is too large, or there twice", error);
        plane[label] = (uint16_t)k;
    }
    return DCRF_OK;
}

static dcrf_status take_values(struct dcrf_certificate_content *content, struct source *source,
                               dcrf_error *error) {
    const size_t n = content->identity.variables, labels = content->identity.labels;
    content->plane_count = take_size(source);
    if (source->has_large_size || content->plane_count > labels ||
        source->left / 3 < content->plane_count)
        return broken("it ends too early", error);
    content->plane = dcrf_own_zero(&content->owned, labels, sizeof *content->plane);
    content->values = dcrf_own(&content->owned, n, content->plane_count);
    if (content->owned.is_short)
        return dcrf_fail_memory(error, "a certificate");
    TRY(take_planes(source, content->plane, content->plane_count, labels, error));
    for (size_t k = 0; k < content->plane_count; k++)
        TRY(take_packed(source, content->values + k * n, 1, n, DCRF_VALUE_MOST,
                        "a value is too large, or it ends too early", error));
    return DCRF_OK;
}

/* One over a width must not overflow. False for NaN. */
static bool is_width(double epsilon) {
    return epsilon >= DBL_MIN && epsilon <= 1;
}

static dcrf_status take_arrays(struct dcrf_certificate_content *content, struct source *source,
                               dcrf_error *error) {
    const size_t n = content->identity.variables, labels = content->identity.labels;
    content->epsilon = dcrf_own(&content->owned, content->rounds, sizeof *content->epsilon);
    content->labels = dcrf_own(&content->owned, n, sizeof *content->labels);
    content->round = dcrf_own(&content->owned, n, sizeof *content->round);
    if (content->owned.is_short)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t r = 0; r < content->rounds; r++)
        if (!is_width(content->epsilon[r] = take_double(source)))
            return broken("a width is not between 0 and 1", error);
    TRY(take_packed(source, content->labels, 2, n, labels - 1, "a label is too large", error));
    TRY(take_packed(source, content->round, 2, n, content->rounds, "a round is too large", error));
    return take_values(content, source, error);
}

/* Require every round to decide something, since each costs a pass over all pairs. */
static dcrf_status check_rounds(const struct dcrf_certificate_content *content, dcrf_error *error) {
    DCRF_SCOPED uint8_t *is_used = dcrf_allocate_zero(content->rounds + 1, 1);
    bool are_used = true;
    if (!is_used)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t a = 0; a < content->identity.variables; a++)
        is_used[content->round[a]] = 1;
    for (size_t r = 1; r <= content->rounds; r++)
        are_used &= is_used[r];
    return are_used ? DCRF_OK : broken("a round is empty", error);
}

static dcrf_status take_point(struct dcrf_certificate_mixture *mixture,
                              struct dcrf_certificate_point *point, size_t labels,
                              struct source *source, dcrf_error *error) {
    const size_t size = mixture->size;
    point->weight = take_double(source);
    point->epsilon = take_double(source);
    point->nodes = (uint32_t)take_number(source, 4);
    point->levels = (uint32_t)take_number(source, 4);
    point->plane_count = (size_t)take_number(source, 4);
    if (!(point->weight >= 0 && point->weight <= 1) || !is_width(point->epsilon) ||
        point->nodes == 1 || point->nodes > DCRF_MAX_BINS || point->levels < 1 ||
        point->levels > DCRF_MOST_LEVELS || point->plane_count > labels ||
        source->left / 3 < point->plane_count)
        return broken("a number of a dual point is out of its range", error);
    point->plane = dcrf_own_zero(&mixture->owned, labels, sizeof *point->plane);
    point->values = dcrf_own(&mixture->owned, point->plane_count, size * sizeof *point->values);
    if (mixture->owned.is_short)
        return dcrf_fail_memory(error, "a certificate");
    TRY(take_planes(source, point->plane, point->plane_count, labels, error));
    for (size_t k = 0; k < point->plane_count; k++)
        TRY(take_packed(source, point->values + k * size, 4, size, point->levels,
                        "a value of a dual point is too large, or it ends too early", error));
    return DCRF_OK;
}

static dcrf_status take_mixture(struct dcrf_certificate_content *content, size_t index,
                                struct source *source, dcrf_error *error) {
    struct dcrf_certificate_mixture *mixture = &content->mixtures[index];
    const size_t n = content->identity.variables, labels = content->identity.labels;
    mixture->after = (size_t)take_number(source, 4);
    const size_t points = (size_t)take_number(source, 4);
    const bool has_shares = take_number(source, 4) != 0;
    for (size_t a = 0; a < n; a++)
        mixture->size += content->round[a] == 0 || content->round[a] > mixture->after;
    if (mixture->after > content->rounds || points < 1 ||
        (index > 0 && mixture->after < mixture[-1].after) || mixture->size == 0 ||
        (has_shares && (mixture->after > 0 || content->identity.clique_count == 0)))
        return broken("a mixture is out of its range", error);
    if (points + has_shares > DCRF_MOST_POINTS - source->points)
        return broken("it has too many dual points", error);
    source->points += points + has_shares;
    mixture->points = dcrf_own_zero(&mixture->owned, points, sizeof *mixture->points);
    if (!mixture->points)
        return dcrf_fail_memory(error, "a certificate");
    mixture->point_count = points;
    for (size_t k = 0; k < points; k++)
        TRY(take_point(mixture, &mixture->points[k], labels, source, error));
    if (!has_shares)
        return DCRF_OK;
    mixture->shares = dcrf_own(&mixture->owned, labels, mixture->size * sizeof *mixture->shares);
    if (!mixture->shares)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t i = 0; i < labels; i++)
        TRY(take_packed(source, mixture->shares + i * mixture->size, 4, mixture->size,
                        DCRF_MOST_LEVELS, "a share is too large, or it ends too early", error));
    return DCRF_OK;
}

static dcrf_status take_mixtures(struct dcrf_certificate_content *content, struct source *source,
                                 dcrf_error *error) {
    TRY(check_rounds(content, error));
    const size_t count = content->mixture_count;
    content->mixtures = dcrf_own_zero(&content->owned, count, sizeof *content->mixtures);
    if (!content->mixtures)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t k = 0; k < count; k++)
        TRY(take_mixture(content, k, source, error));
    return DCRF_OK;
}

static dcrf_status take_content(struct dcrf_certificate_content *content, size_t variables,
                                size_t labels, struct source *source, dcrf_error *error) {
    struct dcrf_identity *identity = &content->identity;
    const uint64_t version = take_number(source, 4);
    if (version != DCRF_CERTIFICATE_VERSION && version != DCRF_CERTIFICATE_VERSION_WITH_CUTS)
        return broken("its version is another one", error);
    content->has_cuts = version == DCRF_CERTIFICATE_VERSION_WITH_CUTS;
    const uint64_t is_exact = take_number(source, 4);
    identity->is_exact = is_exact == 1;
    identity->variables = take_size(source);
    identity->labels = take_size(source);
    identity->kernel_count = take_size(source);
    identity->clique_count = take_size(source);
    content->rounds = take_size(source);
    content->proven = take_size(source);
    content->mixture_count = take_size(source);
    content->energy = take_double(source);
    content->lower_bound = take_double(source);
    memcpy(identity->unary, take(source, DCRF_SHA256_BYTES), DCRF_SHA256_BYTES);
    memcpy(identity->cliques, take(source, DCRF_SHA256_BYTES), DCRF_SHA256_BYTES);
    if (source->is_short || is_exact > 1 || !are_sizes_possible(content, source)) {
        content->mixture_count = 0;
        return broken("its sizes do not fit its length", error);
    }
    TRY(dcrf_identity_compare_sizes(identity, variables, labels, error));
    TRY(take_kernels(identity, source, error));
    TRY(take_cuts(content, source, error));
    TRY(take_arrays(content, source, error));
    TRY(take_mixtures(content, source, error));
    return source->is_short || source->left > 0 ? broken("its length is wrong", error) : DCRF_OK;
}

dcrf_status dcrf_certificate_decode(struct dcrf_certificate_content *content, size_t variables,
                                    size_t labels, const uint8_t *bytes, size_t count,
                                    dcrf_workspace *workspace, dcrf_error *error) {
    uint8_t digest[DCRF_SHA256_BYTES];
    *content = (struct dcrf_certificate_content){0};
    if (count < DCRF_CERTIFICATE_MAGIC_BYTES + DCRF_SHA256_BYTES ||
        memcmp(bytes, DCRF_CERTIFICATE_MAGIC, DCRF_CERTIFICATE_MAGIC_BYTES) != 0)
        return broken("it does not begin like one", error);
    struct source source = {.bytes = bytes + DCRF_CERTIFICATE_MAGIC_BYTES,
                            .left = count - DCRF_CERTIFICATE_MAGIC_BYTES - DCRF_SHA256_BYTES,
                            .workspace = workspace};
    dcrf_certificate_hash(bytes, count - DCRF_SHA256_BYTES, digest);
    if (memcmp(digest, bytes + count - DCRF_SHA256_BYTES, DCRF_SHA256_BYTES) != 0)
        return broken("it was changed or cut off (its checksum is wrong)", error);
    const dcrf_status status = take_content(content, variables, labels, &source, error);
    if (status < 0)
        dcrf_certificate_clear(content);
    return status;
}
