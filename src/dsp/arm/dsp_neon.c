/* The inner loops for NEON. */
#define DSP_LANES 4
#include "dsp/dsp_vector.h"

#define DSP_TABLE dcrf_dsp_neon
#define DSP_CPU DCRF_CPU_NEON
#include "dsp/dsp_table.h"
