/* Sums over kernels for the check of a certificate, in double.
 *
 * Exact: Gaussians by plain loops over all pairs that count, sharing no code with the exact
 * operator. A kernel value with an exponent beyond MOST_EXPONENT is below 5e-18 and left out;
 * sum_error covers these. Fast: the operators in double; a member's value is distributed over the
 * two nodes around it, with one channel per node. */
#include "core/error.h"
#include "verify/check.h"

#include <math.h>
#include <string.h>

#define MOST_EXPONENT 40.0
#define CHECK_CHANNELS 16
#define CUTS_TOGETHER 256 /* their sums are on the stack */
#define VALUES (DCRF_VALUE_MOST + 1)

#define WORK "checking a certificate"
/* Errors of a Gaussian: features are scaled doubles; their differences, squares and sum are rounded
 * relative to the exponent, which is at most MOST_EXPONENT and has at most 32 terms; then exp, the
 * weight and two scales, each a root of a sum of such values: below 40 (32 + 4) 2^-53 = 2e-13 for
 * either scale and the value itself. */
#define KERNEL_ERROR 1e-12
#define LEFT_OUT 5e-18

/* ---- points of a mixture -------------------------------------------------------------------- */

static double clip(double value) {
    return dcrf_check_most(-1, dcrf_check_least(1, value));
}

/* The node below a value; *part: the weight of the node above. */
static size_t find_node(const struct dcrf_certificate_point *point, uint32_t value, double *part) {
    const uint64_t at = (uint64_t)value * (point->nodes - 1);
    *part = (double)(at % point->levels) / point->levels;
    return (size_t)(at / point->levels);
}

/* F of a value and a node. */
static double line_to_node(const struct dcrf_certificate_point *point, size_t low, double part,
                           size_t node) {
    const double slope = 1 / ((double)(point->nodes - 1) * point->epsilon);
    const double steps = (double)node - (double)low;
    return (1 - part) * clip(steps * slope) + part * clip((steps - 1) * slope);
}

/* F of two values. */
static double line_of(const struct dcrf_certificate_point *point, uint32_t v, uint32_t w) {
    double from, to;
    if (point->nodes == 0)
        return clip(((double)w - (double)v) / (point->levels * point->epsilon));
    const size_t low = find_node(point, v, &from), high = find_node(point, w, &to);
    return (1 - to) * line_to_node(point, low, from, high) +
           to * line_to_node(point, low, from, high + 1);
}

static const uint32_t *plane_of(const struct dcrf_certificate_mixture *mixture, size_t point,
                                size_t label) {
    const struct dcrf_certificate_point *p = &mixture->points[point];
    return p->plane[label] == 0 ? NULL : p->values + (p->plane[label] - (size_t)1) * mixture->size;
}

static dcrf_status allocate_columns(struct dcrf_check *check, size_t columns, dcrf_error *error) {
    dcrf_release(check->columns);
    check->columns = dcrf_allocate(columns, check->mixture->size * sizeof *check->columns);
    return check->columns ? DCRF_OK : dcrf_fail_memory(error, "the check of a certificate");
}

/* ---- the Gaussians themselves --------------------------------------------------------------- */

static double kernel_value(const struct dcrf_check *check, size_t a, size_t b) {
    double sum = 0;
    for (size_t m = 0; m < check->model->kernel_count; m++) {
        const size_t d = check->model->kernels[m].features.dimension;
        const double *f = check->features[m] + a * d, *g = check->features[m] + b * d;
        double squared = 0;
        for (size_t i = 0; i < d; i++)
            squared += (f[i] - g[i]) * (f[i] - g[i]);
        if (squared <= 2 * MOST_EXPONENT)
            sum += check->model->kernels[m].weight * exp(-squared / 2) * check->scale[m][a] *
                   check->scale[m][b];
    }
    return sum;
}

