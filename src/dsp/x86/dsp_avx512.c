/* The inner loops for AVX-512 (F and VL). */
#define DSP_LANES 16
#include "dsp/dsp_vector.h"

#define DSP_TABLE dcrf_dsp_avx512
#define DSP_CPU DCRF_CPU_AVX512
#include "dsp/dsp_table.h"
