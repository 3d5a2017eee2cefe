/* A certificate has the same bytes on every machine, whatever its byte order and the size of its
 * size_t, so that certificates are portable. */
#include "unit.h"

#include "core/memory.h"
#include "core/rng.h"
#include "verify/certificate.h"

#include <dcrf/dcrf.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 3, LABELS = 2 };

static dcrf_model *new_model(void) {
    const float unary[WIDTH][LABELS] = {{0.5f, 1}, {-2, 0.1f}, {3, 1e-3f}};
    const unsigned char grey[WIDTH] = {10, 20, 200};
    const size_t members[] = {0, 2}, offsets[] = {0, 2};
    const double costs[] = {0.75};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, 1);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_view image = dcrf_view_interleaved(grey, DCRF_U8, &grid, 1);
    const dcrf_kernel kernel = dcrf_kernel_bilateral(80, 13, image, 5);
    dcrf_model *model = NULL;
    dcrf_error error = {DCRF_OK, ""};
    if (dcrf_model_new(&model, &grid, LABELS, &error) < 0 ||
        dcrf_model_set_unary(model, &energies, &error) < 0 ||
        dcrf_model_add_kernel(model, &kernel, &error) < 0 ||
        dcrf_model_set_cliques(model, 1, offsets, members, costs, &error) < 0)
        fail_msg("%s", error.message);
    return model;
}