/* Add a pair's contribution to the sum of each cut in `columns`, over all points of a mixture. */
static void add_cuts(const struct dcrf_check *check, size_t a, size_t b, double k, double *sums) {
    const size_t cuts = check->cuts_at_once, size = check->mixture->size;
    for (size_t p = 0; p < check->mixture->point_count; p++)
        for (size_t c = 0; c < cuts; c++) {
            const uint32_t *column = check->columns + (p * cuts + c) * size;
            const uint32_t v = column[check->place[a]], w = column[check->place[b]];
            if (v != w)
                sums[c] += check->mixture->points[p].weight * k *
                           line_of(&check->mixture->points[p], v, w);
        }
}

static void add_exactly_by_cuts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_check *check = context;
    const size_t labels = check->model->labels, cuts = check->cuts_at_once;
    double by_cut[CUTS_TOGETHER];
    for (size_t a = begin; a < end; a++) {
        memset(by_cut, 0, cuts * sizeof *by_cut);
        for (size_t b = 0; b < check->model->variables && check->wanted[a]; b++) {
            const double k = check->counts[b] && b != a ? kernel_value(check, a, b) : 0;
            if (k > 0)
                add_cuts(check, a, b, k, by_cut);
        }
        for (size_t c = 0; c < cuts; c++)
            dcrf_check_spread(check, check->first_cut + c, by_cut[c], check->sums + a * labels);
    }
}

static void add_pair(const struct dcrf_check *check, size_t a, size_t b, double k, double *sums) {
    const size_t labels = check->model->labels;
    if (check->kind == DCRF_CHECK_LABELS) {
        sums[check->labels[b]] += k;
    } else if (check->kind == DCRF_CHECK_MIXTURE) {
        for (size_t p = 0; p < check->mixture->point_count; p++)
            for (size_t i = 0; i < labels; i++) {
                const uint32_t *plane = plane_of(check->mixture, p, i);
                if (plane)
                    sums[i] += check->mixture->points[p].weight * k *
                               line_of(&check->mixture->points[p], plane[check->place[a]],
                                       plane[check->place[b]]);
            }
    } else if (check->kind == DCRF_CHECK_POSSIBLE) {
        for (size_t i = 0; i < labels; i++)
            sums[i] += check->possible[b * labels + i] ? k : 0;
    } else if (check->member[b]) {
        for (size_t i = 0; i < labels; i++)
            if (check->content->plane[i] != 0)
                sums[i] += k * check->line[dcrf_certificate_value(check->content, a, i) * VALUES +
                                           dcrf_certificate_value(check->content, b, i)];
    } else {
        for (size_t i = 0; i < labels; i++)
            sums[i] += check->possible[b * labels + i] && i != check->labels[a] ? 2 * k : 0;
    }
}

static void add_exactly(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_check *check = context;
    const size_t labels = check->model->labels;
    for (size_t a = begin; a < end; a++) {
        double *sums = check->sums + a * labels;
        memset(sums, 0, labels * sizeof *sums);
        for (size_t b = 0; b < check->model->variables && check->wanted[a]; b++)
            if (check->counts[b] && b != a) {
                const double k = kernel_value(check, a, b);
                if (k > 0)
                    add_pair(check, a, b, k, sums);
            }
    }
}

static dcrf_status for_all_rows(struct dcrf_check *check, dcrf_task task, void *context,
                                dcrf_error *error) {
    TRY(dcrf_go_on(check->workspace, WORK, error));
    return dcrf_parallel_while(check->workspace, check->model->variables, 1, task, context)
               ? DCRF_OK
               : dcrf_fail_interrupted(check->workspace, WORK, error);
}

struct normalization {
    const double *features;
    size_t dimension, variables;
    double *row_sums;
};

static void sum_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct normalization *c = context;
    for (size_t a = begin; a < end; a++) {
        c->row_sums[a] = 0;
        for (size_t b = 0; b < c->variables; b++) {
            double squared = 0;
            for (size_t i = 0; i < c->dimension; i++) {
                const double difference =
                    c->features[a * c->dimension + i] - c->features[b * c->dimension + i];
                squared += difference * difference;
            }
            if (squared <= 2 * MOST_EXPONENT)
                c->row_sums[a] += exp(-squared / 2);
        }
    }
}

