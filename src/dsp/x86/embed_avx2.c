/* Embedding for AVX2. */
#define EMBED_LANES 8
#define EMBED_FILL dcrf_dsp_fill_embed_avx2
#include "dsp/dsp_embed.h"
