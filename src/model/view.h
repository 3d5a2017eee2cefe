/* Reading the caller's arrays: any type and stride in, checked floats out. */
#ifndef DCRF_MODEL_VIEW_H
#define DCRF_MODEL_VIEW_H

#include "core/threads.h"

#include <dcrf/grid.h>
#include <stdint.h>

/* Is this a valid grid? On success *variables is the number of its points. */
dcrf_status dcrf_grid_check(const dcrf_grid *grid, size_t *variables, dcrf_error *error);

/* The least distance between neighbouring variables. */
double dcrf_grid_least_spacing(const dcrf_grid *grid);

/* The x, y, z of a variable. */
void dcrf_grid_position(const dcrf_grid *grid, size_t variable, size_t position[DCRF_MAX_AXES]);

/* The layout of an output, as a view. */
dcrf_view dcrf_output_view(const dcrf_output *output);

/* Can this view be read? `what` names the array. */
dcrf_status dcrf_view_check(const dcrf_view *view, const char *what, dcrf_error *error);

/* One number of a view that has been checked. */
double dcrf_view_element(const dcrf_view *view, const size_t position[DCRF_MAX_AXES],
                         size_t channel);

/* "x = 4, y = 2", with z in a volume, "variable 4" on a line. For messages. */
#define DCRF_PLACE_BYTES 96
const char *dcrf_place_text(const dcrf_grid *grid, size_t variable, char text[DCRF_PLACE_BYTES]);

/* Copy a view into rows of `stride` floats, channel c multiplied by factor[c] (NULL: by 1), the
 * padding set to zero. Fails, leaving `out` half written, on NaN or infinity; `what` names the
 * array. */
dcrf_status dcrf_view_copy(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                           const double *factor, float *out, size_t stride, dcrf_error *error);

/* The same without factors, floats by all threads of a pool. */
dcrf_status dcrf_view_copy_with(const dcrf_view *view, const dcrf_grid *grid, dcrf_pool *pool,
                                const char *what, float *out, size_t stride, dcrf_error *error);

/* Is this a view of bytes, whose products with factor[c] are finite floats? */
bool dcrf_view_are_bytes(const dcrf_view *view, const double *factor);

/* Copy a view into doubles unchanged. Fails where a value times factor[c] is not a finite float. */
dcrf_status dcrf_view_copy_double(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                                  const double *factor, double *out, dcrf_error *error);

/* Copy an integer view of one channel. */
dcrf_status dcrf_view_copy_integers(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                                    int32_t *out, dcrf_error *error);

#endif
