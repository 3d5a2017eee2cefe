/* The inner loops for AVX-512 (F and VL). */
#define DSP_LANES 16
#define DSP_FILL dcrf_dsp_fill_avx512
#include "dsp/dsp_vector.h"
