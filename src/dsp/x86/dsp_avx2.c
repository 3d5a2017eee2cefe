/* The inner loops for AVX2 with FMA. */
#define DSP_LANES 8
#include "dsp/dsp_vector.h"

#define DSP_TABLE dcrf_dsp_avx2
#define DSP_CPU DCRF_CPU_AVX2
#include "dsp/dsp_table.h"
