/* The inner loops for AVX2 with FMA. */
#define DSP_LANES 8
#define DSP_FILL dcrf_dsp_fill_avx2
#include "dsp/dsp_vector.h"