/* Sums of n products with factors up to 2, twice: one over the decided variables, one over the
 * others. */
static void find_errors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_check *check = context;
    const double n = (double)check->model->variables;
    double weights = 0;
    for (size_t m = 0; m < check->model->kernel_count; m++)
        weights += fabs(check->model->kernels[m].weight);
    for (size_t a = begin; a < end; a++) {
        double row_sum = 0;
        for (size_t b = 0; b < check->model->variables; b++)
            row_sum += b != a ? kernel_value(check, a, b) : 0;
        check->sum_error[a] =
            4 * ((n + 64) * 0x1p-52 + KERNEL_ERROR) * row_sum + 4 * n * LEFT_OUT * weights;
    }
}

static dcrf_status init_exact(struct dcrf_check *check, dcrf_error *error) {
    const dcrf_model *model = check->model;
    const size_t n = model->variables;
    check->features = dcrf_own(&check->owned, model->kernel_count, sizeof *check->features);
    check->scale = dcrf_own(&check->owned, model->kernel_count, sizeof *check->scale);
    for (size_t m = 0; m < model->kernel_count && !check->owned.is_short; m++) {
        const struct dcrf_features *features = &model->kernels[m].features;
        const size_t d = features->dimension;
        check->features[m] = dcrf_own(&check->owned, n, d * sizeof(double));
        check->scale[m] = dcrf_own(&check->owned, n, sizeof(double));
        if (check->owned.is_short)
            break;
        for (size_t a = 0; a < n; a++)
            for (size_t i = 0; i < d; i++)
                check->features[m][a * d + i] =
                    dcrf_features_value(features, a, i) * dcrf_features_factor(features, i);
        struct normalization c = {check->features[m], d, n, check->scale[m]};
        TRY(for_all_rows(check, sum_rows, &c, error));
        for (size_t a = 0; a < n; a++) {
            const double row_sum = check->scale[m][a];
            const bool is_normalized = model->kernels[m].normalization == DCRF_NORMALIZE_SYMMETRIC;
            check->scale[m][a] = is_normalized ? 1 / sqrt(row_sum) : 1;
        }
    }
    return check->owned.is_short ? dcrf_fail_memory(error, "the check of a certificate")
                                 : for_all_rows(check, find_errors, check, error);
}

/* ---- the fast operators --------------------------------------------------------------------- */

static dcrf_status apply(struct dcrf_check *check, size_t channels, dcrf_error *error) {
    const size_t count = check->model->variables * channels;
    TRY(dcrf_go_on(check->workspace, WORK, error));
    double *total = check->out + count; /* `out` has room for both */
    memset(total, 0, count * sizeof *total);
    for (size_t m = 0; m < check->plan->kernel_count; m++) {
        const dcrf_operator *op = check->plan->kernels[m].op;
        TRY(op->methods->apply_double(op, check->workspace, check->in, check->out, channels,
                                      error));
        for (size_t k = 0; k < count; k++)
            total[k] += check->model->kernels[m].weight * check->out[k];
    }
    memmove(check->out, total, count * sizeof *total);
    return DCRF_OK;
}

/* Sums whose terms do not depend on a, with labels as channels. */
static dcrf_status add_indicators(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    for (size_t first = 0; first < labels; first += CHECK_CHANNELS) {
        const size_t channels = labels - first < CHECK_CHANNELS ? labels - first : CHECK_CHANNELS;
        for (size_t b = 0; b < n; b++)
            for (size_t c = 0; c < channels; c++)
                check->in[b * channels + c] =
                    check->counts[b] &&
                    (check->kind == DCRF_CHECK_LABELS ? check->labels[b] == first + c
                                                      : check->possible[b * labels + first + c]);
        TRY(apply(check, channels, error));
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < channels; c++)
                check->sums[a * labels + first + c] = check->out[a * channels + c];
    }
    return DCRF_OK;
}

