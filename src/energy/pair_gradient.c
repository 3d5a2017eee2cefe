/* Derivatives of the pairwise term. With F = (K - diag) q and s = factor w mu F, a derivative e of
 * the loss with respect to s gives
 *
 *   dL/dw = factor sum_a e_a . mu F_a,   dL/dmu(i, j) = factor w sum_a e_ai F_aj,
 *   G = dL/dF = factor w mu' e,          dL/dq = (K - diag) G.
 *
 * Features. dL = sum_{a != b} A_ab dK_ab with A_ab = G_a . q_b and K_ab = s_a k_ab s_b, where
 * s = n^-1/2 and n = k 1 with normalization, 1 without. Since dk_ab = -k_ab (f_a - f_b).(df_a -
 * df_b) and ds_a = -s_a / (2 n_a) sum_c dk_ac, the derivative with respect to f_a is
 *
 *   - sum_b K_ab (G_a . q_b + q_a . G_b) (f_a - f_b) - sum_b k_ab (h_a + h_b) (f_a - f_b),
 *   h_a = -(G_a . F_a + q_a . (dL/dq)_a) / (2 n_a)   with normalization, 0 without,
 *
 * and a sum of u_a K_ab v_b (f_a - f_b) is u_a (f_a (K v)_a - (K (f v))_a): filters of v and of v
 * times each feature. Features are taken relative to their mean, to reduce cancellation.
 *
 * Sigmas. f = x / sigma, so dk_ab = k_ab (f_a - f_b)^2 dln sigma for the feature of that sigma, and
 *
 *   dL/dln sigma = sum_ab G_a . q_b K_ab (f_a - f_b)^2 + sum_a h_a sum_b k_ab (f_a - f_b)^2.
 *
 * The square has three terms: f_a^2 G_a . (K q)_a, f_b^2 q_b . (K G)_b, whose filtered blocks are
 * already available, and -2 f_a G_a . (K (f q))_a, one filter per feature and step.
 *
 * On a lattice, k_ab is the lattice's kernel, which is not a Gaussian. For positions, these sums
 * are closer to the exact operator's than finite differences of lattices, in which points move to
 * other simplices as sigma changes. For colours they are not (docs/howto/train.md has figures);
 * there, differences are used (sigma_difference.c). Both are computed for all steps at once
 * (sigma_span.c). */
#include "energy/pair_gradient.h"

#include "core/error.h"
#include "core/owned.h"

#include <math.h>
#include <string.h>

/* Sums over variables that are too many for dcrf_parallel_sums are computed in this many parts,
 * independently of the number of threads. */
#define PARTS 16

struct kernel_sums {
    double weight;
    double *compatibility; /* labels x labels; NULL: not wanted */
    float *features;       /* variables x dimension; NULL: not wanted */
    double mean[DCRF_MAX_FEATURES];
    double *h;                       /* per variable; with features or sigmas, and normalization */
    double sigma[DCRF_MAX_FEATURES]; /* dL/dln sigma */
};

struct dcrf_pair_gradient {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_derivatives wanted;
    struct kernel_sums *kernels;
    float *filtered;              /* K q */
    float *adjoint;               /* G */
    float *returned;              /* K G */
    float *in, *out;              /* for features: f v and K (f v) */
    const float *const *q;        /* of all steps */
    struct dcrf_sigma_span *span; /* if sigmas of a lattice or grid are wanted */
    double *parts;                /* PARTS x labels x labels; with compatibilities */
    struct dcrf_owned owned;
};

/* ---- memory --------------------------------------------------------------------------------- */

static void find_mean(const struct dcrf_features *features, double *mean) {
    float row[DCRF_MAX_FEATURES];
    for (size_t c = 0; c < features->dimension; c++)
        mean[c] = 0;
    for (size_t a = 0; a < features->variables; a++) {
        dcrf_features_row(features, a, row);
        for (size_t c = 0; c < features->dimension; c++)
            mean[c] += (double)row[c];
    }
    for (size_t c = 0; c < features->dimension; c++)
        mean[c] /= (double)features->variables;
}

static bool wants_features(const struct dcrf_pair_gradient *g, size_t kernel) {
    return g->wanted.features && g->wanted.features[kernel];
}

static bool wants_sigmas(const struct dcrf_pair_gradient *g, size_t kernel) {
    return g->wanted.sigma && g->plan->model->kernels[kernel].features.kind != DCRF_KERNEL_FEATURES;
}

