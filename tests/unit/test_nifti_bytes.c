/* NIfTI volumes have the same bytes on every machine, whatever its byte order. The NIfTI library
 * and zlib are not available for most of these machines, so the functions that the writer needs are
 * reimplemented here in a few lines; every header field has a distinct number. */
#include "unit.h"

#include "io/gzip.h"
#include "io/nifti_geometry.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- headers with numbers everywhere -------------------------------------------------------- */

typedef struct field {
    size_t offset, bytes, count;
} field;

#define FIELD(header, name, bytes)                                                                 \
    { offsetof(header, name), bytes, sizeof(((header *)NULL)->name) / (bytes) }
#define FIRST(name, bytes) FIELD(nifti_1_header, name, bytes)
#define SECOND(name, bytes) FIELD(nifti_2_header, name, bytes)

static const field first_fields[] = {
    FIRST(sizeof_hdr, 4), FIRST(extents, 4),     FIRST(session_error, 2),  FIRST(dim, 2),
    FIRST(intent_p1, 4),  FIRST(intent_p2, 4),   FIRST(intent_p3, 4),      FIRST(intent_code, 2),
    FIRST(datatype, 2),   FIRST(bitpix, 2),      FIRST(slice_start, 2),    FIRST(pixdim, 4),
    FIRST(vox_offset, 4), FIRST(scl_slope, 4),   FIRST(scl_inter, 4),      FIRST(slice_end, 2),
    FIRST(cal_max, 4),    FIRST(cal_min, 4),     FIRST(slice_duration, 4), FIRST(toffset, 4),
    FIRST(glmax, 4),      FIRST(glmin, 4),       FIRST(qform_code, 2),     FIRST(sform_code, 2),
    FIRST(quatern_b, 4),  FIRST(quatern_c, 4),   FIRST(quatern_d, 4),      FIRST(qoffset_x, 4),
    FIRST(qoffset_y, 4),  FIRST(qoffset_z, 4),   FIRST(srow_x, 4),         FIRST(srow_y, 4),
    FIRST(srow_z, 4),     FIRST(data_type, 1),   FIRST(db_name, 1),        FIRST(regular, 1),
    FIRST(dim_info, 1),   FIRST(slice_code, 1),  FIRST(xyzt_units, 1),     FIRST(descrip, 1),
    FIRST(aux_file, 1),   FIRST(intent_name, 1), FIRST(magic, 1)};

static const field second_fields[] = {
    SECOND(sizeof_hdr, 4),  SECOND(magic, 1),       SECOND(datatype, 2),
    SECOND(bitpix, 2),      SECOND(dim, 8),         SECOND(intent_p1, 8),
    SECOND(intent_p2, 8),   SECOND(intent_p3, 8),   SECOND(pixdim, 8),
    SECOND(vox_offset, 8),  SECOND(scl_slope, 8),   SECOND(scl_inter, 8),
    SECOND(cal_max, 8),     SECOND(cal_min, 8),     SECOND(slice_duration, 8),
    SECOND(toffset, 8),     SECOND(slice_start, 8), SECOND(slice_end, 8),
    SECOND(descrip, 1),     SECOND(aux_file, 1),    SECOND(qform_code, 4),
    SECOND(sform_code, 4),  SECOND(quatern_b, 8),   SECOND(quatern_c, 8),
    SECOND(quatern_d, 8),   SECOND(qoffset_x, 8),   SECOND(qoffset_y, 8),
    SECOND(qoffset_z, 8),   SECOND(srow_x, 8),      SECOND(srow_y, 8),
    SECOND(srow_z, 8),      SECOND(slice_code, 4),  SECOND(xyzt_units, 4),
    SECOND(intent_code, 4), SECOND(intent_name, 1), SECOND(dim_info, 1),
    SECOND(unused_str, 1)};

enum {
    FIRST_FIELDS = sizeof first_fields / sizeof first_fields[0],
    SECOND_FIELDS = sizeof second_fields / sizeof second_fields[0]
};

/* Its bytes are 1, 2, 3, ... from the lowest on, plus the offset. */
static uint64_t number_of_field(size_t offset) {
    return UINT64_C(0x0807060504030201) + offset % 97 * UINT64_C(0x0101010101010101);
}

static void put_native(uint8_t *at, size_t bytes, uint64_t number) {
    const uint8_t one = (uint8_t)number;
    const uint16_t two = (uint16_t)number;
    const uint32_t four = (uint32_t)number;
    const void *from = bytes == 1   ? (const void *)&one
                       : bytes == 2 ? (const void *)&two
                       : bytes == 4 ? (const void *)&four
                                    : (const void *)&number;
    memcpy(at, from, bytes);
}

static void put_little(uint8_t *at, size_t bytes, uint64_t number) {
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(number >> (8 * i));
}

