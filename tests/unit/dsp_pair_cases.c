#include "dense.h"
#include "dsp_cases.h"

#include "core/timer.h"

#include <math.h>
#include <stdlib.h>

#define REAL float
#define LOOPS pairs
#define LINE dcrf_pair_line
#define NAME(name) single_##name
#include "dsp_pair_cases.h"
#undef REAL
#undef LOOPS
#undef LINE
#undef NAME

#define REAL double
#define LOOPS pairs_double
#define LINE dcrf_pair_line_double
#define NAME(name) double_##name
#include "dsp_pair_cases.h"

const struct dsp_entry dsp_pair_entries[DSP_PAIR_ENTRIES] = {
    {"pairs.values", single_run_values},
    {"pairs.product", single_run_product},
    {"pairs.transpose", single_run_transpose},
    {"pairs.line", single_run_line},
    {"pairs.sums", single_run_sums},
    {"pairs.disagreement", single_run_disagreement},
    {"pairs_double.values", double_run_values},
    {"pairs_double.product", double_run_product},
    {"pairs_double.transpose", double_run_transpose},
    {"pairs_double.line", double_run_line},
    {"pairs_double.sums", double_run_sums},
    {"pairs_double.disagreement", double_run_disagreement},
};
