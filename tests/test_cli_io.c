/* The command's writers against its readers, and outputs that appear together or not at all. */
#include "unit.h"

#include "io/npy.h"
#include "io/output.h"
#include "io/picture_formats.h"
#include "io/png_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- writers -------------------------------------------------------------------------------- */

static void assert_png_round_trip(const uint16_t *samples, size_t width, size_t height,
                                  size_t channels, size_t expected_depth) {
    cli_problem problem = {0, ""};
    char *file = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&file, &bytes);
    assert_non_null(stream);
    assert_true(png_write_samples(stream, "out", samples, width, height, channels, &problem));
    assert_int_equal(fclose(stream), 0);

    picture pixels;
    assert_true(png_decode((const uint8_t *)file, bytes, PICTURE_AS_IS, "in", &pixels, &problem));
    assert_int_equal(pixels.width, width);
    assert_int_equal(pixels.height, height);
    assert_int_equal(pixels.channels, channels);
    assert_int_equal(pixels.largest, expected_depth == 16 ? UINT16_MAX : UINT8_MAX);
    assert_memory_equal(pixels.samples, samples, width * height * channels * sizeof *samples);
    picture_free(&pixels);
    free(file);
}

static void test_png_round_trip(void **state) {
    (void)state;
    enum { WIDTH = 7, HEIGHT = 5, CHANNELS = 3 };
    uint16_t narrow[WIDTH * HEIGHT * CHANNELS], wide[WIDTH * HEIGHT * CHANNELS];
    for (size_t i = 0; i < WIDTH * HEIGHT * CHANNELS; i++) {
        narrow[i] = (uint16_t)(i * 37 % 256);
        wide[i] = (uint16_t)(i * 7919 + 3);
    }
    assert_png_round_trip(narrow, WIDTH, HEIGHT, 1, 8);
    assert_png_round_trip(narrow, WIDTH, HEIGHT, 3, 8);
    assert_png_round_trip(wide, WIDTH, HEIGHT, 1, 16);
    assert_png_round_trip(wide, WIDTH, HEIGHT, 3, 16);
    assert_png_round_trip(narrow, 1, 1, 1, 8);
    /* One sample of 256 is what needs 16 bits. */
    memset(narrow, 0, sizeof narrow);
    narrow[WIDTH * HEIGHT - 1] = 255;
    assert_png_round_trip(narrow, WIDTH, HEIGHT, 1, 8);
    narrow[WIDTH * HEIGHT - 1] = 256;
    assert_png_round_trip(narrow, WIDTH, HEIGHT, 1, 16);
}

static void test_npy_round_trip(void **state) {
    (void)state;
    const size_t shape[NPY_MAX_AXES] = {2, 1, 3, 4};
    for (size_t axes = 1; axes <= NPY_MAX_AXES; axes++) {
        cli_problem problem = {0, ""};
        float values[24], *read_back = NULL;
        char *file = NULL;
        size_t bytes = 0, count = 1;
        for (size_t axis = 0; axis < axes; axis++)
            count *= shape[axis];
        for (size_t i = 0; i < count; i++)
            values[i] = (float)i * 0.37f - 2;
        FILE *stream = open_memstream(&file, &bytes);
        assert_non_null(stream);
        npy_write_floats(stream, shape, axes, values);
        assert_int_equal(fclose(stream), 0);

        npy_array array;
        assert_true(npy_parse((const uint8_t *)file, bytes, "in", &array, &problem));
        assert_int_equal(array.axes, axes);
        assert_memory_equal(array.shape, shape, axes * sizeof *shape);
        assert_true(npy_to_floats(&array, "in", &read_back, &problem));
        assert_memory_equal(read_back, values, count * sizeof *values);
        free(read_back);
        free(file);
    }
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* A folder of its own, and two names in it. */
typedef struct output_folder {
    char path[64];
    char first[96];
    char second[96];
} output_folder;

static output_folder new_folder(void) {
    output_folder made;
    snprintf(made.path, sizeof made.path, "/tmp/dcrf-outputs.XXXXXX");
    assert_non_null(mkdtemp(made.path));
    snprintf(made.first, sizeof made.first, "%s/first", made.path);
    snprintf(made.second, sizeof made.second, "%s/second", made.path);
    return made;
}

static void assert_file_is(const char *path, const char *expected) {
    char text[32] = "";
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_int_equal(fread(text, 1, sizeof text - 1, stream), strlen(expected));
    assert_string_equal(text, expected);
    fclose(stream);
}

static void test_outputs_appear_together(void **state) {
    (void)state;
    const output_folder folder = new_folder();
    cli_problem problem = {0, ""};
    cli_outputs outputs = {.count = 0};
    FILE *first, *second;
    assert_true(output_check(folder.first, &problem));
    assert_true(output_begin(&outputs, folder.first, &first, &problem));
    assert_true(output_begin(&outputs, folder.second, &second, &problem));
    fputs("one", first);
    fputs("two", second);
    assert_int_not_equal(access(folder.first, F_OK), 0);
    assert_int_not_equal(access(folder.second, F_OK), 0);
    assert_true(outputs_commit(&outputs, &problem));
    assert_file_is(folder.first, "one");
    assert_file_is(folder.second, "two");
    outputs_discard(&outputs);
    assert_file_is(folder.first, "one");
    unlink(folder.first);
    unlink(folder.second);
    assert_int_equal(rmdir(folder.path), 0);
}

static void test_discarded_outputs_leave_nothing(void **state) {
    (void)state;
    const output_folder folder = new_folder();
    cli_problem problem = {0, ""};
    cli_outputs outputs = {.count = 0};
    FILE *stream;
    assert_true(output_begin(&outputs, folder.first, &stream, &problem));
    fputs("one", stream);
    /* The same file once more. */
    char again[128];
    snprintf(again, sizeof again, "%s", folder.first);
    assert_false(output_begin(&outputs, again, &stream, &problem));
    assert_int_equal(problem.exit_status, EXIT_STATUS_BAD_INPUT);
    assert_non_null(strstr(problem.text, "two outputs"));
    outputs_discard(&outputs);
    outputs_discard(&outputs);
    /* Only an empty folder can be removed. */
    assert_int_equal(rmdir(folder.path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_round_trip),
        cmocka_unit_test(test_npy_round_trip),
        cmocka_unit_test(test_outputs_appear_together),
        cmocka_unit_test(test_discarded_outputs_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