static dcrf_status add_group(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    const size_t channels =
        DCRF_VALUE_NODES + 1; /* the last one is for variables outside the group */
    for (size_t i = 0; i < labels; i++) {
        bool is_empty = check->content->plane[i] == 0;
        for (size_t b = 0; b < n && is_empty; b++)
            is_empty = !check->counts[b] || check->member[b] || !check->possible[b * labels + i];
        for (size_t a = 0; a < n && is_empty; a++)
            check->sums[a * labels + i] = 0;
        if (is_empty)
            continue;
        for (size_t b = 0; b < n; b++)
            for (size_t h = 0; h < channels; h++)
                check->in[b * channels + h] =
                    !check->counts[b] ? 0
                    : check->member[b]
                        ? (h < DCRF_VALUE_NODES
                               ? dcrf_check_share(dcrf_certificate_value(check->content, b, i), h)
                               : 0)
                        : h == DCRF_VALUE_NODES && check->possible[b * labels + i];
        TRY(apply(check, channels, error));
        for (size_t a = 0; a < n; a++) {
            const double *out = check->out + a * channels;
            const uint8_t value = dcrf_certificate_value(check->content, a, i);
            double sum = i != check->labels[a] ? 2 * out[DCRF_VALUE_NODES] : 0;
            for (size_t h = 0; h < DCRF_VALUE_NODES; h++)
                sum += check->line[value * VALUES + h * DCRF_VALUE_STEPS] * out[h];
            check->sums[a * labels + i] = sum;
        }
    }
    return DCRF_OK;
}

/* Add one plane of a point, that of a label or of a cut, a block of nodes at a time. */
static dcrf_status add_plane(struct dcrf_check *check, size_t p, const uint32_t *plane,
                             size_t label_or_cut, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    const struct dcrf_certificate_point *point = &check->mixture->points[p];
    for (size_t first = 0; plane && first < point->nodes; first += CHECK_CHANNELS) {
        const size_t left = point->nodes - first;
        const size_t channels = left < CHECK_CHANNELS ? left : CHECK_CHANNELS;
        double part;
        memset(check->in, 0, n * channels * sizeof *check->in);
        for (size_t b = 0; b < n; b++) {
            if (!check->counts[b])
                continue;
            const size_t node = find_node(point, plane[check->place[b]], &part);
            if (node >= first && node < first + channels)
                check->in[b * channels + node - first] = 1 - part;
            if (node + 1 >= first && node + 1 < first + channels)
                check->in[b * channels + node + 1 - first] = part;
        }
        TRY(apply(check, channels, error));
        for (size_t a = 0; a < n; a++) {
            if (!check->wanted[a])
                continue;
            const size_t node = find_node(point, plane[check->place[a]], &part);
            double sum = 0;
            for (size_t h = 0; h < channels; h++)
                sum += line_to_node(point, node, part, first + h) * check->out[a * channels + h];
            if (check->distance)
                dcrf_check_spread(check, label_or_cut, point->weight * sum,
                                  check->sums + a * labels);
            else
                check->sums[a * labels + label_or_cut] += point->weight * sum;
        }
    }
    return DCRF_OK;
}

static dcrf_status add_mixture(struct dcrf_check *check, dcrf_error *error) {
    const size_t count = check->model->variables * check->model->labels;
    const size_t planes = check->distance ? check->content->cut_count : check->model->labels;
    if (check->distance)
        TRY(allocate_columns(check, 1, error));
    memset(check->sums, 0, count * sizeof *check->sums);
    for (size_t i = 0; i < planes; i++)
        for (size_t p = 0; p < check->mixture->point_count; p++) {
            if (check->distance)
                dcrf_check_fill_column(check, p, i, check->columns);
            TRY(add_plane(check, p,
                          check->distance ? check->columns : plane_of(check->mixture, p, i), i,
                          error));
        }
    return DCRF_OK;
}

