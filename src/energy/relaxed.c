/* The relaxed objectives of a fractional labelling y (N x M, rows are distributions).
 *
 * QP. The pairwise part of one kernel is
 *
 *   sum_{a != b} k_ab sum_ij mu(i, j) y_ai y_bj = sum_a sum_j g_aj ( (K y)_aj - k_aa y_aj ),
 *   g_aj = sum_i mu(i, j) y_ai;   Potts: g_aj = sum_{i != j} y_ai; vector: g_aj = v_j y_aj.
 *
 * LP. The ordered filter gives (A s)_a = sum_b k_ab sign(bin(y_b) - bin(y_a)) for one label. It is
 * antisymmetric under the sum, so
 *
 *   -sum_a y_a (A s)_a = sum_{a < b} k_ab (y_a - y_b) sign(bin(y_a) - bin(y_b)).
 *
 * Bins are monotone: a pair in different bins contributes its exact |y_a - y_b| (y itself is used,
 * not the middle of its bin); a pair in the same bin contributes 0 instead of at most 1 / bins.
 *
 * Cliques depend only on the members' y: see dcrf/energy.h. The QP term is written as 1 + sum_i
 * min(0, sum_{a in p} (1 - y_ai) - 1), which avoids the large constant M - 1. */
#include "core/error.h"
#include "energy/sums.h"

#include <math.h>
#include <string.h>

#define ROWS_PER_CHUNK 1024
#define LABELS_PER_PASS 64 /* for cliques: fits in a few cache lines */
#define TOLERANCE 1e-3     /* for rows that should be distributions */

struct fractional {
    const dcrf_model *model;
    const float *y;
    size_t stride;
    double *row_sums;
    unsigned char *occurs; /* one row of M flags per worker */
};

/* ---- checking y ----------------------------------------------------------------------------- */

static bool is_probability(float value) {
    return (double)value >= -TOLERANCE && (double)value <= 1 + TOLERANCE; /* false for NaN */
}

/* Row sums (NaN if an entry is not a probability), and which labels occur. */
static void read_rows(void *context, size_t begin, size_t end, size_t worker) {
    const struct fractional *f = context;
    const size_t labels = f->model->labels;
    unsigned char *occurs = f->occurs + worker * labels;
    for (size_t a = begin; a < end; a++) {
        const float *row = f->y + a * f->stride;
        double sum = 0;
        bool valid = true;
        for (size_t i = 0; i < labels; i++) {
            sum += (double)row[i];
            valid &= is_probability(row[i]);
            occurs[i] |= row[i] < 0 || row[i] > 0;
        }
        f->row_sums[a] = valid ? sum : (double)NAN;
    }
}

static dcrf_status check_rows(const struct fractional *f, dcrf_error *error) {
    for (size_t a = 0; a < f->model->variables; a++) {
        if (fabs(f->row_sums[a] - 1) <= TOLERANCE)
            continue;
        const float *row = f->y + a * f->stride;
        for (size_t i = 0; i < f->model->labels; i++) {
            if (!isfinite(row[i]))
                return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                                 "y holds %g at variable %zu, label %zu", (double)row[i], a, i);
            if (!is_probability(row[i]))
                return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                 "y holds %g at variable %zu, label %zu; it must be between 0 and "
                                 "1",
                                 (double)row[i], a, i);
        }
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the row of y for variable %zu has the sum %g; it must be 1", a,
                         f->row_sums[a]);
    }
    return DCRF_OK;
}

/* Check the arguments common to both objectives, and list the labels that occur. */
static dcrf_status read_fractional(struct fractional *f, struct dcrf_pair_sum *pairs,
                                   const dcrf_energy *energy, dcrf_error *error) {
    dcrf_workspace *workspace = pairs->workspace;
    if (!pairs->plan || !workspace || !f->y || !energy)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "an objective needs a plan, a workspace, y and room for the result");
    f->model = pairs->plan->model;
    const size_t labels = f->model->labels, variables = f->model->variables;
    TRY(dcrf_plan_check(pairs->plan, error));
    if (f->stride < labels)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "y has a stride of %zu floats; the model has %zu labels", f->stride,
                         labels);
    const size_t threads = dcrf_workspace_threads(workspace);
    uint16_t *listed =
        dcrf_workspace_slot(workspace, &dcrf_energy_slot2, labels, sizeof *listed + threads);
    f->row_sums = dcrf_workspace_slot(workspace, &dcrf_energy_slot3, variables, sizeof(double));
    if (!listed || !f->row_sums)
        return dcrf_fail_memory(error, "the objective of a fractional labelling");
    f->occurs = (unsigned char *)(listed + labels);
    memset(f->occurs, 0, threads * labels);
    dcrf_parallel_for(dcrf_workspace_pool(workspace), variables, ROWS_PER_CHUNK, read_rows, f);
    TRY(check_rows(f, error));
    pairs->labels = listed;
    pairs->label_count = 0;
    for (size_t label = 0; label < labels; label++) {
        bool occurs = false;
        for (size_t worker = 0; worker < threads; worker++)
            occurs |= f->occurs[worker * labels + label] != 0;
        if (occurs)
            listed[pairs->label_count++] = (uint16_t)label;
    }
    return DCRF_OK;
}