static void sha256_text(const uint8_t *bytes, size_t count, char text[2 * DCRF_SHA256_BYTES + 1]) {
    struct dcrf_sha256 hash;
    uint8_t digest[DCRF_SHA256_BYTES];
    dcrf_sha256_begin(&hash);
    dcrf_sha256_add(&hash, bytes, count);
    dcrf_sha256_end(&hash, digest);
    for (size_t i = 0; i < DCRF_SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* The hash was recorded on x86-64. */
static void every_machine_writes_the_same(void **state) {
    (void)state;
    dcrf_model *model = new_model();
    double epsilon[] = {0.25};
    uint16_t labels[WIDTH] = {0, 0, 1}, round[WIDTH] = {1, 1, 0}, plane[LABELS] = {0, 1};
    uint8_t values[WIDTH] = {1, 128, 200};
    struct dcrf_certificate_content content = {.energy = -1.5,
                                               .lower_bound = -1.625,
                                               .proven = 2,
                                               .rounds = 1,
                                               .epsilon = epsilon,
                                               .labels = labels,
                                               .round = round,
                                               .plane_count = 1,
                                               .plane = plane,
                                               .values = values};
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_identity_of_model(&content.identity, model, true, workspace, NULL),
                     DCRF_OK);
    dcrf_workspace_free(&workspace);
    uint8_t *bytes;
    size_t count;
    assert_int_equal(dcrf_certificate_encode(&content, &bytes, &count, NULL), DCRF_OK);
    char text[2 * DCRF_SHA256_BYTES + 1];
    sha256_text(bytes, count, text);
    assert_string_equal(text, "7149e6514e6ea63f0f29c3c7fe8f422fa479c53b60791dd59bf058d1754a6602");

    struct dcrf_certificate_content read;
    assert_int_equal(dcrf_certificate_decode(&read, WIDTH, LABELS, bytes, count, NULL, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_identity_compare(&read.identity, &content.identity, NULL), DCRF_OK);
    assert_true(read.energy == content.energy && read.lower_bound == content.lower_bound);
    assert_memory_equal(read.labels, labels, sizeof labels);
    assert_memory_equal(read.values, values, sizeof values);
    dcrf_certificate_clear(&read);
    dcrf_identity_clear(&content.identity);
    dcrf_release(bytes);
    dcrf_model_free(&model);
}

/* As docs/reference/certificate.md has it: for each clique f64 cost, u64 size, u64 members. */
static void cliques_are_hashed(void **state) {
    (void)state;
    dcrf_model *model = new_model();
    const size_t members[] = {2, 0, 1}, offsets[] = {0, 1, 3};
    const double costs[] = {0.5, 2};
    struct dcrf_identity identity;
    struct dcrf_sha256 hash;
    uint8_t digest[DCRF_SHA256_BYTES];
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_model_set_cliques(model, 2, offsets, members, costs, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_identity_of_model(&identity, model, true, workspace, NULL), DCRF_OK);
    dcrf_sha256_begin(&hash);
    for (size_t p = 0; p < 2; p++) {
        dcrf_sha256_add_f64(&hash, costs[p]);
        dcrf_sha256_add_u64(&hash, p + 1);
        for (size_t k = offsets[p]; k < offsets[p + 1]; k++)
            dcrf_sha256_add_u64(&hash, members[k]);
    }
    dcrf_sha256_end(&hash, digest);
    assert_memory_equal(identity.cliques, digest, sizeof digest);
    dcrf_identity_clear(&identity);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
}

/* ---- contents of all kinds ------------------------------------------------------------------ */

static size_t below(dcrf_rng *rng, size_t count) {
    return (size_t)(dcrf_rng_next(rng) % count);
}

static void draw_bytes(dcrf_rng *rng, uint8_t *bytes, size_t count) {
    for (size_t k = 0; k < count; k++)
        bytes[k] = (uint8_t)dcrf_rng_next(rng);
}

/* Runs of equal numbers, small steps and large ones. */
static size_t draw_number(dcrf_rng *rng, size_t before, size_t most) {
    const size_t kind = below(rng, 4);
    if (kind < 2)
        return before;
    return kind == 2 ? (before + 1) % (most + 1) : below(rng, most + 1);
}

/* Some labels get a plane, in any order; returns their number. */
static size_t draw_planes(dcrf_rng *rng, uint16_t *plane, size_t labels) {
    size_t count = 0;
    for (size_t k = 0; k < labels; k++) {
        const size_t label = below(rng, labels);
        if (plane[label] == 0)
            plane[label] = (uint16_t)++count;
    }
    return count;
}

static void draw_point(dcrf_rng *rng, struct dcrf_owned *owned,
                       struct dcrf_certificate_point *point, size_t size, size_t labels) {
    const uint32_t nodes[] = {0, 2, 14, DCRF_MAX_BINS};
    point->weight = dcrf_rng_uniform(rng);
    point->epsilon = below(rng, 4) ? dcrf_rng_uniform(rng) + 1e-9 : 1;
    point->nodes = nodes[below(rng, 4)];
    point->levels = below(rng, 4) ? (uint32_t)(1 + below(rng, 500)) : DCRF_MOST_LEVELS;
    point->plane = dcrf_own_zero(owned, labels, sizeof *point->plane);
    point->plane_count = draw_planes(rng, point->plane, labels);
    point->values = dcrf_own_zero(owned, point->plane_count, size * sizeof *point->values);
    for (size_t k = 0, before = 0; k < point->plane_count * size; k++)
        point->values[k] = (uint32_t)(before = draw_number(rng, before, point->levels));
}

static void draw_mixture(dcrf_rng *rng, const struct dcrf_certificate_content *content,
                         size_t after, struct dcrf_certificate_mixture *mixture) {
    const size_t n = content->identity.variables, labels = content->identity.labels;
    mixture->after = after;
    for (size_t a = 0; a < n; a++)
        mixture->size += content->round[a] == 0 || content->round[a] > after;
    mixture->point_count = 1 + below(rng, 3);
    mixture->points = dcrf_own_zero(&mixture->owned, mixture->point_count, sizeof *mixture->points);
    for (size_t k = 0; k < mixture->point_count; k++)
        draw_point(rng, &mixture->owned, &mixture->points[k], mixture->size, labels);
    if (after > 0 || content->identity.clique_count == 0)
        return;
    mixture->shares = dcrf_own_zero(&mixture->owned, labels, n * sizeof *mixture->shares);
    for (size_t k = 0, before = 0; k < labels * n; k++)
        mixture->shares[k] = (uint32_t)(before = draw_number(rng, before, DCRF_MOST_LEVELS));
}

static void draw_cuts(dcrf_rng *rng, struct dcrf_certificate_content *c) {
    const double lengths[] = {0, 0.5, (double)FLT_MIN, (double)FLT_MAX};
    c->has_cuts = true;
    c->cut_count = below(rng, 6);
    c->cut_lengths = dcrf_own_zero(&c->owned, c->cut_count, sizeof *c->cut_lengths);
    c->cut_sets = dcrf_own_zero(&c->owned, c->cut_count, c->identity.labels);
    for (size_t k = 0; k < c->cut_count; k++)
        c->cut_lengths[k] = lengths[below(rng, 4)];
    for (size_t k = 0; k < c->cut_count * c->identity.labels; k++)
        c->cut_sets[k] = (uint8_t)below(rng, 2);
}

static struct dcrf_certificate_content draw_content(uint64_t seed) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    const size_t n = 1 + below(&rng, below(&rng, 2) ? 44 : 4), labels = 1 + below(&rng, 12);
    struct dcrf_certificate_content c = {
        .identity = {below(&rng, 2), n, labels, below(&rng, 3), below(&rng, 2), {0}, {0}, NULL},
        .energy = dcrf_rng_uniform(&rng) - 0.5,
        .lower_bound = -dcrf_rng_uniform(&rng),
        .proven = below(&rng, 1000),
        .rounds = below(&rng, n < 4 ? n : 4),
        .mixture_count = below(&rng, 3)};
    draw_bytes(&rng, c.identity.unary, sizeof c.identity.unary);
    draw_bytes(&rng, c.identity.cliques, sizeof c.identity.cliques);
    c.identity.kernels = dcrf_allocate_zero(c.identity.kernel_count, sizeof *c.identity.kernels);
    for (size_t m = 0; m < c.identity.kernel_count; m++) {
        struct dcrf_identity_kernel *kernel = &c.identity.kernels[m];
        kernel->weight = dcrf_rng_uniform(&rng);
        kernel->normalization = (uint32_t)below(&rng, 2);
        kernel->dimension = (uint32_t)(1 + below(&rng, 5));
        draw_bytes(&rng, kernel->features, sizeof kernel->features);
        draw_bytes(&rng, kernel->matrix, sizeof kernel->matrix);
        for (size_t i = 0; i < kernel->dimension; i++)
            kernel->factor[i] = dcrf_rng_uniform(&rng);
    }
    c.epsilon = dcrf_own_zero(&c.owned, c.rounds, sizeof *c.epsilon);
    c.labels = dcrf_own_zero(&c.owned, n, sizeof *c.labels);
    c.round = dcrf_own_zero(&c.owned, n, sizeof *c.round);
    c.plane = dcrf_own_zero(&c.owned, labels, sizeof *c.plane);
    c.plane_count = draw_planes(&rng, c.plane, labels);
    c.values = dcrf_own_zero(&c.owned, n, c.plane_count);
    for (size_t r = 0; r < c.rounds; r++)
        c.epsilon[r] = r == 0 ? 1 : dcrf_rng_uniform(&rng) + 1e-9;
    for (size_t a = 0, label = 0; a < n; a++) {
        c.labels[a] = (uint16_t)(label = draw_number(&rng, label, labels - 1));
        /* Every round decides something, and something remains. */
        c.round[a] = (uint16_t)(a <= c.rounds ? a : below(&rng, c.rounds + 1));
    }
    for (size_t k = 0, before = 0; k < n * c.plane_count; k++)
        c.values[k] = (uint8_t)(before = draw_number(&rng, before, DCRF_VALUE_MOST));
    if (c.rounds == 0)
        draw_cuts(&rng, &c);
    c.mixtures = dcrf_own_zero(&c.owned, c.mixture_count, sizeof *c.mixtures);
    for (size_t k = 0; k < c.mixture_count; k++)
        draw_mixture(&rng, &c, k == 0 ? 0 : c.rounds, &c.mixtures[k]);
    return c;
}

static void compare_mixtures(const struct dcrf_certificate_mixture *one,
                             const struct dcrf_certificate_mixture *other, size_t labels) {
    assert_int_equal(one->after, other->after);
    assert_int_equal(one->size, other->size);
    assert_int_equal(one->point_count, other->point_count);
    for (size_t k = 0; k < one->point_count; k++) {
        const struct dcrf_certificate_point *p = &one->points[k], *q = &other->points[k];
        assert_true(p->weight == q->weight && p->epsilon == q->epsilon);
        assert_true(p->nodes == q->nodes && p->levels == q->levels);
        assert_int_equal(p->plane_count, q->plane_count);
        assert_memory_equal(p->plane, q->plane, labels * sizeof *p->plane);
        assert_memory_equal(p->values, q->values, p->plane_count * one->size * sizeof *p->values);
    }
    assert_int_equal(one->shares != NULL, other->shares != NULL);
    if (one->shares)
        assert_memory_equal(one->shares, other->shares, labels * one->size * sizeof *one->shares);
}

static void compare(const struct dcrf_certificate_content *c,
                    const struct dcrf_certificate_content *d) {
    const size_t n = c->identity.variables, labels = c->identity.labels;
    assert_int_equal(dcrf_identity_compare(&c->identity, &d->identity, NULL), DCRF_OK);
    assert_int_equal(c->identity.is_exact, d->identity.is_exact);
    assert_true(c->energy == d->energy && c->lower_bound == d->lower_bound);
    assert_true(c->proven == d->proven && c->rounds == d->rounds);
    assert_memory_equal(c->epsilon, d->epsilon, c->rounds * sizeof *c->epsilon);
    assert_memory_equal(c->labels, d->labels, n * sizeof *c->labels);
    assert_memory_equal(c->round, d->round, n * sizeof *c->round);
    assert_int_equal(c->plane_count, d->plane_count);
    assert_memory_equal(c->plane, d->plane, labels * sizeof *c->plane);
    assert_memory_equal(c->values, d->values, n * c->plane_count);
    assert_true(c->has_cuts == d->has_cuts && c->cut_count == d->cut_count);
    if (c->cut_count > 0) {
        assert_memory_equal(c->cut_lengths, d->cut_lengths, c->cut_count * sizeof *c->cut_lengths);
        assert_memory_equal(c->cut_sets, d->cut_sets, c->cut_count * labels);
    }
    assert_int_equal(c->mixture_count, d->mixture_count);
    for (size_t k = 0; k < c->mixture_count; k++)
        compare_mixtures(&c->mixtures[k], &d->mixtures[k], labels);
}

static void make_whole(uint8_t *bytes, size_t count) {
    struct dcrf_sha256 hash;
    dcrf_sha256_begin(&hash);
    dcrf_sha256_add(&hash, bytes, count - DCRF_SHA256_BYTES);
    dcrf_sha256_end(&hash, bytes + count - DCRF_SHA256_BYTES);
}

static bool is_read(const struct dcrf_certificate_content *of, const uint8_t *bytes, size_t count) {
    struct dcrf_certificate_content read;
    const dcrf_status status = dcrf_certificate_decode(
        &read, of->identity.variables, of->identity.labels, bytes, count, NULL, NULL);
    if (status == DCRF_OK)
        dcrf_certificate_clear(&read);
    return status == DCRF_OK;
}

/* What is written can be read; with bytes removed from or added to the end, it is refused even
 * though its checksum is right. */
static void what_is_written_is_read(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct dcrf_certificate_content content = draw_content(seed), read;
        uint8_t *bytes;
        size_t count;
        assert_int_equal(dcrf_certificate_encode(&content, &bytes, &count, NULL), DCRF_OK);
        assert_int_equal(dcrf_certificate_decode(&read, content.identity.variables,
                                                 content.identity.labels, bytes, count, NULL, NULL),
                         DCRF_OK);
        compare(&content, &read);
        dcrf_certificate_clear(&read);
        uint8_t *other = calloc(count + 9, 1);
        for (size_t size = DCRF_SHA256_BYTES; size < count + 9; size += size + 40 < count ? 2 : 1) {
            const size_t body = size - DCRF_SHA256_BYTES;
            memset(other, 0, count + 9);
            memcpy(other, bytes, body < count ? body : count - DCRF_SHA256_BYTES);
            make_whole(other, size);
            assert_int_equal(is_read(&content, other, size), size == count);
        }
        free(other);
        dcrf_release(bytes);
        dcrf_certificate_clear(&content);
    }
}