static bool is_in_span(const struct dcrf_pair_gradient *g, size_t kernel) {
    return g->wanted.sigma && dcrf_sigma_span_has(g->plan, kernel);
}

/* h, if it is summed step by step; otherwise it comes from the span. */
static double *summed_h(const struct dcrf_pair_gradient *g, size_t kernel) {
    return wants_features(g, kernel) || !is_in_span(g, kernel) ? g->kernels[kernel].h : NULL;
}

static bool take_memory(struct dcrf_pair_gradient *g) {
    const dcrf_model *model = g->plan->model;
    const size_t n = model->variables, row = model->stride * sizeof(float);
    struct dcrf_owned *owned = &g->owned;
    bool has_blocks = false;
    g->kernels = dcrf_own_zero(owned, model->kernel_count, sizeof *g->kernels);
    g->filtered = dcrf_own_zero(owned, n, row);
    g->adjoint = dcrf_own_zero(owned, n, row);
    g->returned = dcrf_own_zero(owned, n, row);
    for (size_t m = 0; m < model->kernel_count && !owned->is_short; m++) {
        struct kernel_sums *sums = &g->kernels[m];
        const struct dcrf_features *features = &model->kernels[m].features;
        if (g->wanted.compatibility)
            sums->compatibility =
                dcrf_own_zero(owned, model->labels, model->labels * sizeof *sums->compatibility);
        if (wants_features(g, m))
            sums->features = dcrf_own_zero(owned, n, features->dimension * sizeof *sums->features);
        if (wants_features(g, m) || wants_sigmas(g, m)) {
            sums->h = dcrf_own_zero(owned, n, sizeof *sums->h);
            has_blocks = has_blocks || wants_features(g, m) || !is_in_span(g, m);
            find_mean(features, sums->mean);
        }
    }
    if (g->wanted.compatibility)
        g->parts = dcrf_own(owned, PARTS * model->labels, model->labels * sizeof *g->parts);
    if (has_blocks) {
        g->in = dcrf_own_zero(owned, n, row);
        g->out = dcrf_own_zero(owned, n, row);
    }
    return !owned->is_short;
}

static dcrf_status check_room(const void *array, size_t count, size_t needed, const char *what,
                              dcrf_error *error) {
    return array ? dcrf_check_room(array, count, needed, what, error) : DCRF_OK;
}

/* Have the caller's arrays room for what is wanted? */
static dcrf_status check_wanted(const dcrf_derivatives *wanted, const dcrf_model *model,
                                dcrf_error *error) {
    const size_t kernels = model->kernel_count, labels = model->labels;
    TRY(dcrf_check_reserved(wanted->reserved, sizeof wanted->reserved, "derivatives", error));
    TRY(check_room(wanted->weight, wanted->weight_count, kernels, "the derivatives by weights",
                   error));
    TRY(check_room(wanted->compatibility, wanted->compatibility_count, kernels * labels * labels,
                   "the derivatives by compatibilities", error));
    TRY(check_room(wanted->sigma, wanted->sigma_count, kernels * DCRF_MAX_FEATURES,
                   "the derivatives by sigmas", error));
    for (size_t m = 0; m < kernels && wanted->features; m++)
        TRY(check_room(wanted->features[m], wanted->features_count,
                       model->variables * model->kernels[m].features.dimension,
                       "the derivatives by features", error));
    return DCRF_OK;
}

/* The span of the steps, if any kernel needs it. */
static dcrf_status take_span(struct dcrf_pair_gradient *g, size_t steps, dcrf_error *error) {
    for (size_t m = 0; m < g->plan->kernel_count; m++)
        if (is_in_span(g, m))
            return dcrf_sigma_span_new(&g->span, g->plan, g->workspace, g->q, steps, error);
    return DCRF_OK;
}

