/* What the settings mean for an image.
 *
 * Reach. The row sum of a kernel before normalization, sum_b k(a, b), counts the pixels that pixel
 * a is connected to, weighted by the strength of the connection; its mean over the image is
 * reported.
 *
 * Strength. A pixel that disagrees with all others pays S_a = 2 sum_m w_m sum_{b != a} k_m(a, b)
 * (pairs count in both orders). Its own evidence is the margin between its two lowest unary
 * energies. A pixel with margin < S_a gives in when all others disagree with it. */
#include "report/explain.h"

#include "interrupt.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct measurements {
    double reach[KERNELS_MAX];    /* mean row sum before normalization */
    double strength[KERNELS_MAX]; /* mean of the kernel's part of S_a */
    double all_strength;
    double margin;            /* median: scribbles fix some pixels with huge margins */
    double persuadable_share; /* share of pixels with margin < S_a */
    bool is_whole;            /* there was time to measure them all */
} measurements;

static double mean_of(const float *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    return sum / (double)count;
}

/* Row sums without the diagonal. */
static dcrf_status sums_of_others(const dcrf_operator *op, dcrf_workspace *workspace,
                                  float *row_sums, float *diagonal, dcrf_error *error) {
    const size_t variables = dcrf_operator_variables(op);
    dcrf_status status = dcrf_operator_row_sums(op, workspace, row_sums, variables, error);
    if (status >= 0)
        status = dcrf_operator_diagonal(op, workspace, diagonal, variables, error);
    for (size_t a = 0; status >= 0 && a < variables; a++)
        row_sums[a] -= diagonal[a];
    return status;
}

