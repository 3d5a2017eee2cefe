/* The command's writers against its readers, and outputs that appear all together or not at all. */
#include "unit.h"

#include "io/file.h"
#include "io/nifti.h"
#include "io/output.h"
#include "io/picture_formats.h"
#include "io/png_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- writers -------------------------------------------------------------------------------- */

static void assert_png_is_read(const uint16_t *samples, png_layout layout, size_t expected_depth) {
    cli_problem problem = {0, ""};
    char *file = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&file, &bytes);
    assert_non_null(stream);
    assert_true(png_write(stream, "out", samples, layout, &problem));
    assert_int_equal(fclose(stream), 0);

    picture pixels;
    assert_true(
        picture_decode((const uint8_t *)file, bytes, PICTURE_AS_IS, "in", &pixels, &problem));
    assert_int_equal(pixels.width, layout.width);
    assert_int_equal(pixels.height, layout.height);
    assert_int_equal(pixels.channels, layout.channels);
    assert_int_equal(pixels.largest, expected_depth == 16 ? UINT16_MAX : UINT8_MAX);
    assert_memory_equal(pixels.samples, samples,
                        layout.width * layout.height * layout.channels * sizeof *samples);
    picture_free(&pixels);
    free(file);
}

static void assert_png_round_trip(const uint16_t *samples, size_t width, size_t height,
                                  size_t channels, size_t expected_depth) {
    png_layout layout = {.width = width, .height = height, .channels = channels};
    assert_png_is_read(samples, layout, expected_depth);
    layout.is_fast = true;
    assert_png_is_read(samples, layout, expected_depth);
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
    /* A single sample of 256 requires 16 bits. */
    memset(narrow, 0, sizeof narrow);
    narrow[WIDTH * HEIGHT - 1] = 255;
    assert_png_round_trip(narrow, WIDTH, HEIGHT, 1, 8);
    narrow[WIDTH * HEIGHT - 1] = 256;
    assert_png_round_trip(narrow, WIDTH, HEIGHT, 1, 16);
}

/* A NIfTI-1 file of 3 x 2 x 2 float voxels of 0.5 x 0.5 x 2 mm, all zero. */
enum { VOXELS = 12, NIFTI_BYTES = 352 + VOXELS * 4 };

static void put_float(uint8_t *at, float value) {
    memcpy(at, &value, sizeof value);
}

static void make_nifti(uint8_t file[NIFTI_BYTES]) {
    const int32_t header_bytes = 348;
    const int16_t dim[] = {3, 3, 2, 2}, type[] = {16, 32};
    memset(file, 0, NIFTI_BYTES);
    memcpy(file, &header_bytes, sizeof header_bytes);
    memcpy(file + 40, dim, sizeof dim);
    memcpy(file + 70, type, sizeof type);
    for (size_t axis = 0; axis < 4; axis++)
        put_float(file + 76 + 4 * axis, axis == 3 ? 2.0f : 0.5f);
    put_float(file + 108, 352);
    memcpy(file + 344, "n+1", 4);
}

static void assert_labels_round_trip(const nifti_geometry *geometry, const uint16_t *labels,
                                     const char *name, size_t expected_item_bytes) {
    cli_problem problem = {0, ""};
    char *file = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&file, &bytes);
    assert_non_null(stream);
    assert_true(nifti_write_labels(stream, name, geometry, labels, &problem));
    assert_int_equal(fclose(stream), 0);
    nifti_volume volume;
    int32_t *numbers = NULL;
    assert_true(nifti_parse((const uint8_t *)file, bytes, name, &volume, &problem));
    assert_int_equal(volume.item_bytes, expected_item_bytes);
    assert_true(volume.spacing_mm[0] == 0.5 && volume.spacing_mm[2] == 2);
    assert_true(nifti_to_integers(&volume, name, &numbers, &problem));
    assert_int_equal(volume.count, VOXELS);
    for (size_t i = 0; i < VOXELS; i++)
        assert_int_equal(numbers[i], labels[i]);
    free(numbers);
    nifti_free(&volume);
    free(file);
}

static void test_nifti_label_round_trip(void **state) {
    (void)state;
    cli_problem problem = {0, ""};
    uint8_t file[NIFTI_BYTES];
    uint16_t labels[VOXELS];
    nifti_volume volume;
    make_nifti(file);
    assert_true(nifti_parse(file, sizeof file, "in.nii", &volume, &problem));
    nifti_geometry *geometry = nifti_take_geometry(&volume);
    nifti_free(&volume);
    for (size_t i = 0; i < VOXELS; i++)
        labels[i] = (uint16_t)(i * 23);
    assert_labels_round_trip(geometry, labels, "out.nii", 1);
    assert_labels_round_trip(geometry, labels, "out.nii.gz", 1);
    labels[3] = 256;
    assert_labels_round_trip(geometry, labels, "out.nii", 2);
    assert_labels_round_trip(geometry, labels, "out.nii.gz", 2);
    nifti_geometry_free(&geometry);
    assert_true(nifti_is_name("a.nii") && nifti_is_name("b/a.nii.gz"));
    assert_false(nifti_is_name("a.nii.png") || nifti_is_name("nii") || nifti_is_name(".nii"));
}

/* ---- inputs --------------------------------------------------------------------------------- */

/* In a separate process: map a file, truncate it, read on; the exit status and output. */
static int run_with_cut_file(char *printed, size_t room) {
    enum { FILE_BYTES = 1 << 21 };
    int ends[2];
    char path[] = "/tmp/dcrf-mapped.XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(ftruncate(descriptor, FILE_BYTES), 0);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cli_problem problem = {0, ""};
        file_bytes bytes;
        dup2(ends[1], STDERR_FILENO);
        file_explain_cut();
        if (!file_map(path, &bytes, &problem) || !bytes.mapped || bytes.size != FILE_BYTES)
            _exit(90);
        if (((volatile const uint8_t *)bytes.data)[FILE_BYTES - 1] != 0)
            _exit(91);
        if (ftruncate(descriptor, 0) != 0)
            _exit(92);
        _exit(((volatile const uint8_t *)bytes.data)[FILE_BYTES - 1] == 0 ? 93 : 94);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[1]);
    const ssize_t got = read(ends[0], printed, room - 1);
    printed[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    close(descriptor);
    unlink(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_mapped_file_that_is_cut(void **state) {
    (void)state;
    char printed[256];
    assert_int_equal(run_with_cut_file(printed, sizeof printed), EXIT_STATUS_BAD_INPUT);
    assert_string_equal(printed, "dcrf: an input file was cut while it was read\n");
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* A separate folder, and two names in it. */
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
    /* The same name again. */
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
        cmocka_unit_test(test_nifti_label_round_trip),
        cmocka_unit_test(test_a_mapped_file_that_is_cut),
        cmocka_unit_test(test_outputs_appear_together),
        cmocka_unit_test(test_discarded_outputs_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
