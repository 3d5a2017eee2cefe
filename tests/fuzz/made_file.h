/* Well-formed files around arbitrary bytes, so that fuzzed content gets past the headers. */
#ifndef DCRF_TESTS_FUZZ_MADE_FILE_H
#define DCRF_TESTS_FUZZ_MADE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MADE_BYTES_MAX (1 << 20)

/* The file under construction, one at a time. */
typedef struct made_file {
    size_t size;
    uint8_t data[MADE_BYTES_MAX];
} made_file;

#define MADE_PNG_KINDS 15

/* A PNG of a kind (depth and colour) with valid checksums; `rows`, including filter bytes, are
 * compressed. If the kind has a palette, it is a single colour. */
bool make_png(made_file *made, size_t kind, size_t width, size_t height, bool interlaced,
              const uint8_t palette[3], const uint8_t *rows, size_t size);
size_t made_png_row_bytes(size_t kind, size_t width);

/* An uncompressed little-endian TIFF of 8 or 16 bits and 1 or 3 channels: strips of `strip_rows`
 * rows, or tiles of 16 x 16 pixels if that is 0. The samples are the bytes of `fill`, repeated. */
bool make_tiff(made_file *made, size_t width, size_t height, size_t channels, size_t bits,
               size_t strip_rows, const uint8_t *fill, size_t size);

/* A PNM of kind 1 to 6; the samples of a raw one are `fill`, repeated, those of a plain one are
 * derived from it. */
bool make_pnm(made_file *made, size_t kind, size_t width, size_t height, size_t largest,
              const uint8_t *fill, size_t size);

/* A .npy file of a type such as "<f4" with elements of `item_bytes` bytes. */
bool make_npy(made_file *made, const char *type, size_t item_bytes, bool fortran,
              const size_t *shape, size_t axes, const uint8_t *fill, size_t size);

/* A little-endian NIfTI volume of `bytes` bytes per element: 1 (unsigned), 2 (signed) or 4 (float);
 * with `channels` > 1, that many volumes. */
bool make_nifti(made_file *made, const size_t size[3], size_t channels, size_t bytes,
                const uint8_t *fill, size_t fill_size);

#endif