/* Reach and strength of every kernel; the strengths are summed in `total`. */
static dcrf_status measure_kernels(const built_model *built, const dcrf_plan *plan, float *total,
                                   float *row_sums, float *diagonal, measurements *m,
                                   dcrf_error *error) {
    const size_t variables = dcrf_model_variables(built->model);
    dcrf_status status = DCRF_OK;
    for (size_t k = 0; status >= 0 && k < built->kernel_count; k++) {
        status = dcrf_plan_reach(plan, k, built->workspace, &m->reach[k], error);
        if (status >= 0)
            status = sums_of_others(dcrf_plan_operator(plan, k), built->workspace, row_sums,
                                    diagonal, error);
        const double factor = 2 * built->kernels[k].weight;
        for (size_t a = 0; status >= 0 && a < variables; a++)
            total[a] += (float)(factor * (double)row_sums[a]);
        m->strength[k] = factor * mean_of(row_sums, variables);
    }
    m->all_strength = mean_of(total, variables);
    return status;
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* `margins` has room for one float per pixel. */
static void measure_unary(const built_model *built, const float *strength, float *margins,
                          measurements *m) {
    size_t stride, persuadable = 0;
    const float *unary = dcrf_model_unary(built->model, &stride);
    const size_t variables = dcrf_model_variables(built->model);
    const size_t labels = dcrf_model_labels(built->model);
    for (size_t a = 0; a < variables; a++) {
        double best = INFINITY, second = INFINITY;
        for (size_t i = 0; i < labels; i++) {
            const double energy = (double)unary[a * stride + i];
            second = fmin(second, fmax(best, energy));
            best = fmin(best, energy);
        }
        margins[a] = labels > 1 ? (float)(second - best) : 0;
        persuadable += labels > 1 && second - best < (double)strength[a];
    }
    qsort(margins, variables, sizeof *margins, compare_floats);
    m->margin = (double)margins[variables / 2];
    m->persuadable_share = (double)persuadable / (double)variables;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void write_kernel(FILE *stream, const built_model *built, const measurements *m, size_t k) {
    const dcrf_kernel *kernel = &built->kernels[k];
    const bool in_mm = built->image.geometry != NULL;
    const char *one = in_mm ? "voxel" : "pixel";
    fprintf(stream, "The %s kernel joins a %s to about %.0f others, up to %.0f %s away",
            kernel_name(kernel), one, fmax(m->reach[k] - 1, 0), ceil(2 * kernel->sigma[0]),
            in_mm ? "mm" : "pixels");
    if (kernel->kind == DCRF_KERNEL_BILATERAL)
        fprintf(stream, " and up to %.0f %s", ceil(2 * kernel->channel_sigma[0]),
                in_mm ? "apart in value" : "grey levels apart in colour");
    fprintf(stream, " (two sigmas). A %s that disagrees with all of them pays %.3g.\n", one,
            m->strength[k]);
}

static void write_strength(FILE *stream, const measurements *m) {
    if (m->all_strength <= 0) {
        fputs("Without kernels every pixel decides for itself, but for cliques.\n", stream);
        return;
    }
    fprintf(stream,
            "A typical pixel's own opinion, the margin between its two best unary energies, is "
            "worth %.3g; disagreeing with everything around it costs %.3g on average, ",
            m->margin, m->all_strength);
    if (m->margin > 0)
        fprintf(stream, "%.3g times that. ", m->all_strength / m->margin);
    else
        fputs("and there is no opinion. ", stream);
    fprintf(stream, "The surroundings can overrule %.0f %% of the pixels.\n",
            100 * m->persuadable_share);
}

static void write_cliques(FILE *stream, const built_model *built) {
    const size_t count = dcrf_model_cliques(built->model);
    double cost = 0, size = 0;
    if (count == 0)
        return;
    for (size_t p = 0; p < count; p++) {
        cost += dcrf_model_clique_cost(built->model, p);
        size += (double)dcrf_model_clique_size(built->model, p);
    }
    fprintf(stream,
            "There are %zu cliques of %.0f pixels on average; breaking one costs %.3g on average, "
            "which is %.3g a pixel.\n",
            count, size / (double)count, cost / (double)count, size > 0 ? cost / size : 0);
}

static void write_constant(FILE *stream, const solution *found) {
    const double energy = found->info.energy.total, constant = found->constant.total;
    if (isnan(constant))
        return;
    fprintf(stream, "One label everywhere (label %u) costs %.6g", found->info.constant_label,
            constant);
    if (found->info.is_constant) {
        fputs(", and nothing better was found", stream);
        if (!isnan(found->info.relative_gap))
            fprintf(stream, "; nothing can be better by more than %.2g %%",
                    100 * found->info.relative_gap);
        fputs(": the weights drown the unaries. Use smaller weights (or --normalize symmetric, "
              "where that is off).\n",
              stream);
    } else {
        fprintf(stream, ", %.3g more than the result: the weights leave room for the unaries.\n",
                constant - energy);
    }
}

/* What was measured about the unaries, which determines the automatic strength. */
static void write_measured(FILE *stream, const built_model *built) {
    const dcrf_measured_strength *measured = &built->strength.measured;
    if (isnan(measured->rho))
        return;
    fprintf(stream,
            "Neighbours of like colour disagree %.2g times as often as they would if each erred by "
            "itself as often as its unaries say: %s. A strength of %.3g suits that; %.3g is in "
            "force.\n",
            measured->rho,
            measured->rho > 1     ? "the unaries are surer than they should be"
            : measured->rho > 0.5 ? "errors are mostly scattered, and neighbours can correct them"
                                  : "errors come in patches, in which neighbours repeat each other",
            measured->strength, built->strength.nats);
}

static bool write_words(const built_model *built, const measurements *m, const solution *found,
                        const strength_sweep *sweep, char **text) {
    size_t bytes;
    FILE *stream = open_memstream(text, &bytes);
    if (!stream)
        return false;
    for (size_t k = 0; m->is_whole && k < built->kernel_count; k++)
        write_kernel(stream, built, m, k);
    if (m->is_whole)
        write_strength(stream, m);
    else
        fputs("There was no time to measure what the kernels do.\n", stream);
    write_measured(stream, built);
    write_cliques(stream, built);
    write_constant(stream, found);
    sweep_write(stream, sweep);
    if (sweep->count == 0 && built->strength.nats > 0)
        fputs("There was no time to try other strengths.\n", stream);
    return fclose(stream) == 0;
}

bool explain_settings(const built_model *built, const solution *found, const strength_sweep *sweep,
                      char **text, cli_problem *problem) {
    const size_t variables = dcrf_model_variables(built->model);
    measurements m = {.is_whole = false};
    dcrf_error error = {.status = DCRF_OK};
    float *scratch = calloc(variables, 3 * sizeof *scratch);
    *text = NULL;
    if (!scratch)
        return out_of_memory(problem, "explanation");
    interrupt_limit(built->workspace, &built->time);
    m.is_whole = !interrupt_came() && !time_is_over(&built->time) &&
                 measure_kernels(built, found->plan, scratch, scratch + variables,
                                 scratch + 2 * variables, &m, &error) >= 0;
    dcrf_workspace_set_limit(built->workspace, 0, NULL, NULL);
    bool done = error.status == DCRF_OK || error.status == DCRF_ERROR_INTERRUPTED ||
                library_problem(problem, "explanation", &error);
    if (m.is_whole)
        measure_unary(built, scratch, scratch + variables, &m);
    if (done)
        done = write_words(built, &m, found, sweep, text) || out_of_memory(problem, "explanation");
    free(scratch);
    return done;
}
