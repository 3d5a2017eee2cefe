/* The verifier: energy and bound from the model and a record, in double.
 *
 * It shares no code with the solvers, the energy and the bound: labels become indicators, and the
 * recorded y hat functions of their bins, which go through the operators in double; everything else
 * is plain loops. What it takes on trust is the operators' plan (which matrix K is) and their
 * application in double, which the tests of the operators hold against dense matrices.
 *
 *   E(x) = sum_a phi_a(x_a) + sum_a sum_b K_ab [x_a != x_b] + cliques
 *   LB   = sum_p C_p (min form) + sum_a min_i (phi_ai - sum_k weight_k sum_b K_ab F_k(a, b) - v_ai)
 *
 * The clique part v, recorded as the solver has it in floats, is first made exactly feasible. */
#include "certify/verify.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Weights are doubles that a few hundred mixtures have rounded. */
#define WEIGHT_TOLERANCE 1e-9
/* Labels that go through the operators together. */
#define LABELS 16

struct verifier {
    const dcrf_plan *plan;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    double *in, *out; /* variables x channels */
    double *dual;     /* variables x labels: A alpha + v */
    double *row_sums; /* of one kernel */
};

static dcrf_status apply(const struct verifier *v, size_t kernel, size_t channels,
                         dcrf_error *error) {
    const dcrf_operator *op = v->plan->kernels[kernel].op;
    return op->methods->apply_double(op, v->workspace, v->in, v->out, channels, error);
}

/* ---- the energy ----------------------------------------------------------------------------- */

static double clique_costs(const struct verifier *v, const uint16_t *labels) {
    const struct dcrf_cliques *cliques = &v->model->cliques;
    double sum = 0;
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            if (labels[cliques->members[k]] != labels[cliques->members[cliques->offsets[p]]]) {
                sum += cliques->costs[p];
                break;
            }
    return sum;
}

static dcrf_status find_energy(const struct verifier *v, const uint16_t *labels, double *energy,
                               dcrf_error *error) {
    const size_t n = v->model->variables, stride = v->model->stride;
    double sum = clique_costs(v, labels);
    for (size_t a = 0; a < n; a++)
        sum += (double)v->model->unary[a * stride + labels[a]];
    for (size_t first = 0; first < v->model->labels; first += LABELS) {
        const size_t left = v->model->labels - first, count = left < LABELS ? left : LABELS;
        /* What a label sees of the others. */
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < count; c++)
                v->in[a * count + c] = labels[a] != first + c;
        for (size_t m = 0; m < v->model->kernel_count; m++) {
            const dcrf_status status = apply(v, m, count, error);
            if (status < 0)
                return status;
            for (size_t a = 0; a < n; a++)
                if (labels[a] >= first && labels[a] < first + count)
                    sum += v->model->kernels[m].weight * v->out[a * count + labels[a] - first];
        }
    }
    *energy = sum;
    return DCRF_OK;
}

/* ---- the dual point ------------------------------------------------------------------------- */

/* A flow: sum_b K_ab (y_a - y_b) = y_a (K 1)_a - (K y)_a, for `count` channels from `first` on. */
static dcrf_status add_flow(const struct verifier *v, const struct dcrf_lp_point *point,
                            size_t first, size_t count, double weight, size_t kernel,
                            int *is_feasible, dcrf_error *error) {
    const size_t n = v->model->variables;
    for (size_t c = 0; c < count; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t a = 0; a < n; a++) {
            const double y = (double)point->y[a * point->alive_count + first + c];
            v->in[a * count + c] = y;
            low = y < low ? y : low;
            high = y > high ? y : high;
        }
        *is_feasible &= high - low <= 1;
    }
    const dcrf_status status = apply(v, kernel, count, error);
    if (status < 0)
        return status;
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < count; c++)
            v->dual[a * v->model->labels + point->alive[first + c]] +=
                weight * (v->in[a * count + c] * v->row_sums[a] - v->out[a * count + c]);
    return DCRF_OK;
}

static double clipped(double difference, double epsilon) {
    return fmax(-1, fmin(1, difference / epsilon));
}

/* Where y lies between the nodes: the lower node, and the part of the upper one. The part is
 * computed as a float, because the point that was recorded is the one with this very part. */
static size_t find_node(float y, size_t bins, double *part) {
    const size_t last = bins - 1;
    size_t node = 0;
    while (node < last && (float)(node + 1) / (float)last <= y)
        node++;
    const float low = (float)node / (float)last;
    *part = 0;
    if (node < last && y > low)
        *part = (double)((y - low) / ((float)(node + 1) / (float)last - low));
    return node;
}

