/* A certificate is the same bytes on every machine, whatever its order of bytes and the size of its
 * size_t: what one writes, another reads. */
#include "unit.h"

#include "core/memory.h"
#include "verify/certificate.h"

#include <dcrf/dcrf.h>

#include <stdio.h>

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
    assert_int_equal(dcrf_identity_of_model(&content.identity, model, true, NULL), DCRF_OK);
    uint8_t *bytes;
    size_t count;
    assert_int_equal(dcrf_certificate_encode(&content, &bytes, &count, NULL), DCRF_OK);
    char text[2 * DCRF_SHA256_BYTES + 1];
    sha256_text(bytes, count, text);
    assert_string_equal(text, "7149e6514e6ea63f0f29c3c7fe8f422fa479c53b60791dd59bf058d1754a6602");

    struct dcrf_certificate_content read;
    assert_int_equal(dcrf_certificate_decode(&read, WIDTH, LABELS, bytes, count, NULL), DCRF_OK);
    assert_int_equal(dcrf_identity_compare(&read.identity, &content.identity, NULL), DCRF_OK);
    assert_true(read.energy == content.energy && read.lower_bound == content.lower_bound);
    assert_memory_equal(read.labels, labels, sizeof labels);
    assert_memory_equal(read.values, values, sizeof values);
    dcrf_certificate_clear(&read);
    dcrf_identity_clear(&content.identity);
    dcrf_release(bytes);
    dcrf_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_machine_writes_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
