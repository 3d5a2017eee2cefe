/* The superpixel methods. */
#ifndef DCRF_SUPERPIXEL_METHOD_H
#define DCRF_SUPERPIXEL_METHOD_H

#include "core/workspace.h"
#include "model/colour.h"

#include <dcrf/superpixel.h>

/* Find the regions of an image in Luv (mean shift) or Lab (SLIC), before small ones are joined. The
 * caller has checked the settings. Both stop early if the workspace is interrupted. */
dcrf_status dcrf_mean_shift(const struct dcrf_colours *luv,
                            const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                            int32_t *regions, size_t *count, dcrf_error *error);

/* `step` is the distance between neighbours along each axis, in units of the smallest. */
dcrf_status dcrf_slic(const struct dcrf_colours *lab, const double step[3],
                      const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                      int32_t *regions, size_t *count, dcrf_error *error);

/* The end point of mean shift from a pixel: position and colour. */
struct dcrf_mode {
    float x, y;
    float colour[3];
};

/* The modes of all pixels, row by row without padding. */
dcrf_status dcrf_mean_shift_modes(const struct dcrf_colours *luv,
                                  const dcrf_superpixel_settings *settings,
                                  dcrf_workspace *workspace, struct dcrf_mode *modes,
                                  dcrf_error *error);

#endif