/* A packed number of more than 64 bits must be refused, not truncated. */
static void packed_numbers_fit_64_bits(void **state) {
    (void)state;
    struct dcrf_certificate_content content = draw_content(3); /* without cuts */
    size_t at = 8 + 2 * 4 + 7 * 8 + 2 * 8 + 2 * DCRF_SHA256_BYTES + 8 * content.rounds;
    uint8_t *bytes;
    size_t count;
    for (size_t m = 0; m < content.identity.kernel_count; m++)
        at += 16 + 2 * DCRF_SHA256_BYTES + 8 * content.identity.kernels[m].dimension;
    assert_int_equal(dcrf_certificate_encode(&content, &bytes, &count, NULL), DCRF_OK);
    assert_true(bytes[at] < 128); /* the first label */
    for (size_t last = 0; last < 4; last++) {
        uint8_t *longer = calloc(count + 9, 1);
        memcpy(longer, bytes, at + 1);
        longer[at] |= 128;
        memset(longer + at + 1, 128, 8);
        longer[at + 9] = (uint8_t)last;
        memcpy(longer + at + 10, bytes + at + 1, count - at - 1);
        make_whole(longer, count + 9);
        assert_int_equal(is_read(&content, longer, count + 9), last == 0);
        free(longer);
    }
    dcrf_release(bytes);
    dcrf_certificate_clear(&content);
}

