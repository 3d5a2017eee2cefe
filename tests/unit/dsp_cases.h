/* Random cases for the entries of the table of inner loops. */
#ifndef DCRF_TESTS_DSP_CASES_H
#define DCRF_TESTS_DSP_CASES_H

#include "core/rng.h"
#include "core/timer.h"
#include "dsp/dsp.h"

struct dsp_result {
    float *value; /* what the entry wrote, surrounded by floats that it must not touch */
    float *size;  /* the sum of the absolute terms of each value, by plain C; 0: bit-identical */
    size_t count; /* length of both arrays */
    size_t operations; /* per value */
};

/* Case `number` of an entry, run by `dsp`, `repeats` times when timing; *time_s is the mean per
 * call. */
typedef struct dsp_result (*dsp_case)(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                      double *time_s);

struct dsp_entry {
    const char *name;
    dsp_case run;
};

/* Every entry of the table, grouped by purpose. */
#define DSP_FILTER_ENTRIES 10
#define DSP_POINT_ENTRIES 4
#define DSP_SOFTMAX_ENTRIES 4
#define DSP_PAIR_ENTRIES 12
extern const struct dsp_entry dsp_filter_entries[DSP_FILTER_ENTRIES];
extern const struct dsp_entry dsp_point_entries[DSP_POINT_ENTRIES];
extern const struct dsp_entry dsp_softmax_entries[DSP_SOFTMAX_ENTRIES];
extern const struct dsp_entry dsp_pair_entries[DSP_PAIR_ENTRIES];

void free_dsp_result(struct dsp_result *result);

static inline size_t random_below(dcrf_rng *rng, size_t limit) {
    return (size_t)(dcrf_rng_uniform(rng) * (double)limit);
}

static inline double clocked(double start_s, size_t repeats) {
    return (dcrf_time_s() - start_s) / (double)repeats;
}

#endif
