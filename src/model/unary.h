/* Bringing energies to the size of the image with its colours as a guide. */
#ifndef DCRF_MODEL_UNARY_H
#define DCRF_MODEL_UNARY_H

#include <dcrf/grid.h>

/* Where the middle of cell `place` of `image_size` lies among the middles 0, 1, ... of `size`
 * cells of the same length altogether. */
double dcrf_unary_place(size_t place, size_t image_size, size_t size);

/* Fill energies over `to` from rows of `labels` energies over `from`, which is not larger along any
 * axis. */
dcrf_status dcrf_unary_enlarge_guided(const dcrf_grid *from, const float *rows, size_t labels,
                                      const dcrf_grid *to, const dcrf_view *guide, float *energies,
                                      dcrf_error *error);

#endif