/* ---- unary and pairs ------------------------------------------------------------------------ */

static double sum_unary(void *context, size_t begin, size_t end) {
    const struct fractional *f = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const float *unary = f->model->unary + a * f->model->stride;
        const float *row = f->y + a * f->stride;
        for (size_t i = 0; i < f->model->labels; i++)
            sum += (double)unary[i] * (double)row[i];
    }
    return sum;
}

static void fill_columns(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_pair_sum *pairs = context;
    const struct fractional *f = pairs->subject;
    const uint16_t *label = pairs->labels + pairs->first;
    for (size_t a = begin; a < end; a++) {
        const float *row = f->y + a * f->stride;
        float *in = pairs->in + a * pairs->stride;
        for (size_t c = 0; c < pairs->channels; c++)
            in[c] = row[label[c]];
        memset(in + pairs->channels, 0, (pairs->stride - pairs->channels) * sizeof *in);
    }
}

/* g_aj of the QP, for the row of a variable. */
static inline double compatible_mass(const struct dcrf_model_kernel *kernel, const float *row,
                                     double row_sum, size_t labels, size_t j) {
    switch (kernel->compatibility) {
    case DCRF_COMPATIBILITY_VECTOR:
        return (double)kernel->compatibility_values[j] * (double)row[j];
    case DCRF_COMPATIBILITY_MATRIX: {
        const float *values = kernel->compatibility_values + j * labels;
        double sum = 0;
        for (size_t i = 0; i < labels; i++)
            sum += (double)values[i] * (double)row[i];
        return sum;
    }
    case DCRF_COMPATIBILITY_POTTS:
        break;
    }
    return row_sum - (double)row[j];
}

static double sum_products(void *context, size_t begin, size_t end) {
    const struct dcrf_pair_sum *pairs = context;
    const struct fractional *f = pairs->subject;
    const struct dcrf_model_kernel *kernel = &f->model->kernels[pairs->kernel];
    const float *diagonal = pairs->plan->kernels[pairs->kernel].diagonal;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const float *in = pairs->in + a * pairs->stride, *out = pairs->out + a * pairs->stride;
        for (size_t c = 0; c < pairs->channels; c++)
            sum += ((double)out[c] - (double)diagonal[a] * (double)in[c]) *
                   compatible_mass(kernel, f->y + a * f->stride, f->row_sums[a], f->model->labels,
                                   pairs->labels[pairs->first + c]);
    }
    return sum;
}

static double sum_differences(void *context, size_t begin, size_t end) {
    const struct dcrf_pair_sum *pairs = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const float *in = pairs->in + a * pairs->stride, *out = pairs->out + a * pairs->stride;
        for (size_t c = 0; c < pairs->channels; c++)
            sum -= (double)in[c] * (double)out[c];
    }
    return sum;
}

/* ---- cliques -------------------------------------------------------------------------------- */

/* The labels of one pass over the members of a clique. */
static size_t labels_in_pass(size_t labels, size_t first) {
    return labels - first < LABELS_PER_PASS ? labels - first : LABELS_PER_PASS;
}

static double qp_disagreement(const void *subject, const uint32_t *members, size_t count) {
    const struct fractional *f = subject;
    double disagreement = 1;
    for (size_t first = 0; first < f->model->labels; first += LABELS_PER_PASS) {
        const size_t labels = labels_in_pass(f->model->labels, first);
        double missing[LABELS_PER_PASS] = {0};
        for (size_t k = 0; k < count; k++) {
            const float *row = f->y + members[k] * f->stride + first;
            for (size_t i = 0; i < labels; i++)
                missing[i] += 1 - (double)row[i];
        }
        for (size_t i = 0; i < labels; i++)
            disagreement += missing[i] < 1 ? missing[i] - 1 : 0;
    }
    return disagreement;
}

