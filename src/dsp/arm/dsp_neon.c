/* The inner loops for NEON. */
#define DSP_LANES 4
#define DSP_FILL dcrf_dsp_fill_neon
#include "dsp/dsp_vector.h"
