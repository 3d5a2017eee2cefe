/* Resizing energies to the image, guided by its colours. */
#ifndef DCRF_MODEL_UNARY_H
#define DCRF_MODEL_UNARY_H

#include <dcrf/grid.h>

/* The position of the centre of cell `place` of `image_size` among the centres 0, 1, ... of `size`
 * cells with the same total length. */
double dcrf_unary_place(size_t place, size_t image_size, size_t size);

/* Fill energies over `to` from rows of `labels` energies over `from`, which is not larger than `to`
 * along any axis. */
dcrf_status dcrf_unary_enlarge_guided(const dcrf_grid *from, const float *rows, size_t labels,
                                      const dcrf_grid *to, const dcrf_view *guide, float *energies,
                                      dcrf_error *error);

#endif
