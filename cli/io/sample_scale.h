/* How the samples of a picture become colours (io/sample_range.h finds it). */
#ifndef DCRF_CLI_IO_SAMPLE_SCALE_H
#define DCRF_CLI_IO_SAMPLE_SCALE_H

#include <stdbool.h>

/* A colour is (sample - zero) * factor. */
typedef struct sample_scale {
    double zero;
    double factor;
    bool is_stretched; /* by the range of the numbers, */
    double low, high;  /* which become 0 and 255 */
} sample_scale;

#endif
