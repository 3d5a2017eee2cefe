/* Numbers over a picture or volume, read by windows: from a file, a few rows at a time, or from
 * memory.
 *
 * A .npy array and a raw PNM are read where they are. What is compressed is decoded once, row by
 * row, into a temporary file without a name (raster_spool), so that windows can be read from it in
 * any order. Nothing is mapped: a limit on the address space holds. */
#ifndef DCRF_CLI_IO_RASTER_H
#define DCRF_CLI_IO_RASTER_H

#include "io/npy.h"
#include "io/picture.h"
#include "io/sample_range.h"
#include "problem.h"

#include <stddef.h>
#include <stdint.h>

/* Of the axes x, y, z. */
#define RASTER_AXES 3

typedef struct raster {
    const char *path;         /* for messages */
    int descriptor;           /* -1: in memory */
    const uint8_t *memory;    /* not its own */
    size_t size[RASTER_AXES]; /* x, y, z */
    size_t channels;
    /* How a number is stored: as in an npy_array. */
    char kind;
    size_t item_bytes;
    bool big_endian;
    uint64_t offset; /* bytes before the first number */
    /* Numbers from one neighbour to the next. */
    size_t stride[RASTER_AXES];
    size_t channel_stride;
    sample_scale scale; /* what numbers become */
} raster;

/* A window, which must lie inside. */
typedef struct raster_window {
    size_t first[RASTER_AXES];
    size_t size[RASTER_AXES];
} raster_window;

/* The array of a .npy file in C order, whose axes from `axis` on are those of the image (slowest
 * first, `axes` of them: 2 or 3), with the channels before or behind them, or none. */
bool raster_from_npy(const char *path, const npy_array *array, uint64_t offset, size_t axis,
                     size_t axes, raster *made, cli_problem *problem);

/* Floats in memory, the channels of a pixel next to each other. */
void raster_from_floats(const float *floats, const size_t size[RASTER_AXES], size_t channels,
                        raster *made);

/* One whole number per pixel in memory. */
void raster_from_integers(const int32_t *integers, const size_t size[RASTER_AXES], raster *made);

/* The picture of a file, its rows from the top. Colours are scaled as everywhere; numbers
 * are as they are stored. `folder_of` is an output beside which a temporary file may lie; NULL: in
 * $TMPDIR, or /tmp. */
bool raster_from_picture(const char *path, picture_purpose purpose, const char *folder_of,
                         raster *made, cli_problem *problem);

/* Read a window: x fastest, the channels of a pixel next to each other. NaN and infinity pass. */
bool raster_read(const raster *from, const raster_window *window, float *out, cli_problem *problem);

/* The same of whole numbers without a factor; one that 32 bits cannot hold is refused. */
bool raster_read_integers(const raster *from, const raster_window *window, int32_t *out,
                          cli_problem *problem);

void raster_close(raster *from);

#endif