dcrf_status dcrf_pair_gradient_new(struct dcrf_pair_gradient **out, const dcrf_plan *plan,
                                   dcrf_workspace *workspace, const dcrf_derivatives *wanted,
                                   const float *const *q, size_t steps, dcrf_error *error) {
    *out = NULL;
    TRY(dcrf_plan_check(plan, error));
    DCRF_AT_END(dcrf_pair_gradient_free)
    struct dcrf_pair_gradient *g = dcrf_allocate_zero(1, sizeof *g);
    if (!g)
        return dcrf_fail_memory(error, "derivatives");
    g->plan = plan;
    g->workspace = workspace;
    g->q = q;
    if (wanted)
        g->wanted = *wanted;
    TRY(check_wanted(&g->wanted, plan->model, error));
    if (!take_memory(g))
        return dcrf_fail_memory(error, "derivatives");
    TRY(take_span(g, steps, error));
    *out = DCRF_PASS_ON(g);
    return DCRF_OK;
}

void dcrf_pair_gradient_free(struct dcrf_pair_gradient **pointer) {
    struct dcrf_pair_gradient *g = *pointer;
    if (!g)
        return;
    dcrf_disown(&g->owned);
    dcrf_sigma_span_free(&g->span);
    dcrf_release(g);
    *pointer = NULL;
}

/* ---- one kernel, one step ------------------------------------------------------------------- */

struct step {
    struct dcrf_pair_gradient *g;
    size_t kernel;
    const float *q, *e;
    double factor;
    float *q_derivative;
    size_t feature;      /* for the passes over features */
    const float *values; /* v */
    const float *other;  /* u */
    const float *spread; /* K v */
};

static const struct dcrf_model_kernel *kernel_of(const struct step *step) {
    return &step->g->plan->model->kernels[step->kernel];
}

static dcrf_status filter(const struct step *step, const float *in, float *out, dcrf_error *error) {
    const dcrf_model *model = step->g->plan->model;
    const struct dcrf_application application = {.direction = DCRF_SYMMETRIC,
                                                 .in = in,
                                                 .out = out,
                                                 .channels = model->labels,
                                                 .stride = model->stride,
                                                 .factor = 1};
    return dcrf_operator_run(step->g->plan->kernels[step->kernel].op, step->g->workspace,
                             &application, error);
}

/* Compute G and its part of h_a n_a = -(G_a . F_a + q_a . (dL/dq)_a) / 2, and return the sum for
 * the weight. */
static double adjoint_rows(void *context, size_t begin, size_t end) {
    const struct step *step = context;
    struct dcrf_pair_gradient *g = step->g;
    const dcrf_model *model = g->plan->model;
    const struct dcrf_model_kernel *kernel = kernel_of(step);
    const float *diagonal = g->plan->kernels[step->kernel].diagonal;
    const double factor = step->factor * kernel->weight;
    double total = 0, *h = summed_h(g, step->kernel);
    for (size_t a = begin; a < end; a++) {
        const size_t at = a * model->stride;
        const double row = dcrf_pair_row(kernel, model->labels, step->e + at, step->q + at,
                                         g->filtered + at, diagonal[a], factor, g->adjoint + at);
        total += row;
        if (h)
            h[a] -= factor * row / 2;
    }
    return step->factor * kernel->factor * total; /* with respect to the weight as given */
}

/* One of PARTS parts of dL/dmu. */
static void add_products(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct step *step = context;
    const dcrf_model *model = step->g->plan->model;
    const float *diagonal = step->g->plan->kernels[step->kernel].diagonal;
    const size_t n = model->variables, labels = model->labels;
    for (size_t part = begin; part < end; part++) {
        double *sums = step->g->parts + part * labels * labels;
        memset(sums, 0, labels * labels * sizeof *sums);
        for (size_t a = n * part / PARTS; a < n * (part + 1) / PARTS; a++) {
            const float *e = step->e + a * model->stride, *q = step->q + a * model->stride;
            const float *filtered = step->g->filtered + a * model->stride;
            for (size_t j = 0; j < labels; j++) {
                const double f = (double)filtered[j] - (double)diagonal[a] * (double)q[j];
                for (size_t i = 0; i < labels; i++)
                    sums[j * labels + i] += (double)e[i] * f;
            }
        }
    }
}

static void add_compatibility(struct step *step) {
    struct dcrf_pair_gradient *g = step->g;
    const size_t labels = g->plan->model->labels;
    double *sums = g->kernels[step->kernel].compatibility;
    const double factor = step->factor * kernel_of(step)->given_weight;
    dcrf_parallel_for(dcrf_workspace_pool(g->workspace), PARTS, 1, add_products, step);
    for (size_t part = 0; part < PARTS; part++)
        for (size_t i = 0; i < labels; i++)
            for (size_t j = 0; j < labels; j++)
                sums[i * labels + j] += factor * g->parts[(part * labels + j) * labels + i];
}

