/* Embedding with vectors of four floats, which the compiler makes of what every machine has. */
#define EMBED_LANES 4
#define EMBED_FILL dcrf_dsp_fill_embed_c
#include "dsp/dsp_embed.h"
