/* Where the samples of a raw PNM are, for reading parts of them. */
#ifndef DCRF_CLI_IO_PNM_H
#define DCRF_CLI_IO_PNM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnm_place {
    size_t width;
    size_t height;
    size_t channels;     /* 1 or 3, next to each other */
    size_t largest;      /* the sample of full brightness */
    size_t sample_bytes; /* 1, or 2 in big-endian order */
    size_t offset;       /* of the first sample in the file */
} pnm_place;

/* Find them; false if the file is not a raw greymap or pixmap with all its samples, or if
 * samples could exceed the largest. */
bool pnm_locate(const uint8_t *data, size_t size, pnm_place *place);

#endif