static dcrf_status add_ordered(const struct verifier *v, const struct dcrf_lp_point *point,
                               size_t channel, double weight, size_t kernel, dcrf_error *error) {
    const size_t n = v->model->variables, bins = point->bins, count = point->alive_count;
    memset(v->in, 0, n * bins * sizeof *v->in);
    for (size_t a = 0; a < n; a++) {
        double part;
        const size_t node = find_node(point->y[a * count + channel], bins, &part);
        v->in[a * bins + node] = 1 - part;
        if (part > 0)
            v->in[a * bins + node + 1] = part;
    }
    const dcrf_status status = apply(v, kernel, bins, error);
    if (status < 0)
        return status;
    for (size_t a = 0; a < n; a++) {
        double part, sum = 0;
        const size_t node = find_node(point->y[a * count + channel], bins, &part);
        for (size_t h = 0; h < bins; h++) {
            const double width = (double)(bins - 1) * point->epsilon;
            const double lower = clipped(((double)h - (double)node) / width, 1);
            const double upper = clipped(((double)h - (double)node - 1) / width, 1);
            sum += ((1 - part) * lower + part * upper) * v->out[a * bins + h];
        }
        v->dual[a * v->model->labels + point->alive[channel]] += weight * sum;
    }
    return DCRF_OK;
}

/* Where the operator takes the clipped line itself, there are no bins. */
static dcrf_status add_line(const struct verifier *v, const struct dcrf_lp_point *point,
                            size_t first, size_t count, double weight, size_t kernel,
                            dcrf_error *error) {
    const dcrf_operator *op = v->plan->kernels[kernel].op;
    const struct dcrf_line line = {.epsilon = point->epsilon,
                                   .y = point->y + first,
                                   .channels = count,
                                   .stride = point->alive_count};
    const dcrf_status status = op->methods->line_double(op, v->workspace, &line, v->out, error);
    for (size_t a = 0; a < v->model->variables && status == DCRF_OK; a++)
        for (size_t c = 0; c < count; c++)
            v->dual[a * v->model->labels + point->alive[first + c]] +=
                weight * v->out[a * count + c];
    return status;
}

/* A recorded point through one kernel; with bins, which are channels themselves, label by label. */
static dcrf_status add_point(const struct verifier *v, const struct dcrf_lp_point *point,
                             double weight, size_t kernel, int *is_feasible, dcrf_error *error) {
    const bool has_lines = v->plan->kernels[kernel].op->methods->line_double != NULL;
    const size_t most = point->bins == 0 || has_lines ? LABELS : 1;
    dcrf_status status = DCRF_OK;
    for (size_t c = 0; c < point->alive_count && weight > 0 && status == DCRF_OK; c += most) {
        const size_t left = point->alive_count - c, count = left < most ? left : most;
        if (point->bins == 0)
            status = add_flow(v, point, c, count, weight, kernel, is_feasible, error);
        else if (has_lines)
            status = add_line(v, point, c, count, weight, kernel, error);
        else
            status = add_ordered(v, point, c, weight, kernel, error);
    }
    return status;
}

static dcrf_status add_points(const struct verifier *v, const struct dcrf_lp_record *record,
                              int *is_feasible, dcrf_error *error) {
    double total = 0;
    for (size_t k = 0; k < record->count; k++) {
        *is_feasible &= record->points[k].weight >= 0;
        total += record->points[k].weight;
    }
    *is_feasible &= total <= 1 + WEIGHT_TOLERANCE;
    for (size_t m = 0; m < v->model->kernel_count; m++) {
        for (size_t a = 0; a < v->model->variables; a++)
            v->in[a] = 1;
        dcrf_status status = apply(v, m, 1, error);
        if (status < 0)
            return status;
        memcpy(v->row_sums, v->out, v->model->variables * sizeof *v->out);
        for (size_t k = 0; k < record->count; k++) {
            const struct dcrf_lp_point *point = &record->points[k];
            /* A total above 1 by rounding is scaled back. */
            const double weight = v->model->kernels[m].weight * point->weight / fmax(1, total);
            if ((status = add_point(v, point, weight, m, is_feasible, error)) < 0)
                return status;
        }
    }
    return DCRF_OK;
}

/* ---- cliques -------------------------------------------------------------------------------- */

/* Entries are floats, rounded a few times: what is further off is no rounding. */
#define CLIQUE_TOLERANCE 1e-4

