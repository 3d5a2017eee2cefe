/* Numbers over a picture or volume, read by windows: from a file, a few rows at a time, or from
 * memory.
 *
 * A .npy array and a raw PNM are read in place. Compressed formats are decoded once, row by row,
 * into an unnamed temporary file (io/spool.h), from which windows can be read in any order.
 * Nothing is mapped, so a limit on the address space suffices. */
#ifndef DCRF_CLI_IO_RASTER_H
#define DCRF_CLI_IO_RASTER_H

#include "io/npy.h"
#include "io/picture.h"
#include "io/sample_range.h"
#include "problem.h"

#include <stddef.h>
#include <stdint.h>

/* The axes x, y, z. */
#define RASTER_AXES 3

typedef struct raster {
    const char *path;         /* for messages */
    int descriptor;           /* -1: in memory */
    const uint8_t *memory;    /* not owned */
    size_t size[RASTER_AXES]; /* x, y, z */
    size_t channels;
    /* How a number is stored, as in an npy_array. */
    char kind;
    size_t item_bytes;
    bool big_endian;
    uint64_t offset; /* bytes before the first number */
    /* Strides in numbers. */
    size_t stride[RASTER_AXES];
    size_t channel_stride;
    sample_scale scale; /* applied to the numbers */
} raster;

/* A window, which must be inside. */
typedef struct raster_window {
    size_t first[RASTER_AXES];
    size_t size[RASTER_AXES];
} raster_window;

/* The array of a .npy file in C order, whose axes from `axis` on are those of the image (slowest
 * first, `axes` of them: 2 or 3), with the channels before or after them, or none. */
bool raster_from_npy(const char *path, const npy_array *array, uint64_t offset, size_t axis,
                     size_t axes, raster *made, cli_problem *problem);

/* Floats in memory, the channels of a pixel next to each other. */
void raster_from_floats(const float *floats, const size_t size[RASTER_AXES], size_t channels,
                        raster *made);

/* One integer per pixel in memory. */
void raster_from_integers(const int32_t *integers, const size_t size[RASTER_AXES], raster *made);

/* The picture of a file, with rows from the top. Colours are scaled to 0 to 255; numbers are as
 * stored. A temporary file may be created beside the output `folder_of`; NULL: in $TMPDIR, or
 * /tmp. */
bool raster_from_picture(const char *path, picture_purpose purpose, const char *folder_of,
                         raster *made, cli_problem *problem);

/* Read a window: x fastest, the channels of a pixel next to each other. NaN and infinity are
 * accepted. */
bool raster_read(const raster *from, const raster_window *window, float *out, cli_problem *problem);

/* The same for integers, without scaling; one that does not fit 32 bits is refused. */
bool raster_read_integers(const raster *from, const raster_window *window, int32_t *out,
                          cli_problem *problem);

void raster_close(raster *from);

#endif
