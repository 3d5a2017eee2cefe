/* From the samples of a picture to colours from 0 to 255, so that a sigma means the same for
 * pictures of every bit depth.
 *
 * Cameras and satellites store 12 bits in 16-bit files, and elevations or reflectances as
 * floats: scaled by the depth of the file, such pictures would be nearly black. A picture that
 * leaves the upper half of its scale empty is scaled by the range of its numbers instead,
 * without the highest and lowest thousandth, so that hot pixels do not determine the range. */
#ifndef DCRF_CLI_IO_SAMPLE_RANGE_H
#define DCRF_CLI_IO_SAMPLE_RANGE_H

#include "io/picture.h"
#include "io/sample_scale.h"

typedef struct sample_range sample_range;

/* A histogram of the samples; NULL: out of memory. */
sample_range *sample_range_new(void);
void sample_range_add(sample_range *range, const picture *described, const uint16_t *samples,
                      size_t pixels);

/* Is a range needed for this picture? If not, the scale follows from its bit depth. */
bool sample_range_matters(const picture *described);
sample_scale sample_scale_of(const sample_range *range, const picture *described);

/* Does a pixel have no data? */
bool picture_is_nodata(const picture *described, const uint16_t *pixel);

#endif