/* dL/dq += (K - diag) G, and its part of h */
static void add_returned(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct step *step = context;
    const dcrf_model *model = step->g->plan->model;
    const float *diagonal = step->g->plan->kernels[step->kernel].diagonal;
    double *h = summed_h(step->g, step->kernel);
    for (size_t a = begin; a < end; a++) {
        const size_t at = a * model->stride;
        const float *returned = step->g->returned + at, *adjoint = step->g->adjoint + at;
        for (size_t i = 0; step->q_derivative && i < model->labels; i++)
            step->q_derivative[at + i] += returned[i] - diagonal[a] * adjoint[i];
        if (h)
            h[a] -=
                dcrf_row_dot(model->labels, step->q + at, returned, adjoint, (double)diagonal[a]) /
                2;
    }
}

/* ---- features ------------------------------------------------------------------------------- */

static float centred(const struct step *step, size_t a) {
    float row[DCRF_MAX_FEATURES];
    dcrf_features_row(&kernel_of(step)->features, a, row);
    return (float)((double)row[step->feature] - step->g->kernels[step->kernel].mean[step->feature]);
}

static void multiply_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct step *step = context;
    const dcrf_model *model = step->g->plan->model;
    for (size_t a = begin; a < end; a++) {
        const float f = centred(step, a);
        for (size_t i = 0; i < model->labels; i++)
            step->g->in[a * model->stride + i] = f * step->values[a * model->stride + i];
    }
}

/* sums_a -= u_a . (f_a (K v)_a - (K (f v))_a) */
static void subtract_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct step *step = context;
    const dcrf_model *model = step->g->plan->model;
    const size_t dimension = kernel_of(step)->features.dimension;
    float *sums = step->g->kernels[step->kernel].features;
    for (size_t a = begin; a < end; a++) {
        const double f = (double)centred(step, a);
        double sum = 0;
        for (size_t i = 0; i < model->labels; i++) {
            const size_t k = a * model->stride + i;
            sum += (double)step->other[k] * (f * (double)step->spread[k] - (double)step->g->out[k]);
        }
        sums[a * dimension + step->feature] -= (float)sum;
    }
}

static dcrf_status add_features_of(struct step *step, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(step->g->workspace);
    const size_t n = step->g->plan->model->variables;
    for (step->feature = 0; step->feature < kernel_of(step)->features.dimension; step->feature++) {
        dcrf_parallel_rows(pool, n, multiply_rows, step);
        TRY(filter(step, step->g->in, step->g->out, error));
        dcrf_parallel_rows(pool, n, subtract_rows, step);
    }
    return DCRF_OK;
}

static dcrf_status add_features(struct step *step, dcrf_error *error) {
    step->values = step->q;
    step->spread = step->g->filtered;
    step->other = step->g->adjoint;
    dcrf_status status = add_features_of(step, error);
    step->values = step->g->adjoint;
    step->spread = step->g->returned;
    step->other = step->q;
    if (status == DCRF_OK)
        status = add_features_of(step, error);
    return status;
}

/* ---- sigmas --------------------------------------------------------------------------------- */

/* sum_a f_a^2 (G_a . (K q)_a + q_a . (K G)_a) - 2 f_a G_a . (K (f q))_a */
static double squares_of_rows(void *context, size_t begin, size_t end) {
    const struct step *step = context;
    const struct dcrf_pair_gradient *g = step->g;
    const dcrf_model *model = g->plan->model;
    double total = 0;
    for (size_t a = begin; a < end; a++) {
        const double f = (double)centred(step, a);
        double own = 0, mixed = 0;
        for (size_t i = 0; i < model->labels; i++) {
            const size_t k = a * model->stride + i;
            own += (double)g->adjoint[k] * (double)g->filtered[k] +
                   (double)step->q[k] * (double)g->returned[k];
            mixed += (double)g->adjoint[k] * (double)g->out[k];
        }
        total += f * (f * own - 2 * mixed);
    }
    return total;
}

