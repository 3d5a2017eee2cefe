/* The exact operator's sums in float and in double. */
#include "core/error.h"
#include "filter/exact/exact.h"

#include <string.h>

/* Tiles per chunk of per-variable work. */
#define PACK_GRAIN 16
#define SQUARE (DCRF_TILE * DCRF_TILE)

/* Input and output of a pass over the pairs, as floats or doubles (the other is NULL). */
struct pass {
    const float *in;
    const double *in_double;
    float *out;
    double *out_double;
    size_t channels, in_stride, out_stride;
    bool is_line;
    double factor;         /* applied to the result, or to y for the line */
    bool accumulate;       /* float output only */
    const uint8_t *wanted; /* NULL: all rows */
    /* The pairs to sum over, except those in `without` (NULL: none). */
    const struct dcrf_exact_near *near, *without;
};

/* The channels of a tile that are not identically zero. */
struct active {
    uint8_t count;
    uint8_t channel[MOST_CHANNELS];
};

static uint64_t word_of(const struct pass *pass, size_t word) {
    return pass->near->words[word] & ~(pass->without ? pass->without->words[word] : 0);
}

#define REAL float
#define LINE dcrf_pair_line
#define NAME(name) single_##name
#define LOOPS (&dcrf_dsp()->pairs)
#define FEATURES(op) ((op)->features_single)
#define SCALE(op) ((op)->scale_single)
#include "filter/exact/exact_sweep.h"
#undef REAL
#undef LINE
#undef NAME
#undef LOOPS
#undef FEATURES
#undef SCALE

#define REAL double
#define LINE dcrf_pair_line_double
#define NAME(name) double_##name
#define LOOPS (&dcrf_dsp()->pairs_double)
#define FEATURES(op) ((op)->features)
#define SCALE(op) ((op)->scale)
#include "filter/exact/exact_sweep.h"

dcrf_status dcrf_exact_apply(const dcrf_operator *base, dcrf_workspace *workspace,
                             const struct dcrf_application *application, dcrf_error *error) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    const struct pass pass = {.in = application->in,
                              .out = application->out,
                              .channels = application->channels,
                              .in_stride = application->stride,
                              .out_stride = application->stride,
                              .factor = (double)application->factor,
                              .accumulate = application->accumulate,
                              .near = &op->near};
    return single_run(op, workspace, &pass, error);
}

dcrf_status dcrf_exact_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                    const double *in, double *out, size_t channels,
                                    dcrf_error *error) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    const struct pass pass = {.in_double = in,
                              .out_double = out,
                              .channels = channels,
                              .in_stride = channels,
                              .out_stride = channels,
                              .factor = 1,
                              .near = &op->near_double};
    return double_run(op, workspace, &pass, error);
}

/* The sign is the limit of steep lines: this times any difference of floats is clipped to +-1,
 * except for differences below about 1e-38. */
#define STEEP 0x1p126

static struct pass pass_of_line(const struct dcrf_line *line) {
    return (struct pass){.in = line->y,
                         .channels = line->channels,
                         .in_stride = line->stride,
                         .is_line = true,
                         .factor = line->epsilon > 0 ? 1 / line->epsilon : STEEP,
                         .wanted = line->wanted};
}

dcrf_status dcrf_exact_line(const dcrf_operator *base, dcrf_workspace *workspace,
                            const struct dcrf_line *line, dcrf_error *error) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    struct pass pass = pass_of_line(line);
    pass.out = line->out;
    pass.out_stride = line->stride;
    pass.near = &op->near;
    return single_run(op, workspace, &pass, error);
}

dcrf_status dcrf_exact_line_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                   const struct dcrf_line *line, double *out, dcrf_error *error) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    struct pass pass = pass_of_line(line);
    pass.out_double = out;
    pass.out_stride = line->channels;
    pass.near = &op->near_double;
    return double_run(op, workspace, &pass, error);
}

dcrf_status dcrf_exact_sum_difference(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                      double *sums, dcrf_error *error) {
    const float one = 1;
    const struct pass pass = {.in = &one,
                              .out_double = sums,
                              .channels = 1,
                              .out_stride = 1,
                              .factor = 1,
                              .near = &op->near_double,
                              .without = &op->near};
    return single_run(op, workspace, &pass, error);
}