/* Smallest and largest y of the members, for the labels of one pass. */
static void find_extremes(const struct fractional *f, const uint32_t *members, size_t count,
                          size_t first, size_t labels, float *least, float *most) {
    memcpy(least, f->y + members[0] * f->stride + first, labels * sizeof *least);
    memcpy(most, least, labels * sizeof *most);
    for (size_t k = 1; k < count; k++) {
        const float *row = f->y + members[k] * f->stride + first;
        for (size_t i = 0; i < labels; i++) {
            least[i] = row[i] < least[i] ? row[i] : least[i];
            most[i] = row[i] > most[i] ? row[i] : most[i];
        }
    }
}

static double min_disagreement(const void *subject, const uint32_t *members, size_t count) {
    const struct fractional *f = subject;
    float least[LABELS_PER_PASS], most[LABELS_PER_PASS];
    double agreement = 0;
    for (size_t first = 0; first < f->model->labels; first += LABELS_PER_PASS) {
        const size_t labels = labels_in_pass(f->model->labels, first);
        find_extremes(f, members, count, first, labels, least, most);
        for (size_t i = 0; i < labels; i++)
            agreement += (double)least[i];
    }
    return 1 - agreement;
}

static double spread_disagreement(const void *subject, const uint32_t *members, size_t count) {
    const struct fractional *f = subject;
    float least[LABELS_PER_PASS], most[LABELS_PER_PASS];
    double widest = 0;
    for (size_t first = 0; first < f->model->labels; first += LABELS_PER_PASS) {
        const size_t labels = labels_in_pass(f->model->labels, first);
        find_extremes(f, members, count, first, labels, least, most);
        for (size_t i = 0; i < labels; i++) {
            const double spread = (double)most[i] - (double)least[i];
            widest = spread > widest ? spread : widest;
        }
    }
    return widest;
}

/* ---- the objectives ------------------------------------------------------------------------- */

static dcrf_status add_up(struct fractional *f, struct dcrf_pair_sum *pairs,
                          dcrf_disagreement disagreement, dcrf_energy *energy, dcrf_error *error) {
    dcrf_energy found;
    TRY(dcrf_pair_sum_run(pairs, &found.pairwise, NULL, error));
    TRY(dcrf_clique_sum(f->model, pairs->workspace, disagreement, f, &found.cliques, error));
    found.unary =
        dcrf_parallel_sum(dcrf_workspace_pool(pairs->workspace), f->model->variables, sum_unary, f);
    found.total = found.unary + found.pairwise + found.cliques;
    *energy = found;
    return DCRF_OK;
}

dcrf_status dcrf_energy_qp(const dcrf_plan *plan, dcrf_workspace *workspace, const float *y,
                           size_t stride, dcrf_energy *energy, dcrf_error *error) {
    DCRF_ENTER(workspace, error);
    struct fractional f = {.y = y, .stride = stride};
    struct dcrf_pair_sum pairs = {.plan = plan,
                                  .workspace = workspace,
                                  .fill = fill_columns,
                                  .sum = sum_products,
                                  .subject = &f};
    TRY(read_fractional(&f, &pairs, energy, error));
    return add_up(&f, &pairs, qp_disagreement, energy, error);
}

dcrf_status dcrf_energy_lp(const dcrf_plan *plan, dcrf_workspace *workspace, const float *y,
                           size_t stride, size_t bins, dcrf_clique_form form, dcrf_energy *energy,
                           dcrf_error *error) {
    DCRF_ENTER(workspace, error);
    float thresholds[DCRF_MAX_BINS - 1];
    const dcrf_levels levels = {.count = bins, .levels = thresholds};
    struct fractional f = {.y = y, .stride = stride};
    struct dcrf_pair_sum pairs = {.plan = plan,
                                  .workspace = workspace,
                                  .levels = &levels,
                                  .fill = fill_columns,
                                  .sum = sum_differences,
                                  .subject = &f};
    if (bins < 2 || bins > DCRF_MAX_BINS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the LP objective takes 2 to %d bins, not %zu",
                         DCRF_MAX_BINS, bins);
    if (form != DCRF_CLIQUE_MIN && form != DCRF_CLIQUE_SPREAD)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a form of the clique term",
                         (int)form);
    TRY(read_fractional(&f, &pairs, energy, error));
    TRY(dcrf_model_require_potts(f.model, "the LP relaxation", error));
    for (size_t h = 1; h < bins; h++)
        thresholds[h - 1] = (float)((double)h / (double)bins);
    return add_up(&f, &pairs, form == DCRF_CLIQUE_MIN ? min_disagreement : spread_disagreement,
                  energy, error);
}