static dcrf_status add_squares(struct step *step, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(step->g->workspace);
    const size_t n = step->g->plan->model->variables;
    const size_t count = kernel_of(step)->features.dimension;
    step->values = step->q;
    for (step->feature = 0; step->feature < count; step->feature++) {
        dcrf_parallel_rows(pool, n, multiply_rows, step);
        TRY(filter(step, step->g->in, step->g->out, error));
        step->g->kernels[step->kernel].sigma[step->feature] +=
            dcrf_parallel_sum(pool, n, squares_of_rows, step);
    }
    return DCRF_OK;
}

/* ---- the calls ------------------------------------------------------------------------------ */

dcrf_status dcrf_pair_gradient_add(struct dcrf_pair_gradient *g, size_t t, const float *e,
                                   double factor, float *q_derivative, dcrf_error *error) {
    const dcrf_model *model = g->plan->model;
    const float *q = g->q[t];
    dcrf_pool *pool = dcrf_workspace_pool(g->workspace);
    if (g->span)
        dcrf_sigma_span_add_step(g->span, t, e, factor);
    if (q_derivative)
        memset(q_derivative, 0, model->variables * model->stride * sizeof *q_derivative);
    for (size_t m = 0; m < model->kernel_count; m++) {
        struct step step = {
            .g = g, .kernel = m, .q = q, .e = e, .factor = factor, .q_derivative = q_derivative};
        TRY(filter(&step, q, g->filtered, error));
        g->kernels[m].weight += dcrf_parallel_sum(pool, model->variables, adjoint_rows, &step);
        if (g->kernels[m].compatibility)
            add_compatibility(&step);
        if (!q_derivative && !g->kernels[m].h)
            continue;
        TRY(filter(&step, g->adjoint, g->returned, error));
        dcrf_parallel_rows(pool, model->variables, add_returned, &step);
        if (g->kernels[m].features)
            TRY(add_features(&step, error));
        if (is_in_span(g, m))
            dcrf_sigma_span_add_kernel(g->span, t, m, g->filtered, g->returned);
        else if (wants_sigmas(g, m))
            TRY(add_squares(&step, error));
    }
    return DCRF_OK;
}

/* The contribution of the normalization, with k = K / (s s'), to the derivative with respect to f_a
 * is
 *
 *   -sum_b k_ab (h_a + h_b) (f_a - f_b),
 *
 * and to that with respect to ln sigma
 *
 *   sum_a h_a sum_b k_ab (f_a - f_b)^2.
 *
 * A block with the channels 1, f, f^2, h, h f has rows of 2 + 3 d floats. */
static dcrf_status add_normalization(struct dcrf_pair_gradient *g, size_t m, dcrf_error *error) {
    const dcrf_model *model = g->plan->model;
    const struct dcrf_features *features = &model->kernels[m].features;
    const size_t n = model->variables, d = features->dimension;
    const size_t channels = 2 + 3 * d, stride = dcrf_padded(channels);
    DCRF_SCOPED float *in = dcrf_allocate_zero(2 * n, stride * sizeof *in);
    if (!in)
        return dcrf_fail_memory(error, "derivatives");
    float *out = in + n * stride, row[DCRF_MAX_FEATURES];
    struct kernel_sums *sums = &g->kernels[m];
    for (size_t a = 0; a < n; a++) {
        /* The scale is 0 for a row that couples to nothing. */
        const double scale = dcrf_plan_scale(&g->plan->kernels[m], a);
        const double inverse = scale > 0 ? 1 / scale : 0;
        const double h = sums->h[a] * scale * scale;
        float *to = in + a * stride;
        dcrf_features_row(features, a, row);
        sums->h[a] = h;
        to[0] = (float)inverse;
        to[1 + 2 * d] = (float)(h * inverse);
        for (size_t c = 0; c < d; c++) {
            const double f = (double)row[c] - sums->mean[c];
            to[1 + c] = (float)(f * inverse);
            to[1 + d + c] = (float)(f * f * inverse);
            to[2 + 2 * d + c] = (float)(h * f * inverse);
        }
    }
    TRY(dcrf_operator_apply(g->plan->kernels[m].op, g->workspace, DCRF_SYMMETRIC, in, out,
                            n * stride, channels, stride, error));
    for (size_t a = 0; a < n; a++) {
        const double scale = dcrf_plan_scale(&g->plan->kernels[m], a);
        const double inverse = scale > 0 ? 1 / scale : 0;
        const float *from = out + a * stride;
        dcrf_features_row(features, a, row);
        for (size_t c = 0; c < d; c++) {
            const double f = (double)row[c] - sums->mean[c], mixed = (double)from[1 + c];
            const double sum = sums->h[a] * (f * (double)from[0] - mixed) +
                               f * (double)from[1 + 2 * d] - (double)from[2 + 2 * d + c];
            if (sums->features)
                sums->features[a * d + c] -= (float)(sum * inverse);
            sums->sigma[c] += sums->h[a] * inverse *
                              (f * (f * (double)from[0] - 2 * mixed) + (double)from[1 + d + c]);
        }
    }
    return DCRF_OK;
}

