/* Embedding for AVX-512 (F and VL). */
#define EMBED_LANES 16
#define EMBED_FILL dcrf_dsp_fill_embed_avx512
#include "dsp/dsp_embed.h"