static void fill(void *header, const field *fields, size_t count,
                 void (*put)(uint8_t *at, size_t bytes, uint64_t number)) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < fields[i].count; j++) {
            const size_t at = fields[i].offset + j * fields[i].bytes;
            put((uint8_t *)header + at, fields[i].bytes, number_of_field(at));
        }
}

/* ---- what the writer calls ------------------------------------------------------------------ */

int nifti_convert_nim2n1hdr(const nifti_image *image, nifti_1_header *header) {
    (void)image;
    fill(header, first_fields, FIRST_FIELDS, put_native);
    return 0;
}

int nifti_convert_nim2n2hdr(const nifti_image *image, nifti_2_header *header) {
    (void)image;
    fill(header, second_fields, SECOND_FIELDS, put_native);
    return 0;
}

void nifti_datatype_sizes(int datatype, int *bytes, int *swapped) {
    *bytes = *swapped = datatype == DT_UINT8 ? 1 : datatype == DT_UINT16 ? 2 : 4;
}

bool gzip_write(FILE *stream, const char *file, const gzip_part *parts, size_t count,
                cli_problem *problem) {
    (void)file, (void)problem;
    for (size_t i = 0; i < count; i++)
        fwrite(parts[i].data, 1, parts[i].bytes, stream);
    return true;
}

/* ---- tests ---------------------------------------------------------------------------------- */

enum { VOXELS = 2, EXTENSION_BYTES = 4, FILE_BYTES_MAX = 1024 };

/* The expected file; returns the size of its header. */
static size_t put_expected_header(uint8_t *file, bool second) {
    memset(file, 0, FILE_BYTES_MAX);
    if (second) {
        fill(file, second_fields, SECOND_FIELDS, put_little);
        put_little(file + offsetof(nifti_2_header, vox_offset), 8, 544);
        return sizeof(nifti_2_header) + EXTENSION_BYTES;
    }
    fill(file, first_fields, FIRST_FIELDS, put_little);
    put_little(file + offsetof(nifti_1_header, vox_offset), 4, 0x43b00000); /* 352 as a float */
    return sizeof(nifti_1_header) + EXTENSION_BYTES;
}

typedef struct written {
    char *data;
    size_t bytes;
    FILE *stream;
} written;

static void assert_written(written *out, const uint8_t *expected, size_t bytes) {
    assert_int_equal(fclose(out->stream), 0);
    assert_int_equal(out->bytes, bytes);
    assert_memory_equal(out->data, expected, bytes);
    free(out->data);
    *out = (written){0};
}

static void write_and_compare(const nifti_geometry *geometry, const char *name) {
    static const uint16_t wide[VOXELS] = {0x1234, 7}, narrow[VOXELS] = {200, 7};
    static const float floats[VOXELS] = {1, -2.5f}; /* 3f800000, c0200000 */
    uint8_t expected[FILE_BYTES_MAX];
    const size_t start = put_expected_header(expected, geometry->second);
    cli_problem problem = {0, ""};
    written out = {0};

    out.stream = open_memstream(&out.data, &out.bytes);
    assert_true(nifti_write_labels(out.stream, name, geometry, narrow, &problem));
    memcpy(expected + start, "\310\7", 2);
    assert_written(&out, expected, start + 2);

    out.stream = open_memstream(&out.data, &out.bytes);
    assert_true(nifti_write_labels(out.stream, name, geometry, wide, &problem));
    memcpy(expected + start, "\x34\x12\7\0", 4);
    assert_written(&out, expected, start + 4);

    out.stream = open_memstream(&out.data, &out.bytes);
    assert_true(nifti_write_floats(out.stream, name, geometry, floats, 1, &problem));
    memcpy(expected + start, "\0\0\x80\x3f\0\0\x20\xc0", 8);
    assert_written(&out, expected, start + 8);
}

static void volumes_are_little_endian(void **state) {
    (void)state;
    nifti_image image = {.dim = {3, VOXELS, 1, 1, 1, 1, 1, 1}};
    for (int second = 0; second < 2; second++) {
        const nifti_geometry geometry = {.image = &image, .second = second};
        write_and_compare(&geometry, "out.nii");
        write_and_compare(&geometry, "out.nii.gz");
    }
}

/* The tables above are complete. */
static void every_byte_has_a_field(void **state) {
    (void)state;
    size_t first = 0, second = 0;
    for (size_t i = 0; i < FIRST_FIELDS; i++)
        first += first_fields[i].bytes * first_fields[i].count;
    for (size_t i = 0; i < SECOND_FIELDS; i++)
        second += second_fields[i].bytes * second_fields[i].count;
    assert_int_equal(first, sizeof(nifti_1_header));
    assert_int_equal(second, sizeof(nifti_2_header));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_has_a_field),
        cmocka_unit_test(volumes_are_little_endian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
