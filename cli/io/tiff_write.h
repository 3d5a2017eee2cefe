/* TIFF pictures of labels and grey values, losslessly compressed, with the georeference of their
 * image. */
#ifndef DCRF_CLI_IO_TIFF_WRITE_H
#define DCRF_CLI_IO_TIFF_WRITE_H

#include "io/geo.h"

/* Does the name of this output end like a TIFF's? */
bool is_tiff_name(const char *path);

typedef struct tiff_layout {
    size_t width;
    size_t height;
    bool wide;                   /* 16 bits per sample, not 8 */
    const uint8_t (*palette)[3]; /* 256 colours of 8-bit labels; NULL: grey */
    const geo_reference *geo;    /* NULL: none */
    const double *nodata;        /* the value for no data; NULL: none */
} tiff_layout;

typedef struct tiff_writer tiff_writer;

/* Rows from the top, and after the last one the end, which writes to the stream. */
bool tiff_writer_new(tiff_writer **writer, FILE *stream, const char *file,
                     const tiff_layout *layout, cli_problem *problem);
bool tiff_writer_rows(tiff_writer *writer, const uint16_t *samples, size_t rows,
                      cli_problem *problem);
bool tiff_writer_end(tiff_writer *writer, cli_problem *problem);
void tiff_writer_free(tiff_writer **writer);

#endif