/* Can a certificate with `rounds` rounds, each deciding one variable, and `mixtures` mixtures of
 * `points` points be read? All widths are `epsilon`. */
static bool is_read_with_width(size_t rounds, size_t mixtures, size_t points, double epsilon) {
    const size_t n = rounds + 1;
    struct dcrf_certificate_content c = {.identity = {true, n, 1, 0, 0, {0}, {0}, NULL},
                                         .rounds = rounds,
                                         .mixture_count = mixtures};
    uint8_t *bytes;
    size_t count;
    c.epsilon = dcrf_own_zero(&c.owned, rounds, sizeof *c.epsilon);
    c.labels = dcrf_own_zero(&c.owned, n, sizeof *c.labels);
    c.round = dcrf_own_zero(&c.owned, n, sizeof *c.round);
    c.plane = dcrf_own_zero(&c.owned, 1, sizeof *c.plane);
    c.mixtures = dcrf_own_zero(&c.owned, mixtures, sizeof *c.mixtures);
    for (size_t r = 0; r < rounds; r++)
        c.epsilon[r] = epsilon;
    for (size_t a = 0; a < n; a++)
        c.round[a] = (uint16_t)a;
    for (size_t k = 0; k < mixtures; k++) {
        struct dcrf_certificate_mixture *mixture = &c.mixtures[k];
        mixture->size = n;
        mixture->point_count = points;
        mixture->points = dcrf_own_zero(&mixture->owned, points, sizeof *mixture->points);
        for (size_t p = 0; p < points; p++) {
            mixture->points[p].epsilon = epsilon;
            mixture->points[p].levels = 1;
            mixture->points[p].plane = dcrf_own_zero(&mixture->owned, 1, sizeof *c.plane);
        }
    }
    assert_int_equal(dcrf_certificate_encode(&c, &bytes, &count, NULL), DCRF_OK);
    const bool answer = is_read(&c, bytes, count);
    dcrf_release(bytes);
    dcrf_certificate_clear(&c);
    return answer;
}

static bool is_read_with(size_t rounds, size_t mixtures, size_t points) {
    return is_read_with_width(rounds, mixtures, points, 0.25);
}

/* As in docs/reference/certificate.md. */
static void there_are_limits(void **state) {
    (void)state;
    assert_true(is_read_with(4096, 1, 1) && !is_read_with(4097, 1, 1));
    assert_true(is_read_with(1, 32, 1) && !is_read_with(1, 33, 1));
    assert_true(is_read_with(1, 1, 32) && !is_read_with(1, 1, 33) && !is_read_with(1, 1, 0));
    assert_true(is_read_with(1, 2, 16) && !is_read_with(1, 3, 11));
    const double widths[] = {1, 0x1p-1022, 0x1p-1023, 0, -1, NAN, 1 + 0x1p-52};
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
        for (size_t has_rounds = 0; has_rounds < 2; has_rounds++)
            assert_int_equal(is_read_with_width(has_rounds, !has_rounds, 1, widths[k]), k < 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_writes_the_same),
        cmocka_unit_test(cliques_are_hashed),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(packed_numbers_fit_64_bits),
        cmocka_unit_test(there_are_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