/* The operators in double sum at most 2 n + 1000 terms, and their results are summed again. */
static dcrf_status init_fast(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables;
    check->in = dcrf_own(&check->owned, n, CHECK_CHANNELS * sizeof *check->in);
    check->out = dcrf_own(&check->owned, n, 2 * CHECK_CHANNELS * sizeof *check->out);
    if (!check->in || !check->out)
        return dcrf_fail_memory(error, "the check of a certificate");
    for (size_t a = 0; a < n; a++)
        check->in[a] = 1;
    const dcrf_status status = apply(check, 1, error);
    for (size_t a = 0; a < n && status == DCRF_OK; a++)
        check->sum_error[a] = 4 * (3 * (double)n + 2000) * 0x1p-52 * check->out[a];
    return status;
}

/* ---- either --------------------------------------------------------------------------------- */

/* Every sum of a check is at most a few times the row sums (and these are at most 2^40 times their
 * errors), the cliques' costs and the unaries (floats). */
#define MOST_MAGNITUDE 1e200

static dcrf_status check_magnitudes(const struct dcrf_check *check, dcrf_error *error) {
    double sum = 0;
    for (size_t a = 0; a < check->model->variables; a++)
        sum += check->sum_error[a];
    for (size_t p = 0; p < check->model->cliques.count; p++)
        sum += check->model->cliques.costs[p];
    return sum <= MOST_MAGNITUDE
               ? DCRF_OK
               : dcrf_fail(error, DCRF_ERROR_SIZE,
                           "the numbers of the model are too large to check a certificate");
}

dcrf_status dcrf_check_kernels_init(struct dcrf_check *check, dcrf_error *error) {
    TRY(check->content->identity.is_exact ? init_exact(check, error) : init_fast(check, error));
    const double scale =
        dcrf_check_cuts_scale(check->content, check->distance, check->model->labels);
    for (size_t a = 0; a < check->model->variables; a++)
        check->sum_error[a] *= scale;
    return check_magnitudes(check, error);
}

/* The exact sums need the values of all points for every pair, but not of all cuts: at most as many
 * at a time as there are labels, so that the columns take no more memory than the values of a
 * certificate may. */
static dcrf_status add_by_cuts(struct dcrf_check *check, dcrf_error *error) {
    const size_t cuts = check->content->cut_count, labels = check->model->labels;
    const size_t points = check->mixture->point_count, size = check->mixture->size;
    const size_t fitting = labels < CUTS_TOGETHER ? labels : CUTS_TOGETHER;
    const size_t most = cuts < fitting ? cuts : fitting;
    TRY(allocate_columns(check, points * most, error));
    memset(check->sums, 0, check->model->variables * labels * sizeof *check->sums);
    for (check->first_cut = 0; check->first_cut < cuts; check->first_cut += most) {
        const size_t left = cuts - check->first_cut, count = left < most ? left : most;
        check->cuts_at_once = count;
        for (size_t k = 0; k < points * count; k++) {
            TRY(dcrf_go_on(check->workspace, WORK, error));
            dcrf_check_fill_column(check, k / count, check->first_cut + k % count,
                                   check->columns + k * size);
        }
        TRY(for_all_rows(check, add_exactly_by_cuts, check, error));
    }
    return DCRF_OK;
}

void dcrf_check_kernels_clear(struct dcrf_check *check) {
    dcrf_release(check->columns);
    dcrf_plan_free(&check->own_plan);
}

dcrf_status dcrf_check_add_up(struct dcrf_check *check, dcrf_error *error) {
    if (!check->plan)
        return check->kind == DCRF_CHECK_MIXTURE && check->distance
                   ? add_by_cuts(check, error)
                   : for_all_rows(check, add_exactly, check, error);
    return check->kind == DCRF_CHECK_GROUP     ? add_group(check, error)
           : check->kind == DCRF_CHECK_MIXTURE ? add_mixture(check, error)
                                               : add_indicators(check, error);
}
