/* From the samples of a picture to colours from 0 to 255, so that a sigma means the same for
 * pictures of all depths.
 *
 * Cameras and satellites store 12 bits in files of 16, and elevations or reflectances as floats:
 * taken by the depth of the file such pictures are nearly black. What leaves the upper half of its
 * scale empty is scaled by the range of its numbers instead, without the highest and lowest
 * thousandth: a hot pixel is no range. */
#ifndef DCRF_CLI_IO_SAMPLE_RANGE_H
#define DCRF_CLI_IO_SAMPLE_RANGE_H

#include "io/picture.h"
#include "io/sample_scale.h"

typedef struct sample_range sample_range;

/* How often each sample occurs; NULL: memory is out. */
sample_range *sample_range_new(void);
void sample_range_add(sample_range *range, const picture *described, const uint16_t *samples,
                      size_t pixels);

/* Is a range needed for this picture? If not, the scale follows from its depth. */
bool sample_range_matters(const picture *described);
sample_scale sample_scale_of(const sample_range *range, const picture *described);

/* Has a pixel no data? */
bool picture_is_nodata(const picture *described, const uint16_t *pixel);

#endif
