/* .npy files: what is written can be read back and has the same bytes on every machine, whatever
 * its byte order. */
#include "unit.h"

#include "io/npy.h"

#include <stdio.h>
#include <stdlib.h>

static void round_trip(void **state) {
    (void)state;
    const size_t shape[NPY_MAX_AXES] = {2, 1, 3, 2, 2};
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

/* ---- bytes ---------------------------------------------------------------------------------- */

enum { HEADER_BYTES = 128, VALUES = 3 };

/* The header that NumPy writes for three numbers of this type. */
static void put_header(uint8_t *file, const char *type) {
    char text[HEADER_BYTES];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", type);
    memcpy(file, "\x93NUMPY\1\0\x76\0", 10);
    memset(file + 10, ' ', HEADER_BYTES - 10);
    memcpy(file + 10, text, strlen(text));
    file[HEADER_BYTES - 1] = '\n';
}

static void assert_written(void (*write)(FILE *stream, const void *values), const void *values,
                           const char *type, const uint8_t *numbers, size_t bytes) {
    uint8_t expected[HEADER_BYTES + 4 * VALUES];
    char *file = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&file, &size);
    assert_non_null(stream);
    write(stream, values);
    assert_int_equal(fclose(stream), 0);
    put_header(expected, type);
    memcpy(expected + HEADER_BYTES, numbers, bytes);
    assert_int_equal(size, HEADER_BYTES + bytes);
    assert_memory_equal(file, expected, size);
    free(file);
}

static const size_t shape_of_three[] = {VALUES};

static void write_floats(FILE *stream, const void *values) {
    npy_write_floats(stream, shape_of_three, 1, values);
}

static void write_integers(FILE *stream, const void *values) {
    npy_write_integers(stream, shape_of_three, 1, values);
}

static void write_labels(FILE *stream, const void *values) {
    npy_write_labels(stream, shape_of_three, 1, values);
}

static void every_machine_writes_the_same(void **state) {
    (void)state;
    const float floats[] = {1, -2.5f, 0x1.234568p-3f};
    assert_written(write_floats, floats, "<f4",
                   (const uint8_t[]){0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0xb4, 0xa2, 0x11, 0x3e},
                   12);
    const int32_t integers[] = {1, -2, 0x01020304};
    assert_written(write_integers, integers, "<i4",
                   (const uint8_t[]){1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 4, 3, 2, 1}, 12);
    const uint16_t narrow[] = {0, 7, 255}, wide[] = {0, 256, 0xabcd};
    assert_written(write_labels, narrow, "|u1", (const uint8_t[]){0, 7, 255}, 3);
    assert_written(write_labels, wide, "<u2", (const uint8_t[]){0, 0, 0, 1, 0xcd, 0xab}, 6);
}

/* Files of either byte order; only the native one is read in place. */
static void both_orders_are_read(void **state) {
    (void)state;
    _Alignas(4) uint8_t file[HEADER_BYTES + 4 * VALUES];
    const float expected[] = {1, -2.5f, 0x1.234568p-3f};
    const uint8_t big[] = {0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0, 0x3e, 0x11, 0xa2, 0xb4};
    size_t in_place = 0;
    for (int is_big = 0; is_big < 2; is_big++) {
        put_header(file, is_big ? ">f4" : "<f4");
        for (size_t i = 0; i < sizeof big; i++)
            file[HEADER_BYTES + i] = big[is_big ? i : i / 4 * 4 + 3 - i % 4];
        cli_problem problem = {0, ""};
        npy_array array;
        float *values = NULL;
        assert_true(npy_parse(file, sizeof file, "in", &array, &problem));
        assert_true(npy_to_floats(&array, "in", &values, &problem));
        assert_memory_equal(values, expected, sizeof expected);
        const float *own = npy_floats_in_place(&array);
        if (own)
            assert_memory_equal(own, expected, sizeof expected);
        in_place += own != NULL;
        free(values);
    }
    assert_int_equal(in_place, 1);
}

/* Elements of one or two bytes are the same in a long array, whose values come from a table, as in
 * arrays of three. */
static void long_arrays_are_read_like_short_ones(void **state) {
    (void)state;
    enum { COUNT = 65536 + 3 };
    static const char *const types[] = {"|b1", "|u1", "|i1", "<u2", ">u2",
                                        "<i2", ">i2", "<f2", ">f2"};
    uint8_t *elements = malloc(2 * COUNT), file[HEADER_BYTES + 2 * VALUES];
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const size_t bytes = (size_t)(types[t][2] - '0');
        for (size_t i = 0; i < COUNT; i++) {
            elements[bytes * i] = (uint8_t)(i % 251);
            elements[bytes * i + bytes - 1] = (uint8_t)(i >> 8);
        }
        cli_problem problem = {0, ""};
        npy_array array;
        float *values, *three;
        put_header(file, types[t]);
        assert_true(npy_parse(file, HEADER_BYTES + VALUES * bytes, "in", &array, &problem));
        npy_array all = array;
        all.elements = elements;
        all.count = all.shape[0] = COUNT;
        assert_true(npy_to_floats(&all, "in", &values, &problem));
        for (size_t i = 0; i + VALUES <= COUNT; i += VALUES) {
            array.elements = elements + i * bytes;
            assert_true(npy_to_floats(&array, "in", &three, &problem));
            assert_memory_equal(values + i, three, VALUES * sizeof *three);
            free(three);
        }
        free(values);
    }
    free(elements);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(every_machine_writes_the_same),
        cmocka_unit_test(both_orders_are_read),
        cmocka_unit_test(long_arrays_are_read_like_short_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
