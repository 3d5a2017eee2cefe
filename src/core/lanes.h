/* How wide the rows of blocks are (dcrf/grid.h): up to DCRF_NARROW_LANES channels have a row of
 * that many floats, more have a multiple of DCRF_LANES. */
#ifndef DCRF_CORE_LANES_H
#define DCRF_CORE_LANES_H

#define DCRF_NARROW_LANES 4
#define DCRF_LANES 8

#endif
