/* TIFF files in memory, for libtiff. Its messages go to a handler per file, which keeps the
 * first. */
#ifndef DCRF_CLI_IO_TIFF_MEMORY_H
#define DCRF_CLI_IO_TIFF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tiffio.h>

typedef struct tiff_memory {
    const uint8_t *data; /* to be read; NULL: write into `written` */
    size_t size;
    uint64_t position;
    uint8_t *written; /* the caller frees it */
    size_t room;
    char message[160]; /* the first message of libtiff */
    bool out_of_memory;
} tiff_memory;

/* The value of pixels without data, if the file has one, as written by GDAL. */
#define TIFF_TAG_NODATA 42113
bool tiff_nodata(TIFF *tiff, double *nodata);

/* A field that libtiff does not know; NULL: absent, or of another type. */
const void *tiff_foreign_field(TIFF *tiff, uint16_t number, TIFFDataType type, uint32_t *count);

/* NULL: it cannot be opened. `memory` must outlive it. */
TIFF *tiff_memory_open(tiff_memory *memory);

#endif
