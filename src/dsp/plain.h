/* Plain C loops that the tables of other instruction sets use too. */
#ifndef DCRF_DSP_PLAIN_H
#define DCRF_DSP_PLAIN_H

#include "dsp/dsp.h"

void dcrf_plain_splat_runs(const struct dcrf_runs *runs, size_t begin, size_t end);
void dcrf_plain_slice_runs(const struct dcrf_runs *runs, size_t begin, size_t end);
void dcrf_plain_shared_softmax(const struct dcrf_shared_softmax *softmax, size_t rows);
/* These use vectors of four floats, which the compiler maps to what the machine has. */
void dcrf_plain_embed_single(const struct dcrf_embed *embed);
void dcrf_plain_embed_double(const struct dcrf_embed *embed);

#endif