/* dL/dsigma of one kernel. */
static dcrf_status write_sigmas(struct dcrf_pair_gradient *g, size_t m, dcrf_error *error) {
    const struct dcrf_features *features = &g->plan->model->kernels[m].features;
    const size_t summed = is_in_span(g, m) ? features->axes : features->dimension;
    double *sigma = g->wanted.sigma + m * DCRF_MAX_FEATURES;
    memset(sigma, 0, DCRF_MAX_FEATURES * sizeof *sigma);
    if (!wants_sigmas(g, m))
        return DCRF_OK;
    for (size_t c = 0; c < summed; c++)
        sigma[c] = g->kernels[m].sigma[c] / dcrf_features_sigma(features, c);
    return is_in_span(g, m)
               ? dcrf_sigma_span_channels(g->span, m, g->wanted.channels_share_sigma != 0,
                                          g->filtered, sigma, error)
               : DCRF_OK;
}

dcrf_status dcrf_pair_gradient_finish(struct dcrf_pair_gradient *g, dcrf_error *error) {
    const dcrf_model *model = g->plan->model;
    const size_t labels = model->labels;
    for (size_t m = 0; m < model->kernel_count; m++) {
        struct kernel_sums *sums = &g->kernels[m];
        if (is_in_span(g, m))
            TRY(dcrf_sigma_span_positions(g->span, m, sums->mean, g->filtered, sums->sigma,
                                          summed_h(g, m) ? NULL : sums->h, error));
        if (sums->h && model->kernels[m].normalization == DCRF_NORMALIZE_SYMMETRIC)
            TRY(add_normalization(g, m, error));
        if (g->wanted.sigma)
            TRY(write_sigmas(g, m, error));
        if (g->wanted.weight)
            g->wanted.weight[m] = sums->weight;
        if (g->wanted.compatibility)
            memcpy(g->wanted.compatibility + m * labels * labels, sums->compatibility,
                   labels * labels * sizeof *sums->compatibility);
        if (g->wanted.features && g->wanted.features[m])
            memcpy(g->wanted.features[m], sums->features,
                   model->variables * model->kernels[m].features.dimension *
                       sizeof *sums->features);
    }
    return DCRF_OK;
}

dcrf_status dcrf_pairwise_gradient(const dcrf_plan *plan, dcrf_workspace *workspace, const float *y,
                                   size_t stride, double *energy, float *y_derivative, size_t count,
                                   const dcrf_derivatives *derivatives, dcrf_error *error) {
    if (!plan || !workspace || !y || !energy)
        return dcrf_fail_null(error,
                              "the plan, the workspace, the block or the place for the energy");
    DCRF_ENTER(workspace, error);
    const dcrf_model *model = plan->model;
    DCRF_AT_END(dcrf_pair_gradient_free) struct dcrf_pair_gradient *g = NULL;
    if (stride != model->stride)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "the block has a stride of %zu floats, not %zu",
                         stride, model->stride);
    if (y_derivative)
        TRY(dcrf_check_rows(y_derivative, count, model->variables, stride, stride,
                            "the derivative by y", error));
    if (derivatives && derivatives->unary)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the pairwise energy has no derivative by unary energies");
    TRY(dcrf_pair_gradient_new(&g, plan, workspace, derivatives, &y, 1, error));
    TRY(dcrf_pair_gradient_add(g, 0, y, 1, y_derivative, error));
    TRY(dcrf_pair_gradient_finish(g, error));
    *energy = 0;
    for (size_t m = 0; m < model->kernel_count; m++)
        *energy += model->kernels[m].given_weight * g->kernels[m].weight;
    for (size_t k = 0; y_derivative && k < model->variables * stride; k++)
        y_derivative[k] *= 2; /* y appears on both sides of a symmetric form */
    return DCRF_OK;
}
