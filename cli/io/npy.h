/* Arrays in NumPy's .npy format, versions 1.0 to 3.0.
 *
 * Supported are booleans, integers of 1 to 8 bytes and floats of 2 to 8 bytes, in either byte
 * order and either memory order, with 1 to 5 axes. The header is checked against the size of the
 * file before it is used. */
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
    const uint8_t *elements; /* inside the parsed bytes */
} npy_array;

/* Do these bytes begin like a .npy file? */
bool npy_recognize(const uint8_t *data, size_t size);

/* Read the header and find the elements; `file` is for messages. */
bool npy_parse(const uint8_t *data, size_t size, const char *file, npy_array *array,
               cli_problem *problem);

/* The header alone: the text between the prefix and the elements. Sets all but `elements`. */
bool npy_parse_header(const char *text, size_t length, const char *file, npy_array *array,
                      cli_problem *problem);

bool npy_holds_integers(const npy_array *array);

/* The elements in place, if they are floats in this machine's format and in C order; otherwise
 * NULL. */
const float *npy_floats_in_place(const npy_array *array);

/* The elements in C order; the caller frees them. NaN and infinity are accepted. */
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

/* The same in pieces: the header of an array of "<f4", "|u1" or "<u2", followed by elements in C
 * order, any number at a time. */
void npy_write_header(FILE *stream, const char *type, const size_t *shape, size_t axes);
void npy_append_floats(FILE *stream, const float *floats, size_t count);
void npy_append_labels(FILE *stream, const uint16_t *labels, size_t count, size_t bytes_each);

/* Write integers, with 8 bits if all fit, otherwise with 16. */
void npy_write_labels(FILE *stream, const size_t *shape, size_t axes, const uint16_t *labels);

#endif
