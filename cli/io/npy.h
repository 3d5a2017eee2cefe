/* Arrays in NumPy's .npy format, versions 1.0 to 3.0.
 *
 * Booleans, integers of 1 to 8 bytes and floats of 2 to 8 bytes are read, in either byte order and
 * either memory order, with 1 to 5 axes. The header is checked against the size of the file before
 * anything is taken from it. */
#ifndef DCRF_CLI_IO_NPY_H
#define DCRF_CLI_IO_NPY_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NPY_MAX_AXES 5

typedef struct npy_array {
    char kind;         /* 'b' boolean, 'u' unsigned, 'i' signed, 'f' float */
    size_t item_bytes; /* 1, 2, 4 or 8 */
    bool big_endian;
    bool fortran_order;
    size_t axes;
    size_t shape[NPY_MAX_AXES];
    size_t count;            /* of elements, at least 1 */
    const uint8_t *elements; /* inside the bytes that were parsed */
} npy_array;

/* Do these bytes begin as a .npy file does? */
bool npy_recognize(const uint8_t *data, size_t size);

/* Read the header and find the elements; `file` is for messages. */
bool npy_parse(const uint8_t *data, size_t size, const char *file, npy_array *array,
               cli_problem *problem);

/* The header alone: what lies between the prefix and the elements. Sets all but `elements`. */
bool npy_parse_header(const char *text, size_t length, const char *file, npy_array *array,
                      cli_problem *problem);

bool npy_holds_integers(const npy_array *array);

/* The elements where they are, if they are floats as this machine stores them, in C order; else
 * NULL.
 */
const float *npy_floats_in_place(const npy_array *array);

/* The elements in C order, to be freed. NaN and infinity pass. */
bool npy_to_floats(const npy_array *array, const char *file, float **floats, cli_problem *problem);

/* The same for integers, each of which must fit 32 bits. */
bool npy_to_integers(const npy_array *array, const char *file, int32_t **integers,
                     cli_problem *problem);

#define NPY_TEXT_BYTES 128

/* "(3, 4)" and "uint8", for messages. */
const char *npy_shape_text(const npy_array *array, char text[NPY_TEXT_BYTES]);
const char *npy_type_text(const npy_array *array, char text[NPY_TEXT_BYTES]);

/* Write elements in C order; errors show up when the stream is closed. */
void npy_write_floats(FILE *stream, const size_t *shape, size_t axes, const float *floats);
void npy_write_integers(FILE *stream, const size_t *shape, size_t axes, const int32_t *integers);

/* The same in pieces: the header of an array of "<f4", "|u1" or "<u2", and elements behind it, in C
 * order, as many at a time as there are. */
void npy_write_header(FILE *stream, const char *type, const size_t *shape, size_t axes);
void npy_append_floats(FILE *stream, const float *floats, size_t count);
void npy_append_labels(FILE *stream, const uint16_t *labels, size_t count, size_t bytes_each);

/* Write whole numbers, of 8 bits where all fit, of 16 otherwise. */
void npy_write_labels(FILE *stream, const size_t *shape, size_t axes, const uint16_t *labels);

#endif
