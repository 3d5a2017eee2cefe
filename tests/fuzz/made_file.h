/* Files that are well made around bytes that need not be: what is fuzzed then gets behind the
 * headers. */
#ifndef DCRF_TESTS_FUZZ_MADE_FILE_H
#define DCRF_TESTS_FUZZ_MADE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MADE_BYTES_MAX (1 << 20)

/* The file that is in the making, one at a time. */
typedef struct made_file {
    size_t size;
    uint8_t data[MADE_BYTES_MAX];
} made_file;

#define MADE_PNG_KINDS 15

/* A PNG of a kind (depth and colour), its rows, filters included, compressed, with checksums. The
 * palette of a kind that has one is a single colour. */
bool make_png(made_file *made, size_t kind, size_t width, size_t height, bool interlaced,
              const uint8_t palette[3], const uint8_t *rows, size_t size);
size_t made_png_row_bytes(size_t kind, size_t width);

/* A little-endian TIFF without compression of 8 or 16 bits and 1 or 3 channels: one strip of
 * `strip_rows` rows after the other, or where that is 0 tiles of 16 x 16 pixels. `fill` says what
 * the samples are: its bytes again and again. */
bool make_tiff(made_file *made, size_t width, size_t height, size_t channels, size_t bits,
               size_t strip_rows, const uint8_t *fill, size_t size);

/* A PNM of the kind 1 to 6; the samples of a raw one are `fill` again and again, those of a plain
 * one made from it. */
bool make_pnm(made_file *made, size_t kind, size_t width, size_t height, size_t largest,
              const uint8_t *fill, size_t size);

/* A .npy of a type such as "<f4" and elements of so many bytes. */
bool make_npy(made_file *made, const char *type, size_t item_bytes, bool fortran,
              const size_t *shape, size_t axes, const uint8_t *fill, size_t size);

/* A little-endian NIfTI volume of `bytes` bytes an element: 1 (unsigned), 2 (signed) or 4 (float),
 * and where `channels` is more than 1 of as many volumes. */
bool make_nifti(made_file *made, const size_t size[3], size_t channels, size_t bytes,
                const uint8_t *fill, size_t fill_size);

#endif