static void add_clique(const struct verifier *v, const struct dcrf_lp_record *record,
                       dcrf_clique_form form, size_t p, int *is_feasible) {
    const struct dcrf_cliques *cliques = &v->model->cliques;
    const size_t labels = v->model->labels, begin = cliques->offsets[p];
    const size_t end = cliques->offsets[p + 1], stride = v->model->stride;
    const double cost = cliques->costs[p];
    double size = 0;
    for (size_t i = 0; i < labels; i++) {
        double sum = 0;
        for (size_t k = begin; k < end; k++)
            sum += record->clique[cliques->members[k] * stride + i];
        const double mean = sum / (double)(end - begin);
        for (size_t k = begin; k < end; k++) {
            const double value = record->clique[cliques->members[k] * stride + i];
            if (form == DCRF_CLIQUE_MIN) {
                *is_feasible &= value >= 0;
                v->dual[cliques->members[k] * labels + i] += sum > 0 ? value * (cost / sum) : 0;
            } else {
                size += fabs(value - mean) / 2;
            }
        }
        const double wanted = form == DCRF_CLIQUE_MIN ? cost : 0;
        *is_feasible &= fabs(sum - wanted) <= CLIQUE_TOLERANCE * (1 + cost);
    }
    if (form == DCRF_CLIQUE_MIN)
        return;
    *is_feasible &= size <= cost * (1 + CLIQUE_TOLERANCE);
    const double factor = size > cost ? cost / size : 1;
    for (size_t i = 0; i < labels; i++) {
        double sum = 0;
        for (size_t k = begin; k < end; k++)
            sum += record->clique[cliques->members[k] * stride + i];
        for (size_t k = begin; k < end; k++)
            v->dual[cliques->members[k] * labels + i] +=
                factor *
                (record->clique[cliques->members[k] * stride + i] - sum / (double)(end - begin));
    }
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static dcrf_status verify(const struct verifier *v, const uint16_t *labels,
                          const struct dcrf_lp_record *record, dcrf_clique_form form,
                          struct dcrf_verdict *verdict, dcrf_error *error) {
    const size_t n = v->model->variables;
    const struct dcrf_cliques *cliques = &v->model->cliques;
    struct dcrf_verdict made = {.is_feasible = 1};
    dcrf_status status = find_energy(v, labels, &made.energy, error);
    if (status == DCRF_OK)
        status = add_points(v, record, &made.is_feasible, error);
    if (status < 0)
        return status;
    for (size_t p = 0; p < cliques->count; p++) {
        if (cliques->costs[p] == 0 || cliques->offsets[p] == cliques->offsets[p + 1])
            continue;
        add_clique(v, record, form, p, &made.is_feasible);
        made.lower_bound += form == DCRF_CLIQUE_MIN ? cliques->costs[p] : 0;
    }
    for (size_t a = 0; a < n; a++) {
        double lowest = INFINITY;
        for (size_t i = 0; i < v->model->labels; i++) {
            const double reduced = (double)v->model->unary[a * v->model->stride + i] -
                                   v->dual[a * v->model->labels + i];
            if (!(reduced >= lowest)) /* a NaN is kept, and the bound with it */
                lowest = reduced;
        }
        made.lower_bound += lowest;
    }
    *verdict = made;
    return DCRF_OK;
}

dcrf_status dcrf_verify(const dcrf_plan *plan, dcrf_workspace *workspace, const uint16_t *labels,
                        const struct dcrf_lp_record *record, dcrf_clique_form form,
                        struct dcrf_verdict *verdict, dcrf_error *error) {
    const size_t n = plan->model->variables;
    struct verifier v = {.plan = plan, .model = plan->model, .workspace = workspace};
    size_t channels = LABELS;
    for (size_t k = 0; k < record->count; k++)
        channels = record->points[k].bins > channels ? record->points[k].bins : channels;
    v.in = dcrf_allocate(n, channels * sizeof *v.in);
    v.out = dcrf_allocate(n, channels * sizeof *v.out);
    v.dual = dcrf_allocate_zero(n, v.model->labels * sizeof *v.dual);
    v.row_sums = dcrf_allocate(n, sizeof *v.row_sums);
    const dcrf_status status = v.in && v.out && v.dual && v.row_sums
                                   ? verify(&v, labels, record, form, verdict, error)
                                   : dcrf_fail_memory(error, "the verifier");
    dcrf_release(v.in);
    dcrf_release(v.out);
    dcrf_release(v.dual);
    dcrf_release(v.row_sums);
    return status;
}
