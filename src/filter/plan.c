/* The plan of a model, and the sum of its kernels without their diagonals
 *
 *   out = sum_m w_m (K_m - diag(K_m)) in.
 *
 * The diagonal is subtracted after the sum: it belongs to pairs (a, a), which are not part of the
 * energy. */
#include "filter/plan.h"

#include "core/error.h"
#include "core/holders.h"
#include "core/owned.h"
#include "core/timer.h"

#include <math.h>
#include <string.h>

static dcrf_status build_kernel(struct dcrf_plan_kernel *built,
                                const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_workspace *workspace, dcrf_error *error) {
    TRY(dcrf_operator_build(&built->op, features, normalization, kind, workspace, error));
    built->diagonal = dcrf_allocate(features->variables, sizeof *built->diagonal);
    if (!built->diagonal)
        return dcrf_fail_memory(error, "the diagonal of a kernel");
    return built->op->methods->diagonal(built->op, workspace, built->diagonal, error);
}

static void clear_kernel(struct dcrf_plan_kernel *built) {
    dcrf_operator_free(&built->op);
    dcrf_release(built->diagonal);
}

/* ---- what it will take ---------------------------------------------------------------------- */

/* Building time is nearly linear in the number of variables. With a time limit, a band of the grid
 * is built first, ignoring the limit, to estimate the time for the whole: fail early rather than
 * run out of time. */
#define BANDS 64
#define SMALL_PLAN 500000 /* variables: such plans take less than a second */
#define TOO_HIGH 1.25     /* tolerated overestimate of the time, as a factor */

/* Some rows in the middle. */
static struct dcrf_features band_of(const struct dcrf_features *whole) {
    struct dcrf_features band = *whole;
    const size_t axis = whole->grid.axes - 1, rows = whole->grid.size[axis];
    const size_t taken = rows > BANDS ? rows / BANDS : 1, first = (rows - taken) / 2;
    const size_t row = whole->variables / rows;
    band.grid.size[axis] = taken;
    band.origin[axis] += first;
    band.variables = taken * row;
    if (band.channel)
        band.channel += first * row * band.channels;
    if (band.channel_in_double)
        band.channel_in_double += first * row * band.channels;
    return band;
}

dcrf_status dcrf_plan_fits(double needed_s, double left_s, dcrf_error *error) {
    if (needed_s <= TOO_HIGH * left_s)
        return DCRF_OK;
    return dcrf_fail(error, DCRF_ERROR_INTERRUPTED,
                     "setting up takes about %.2g s, and the time limit leaves %.2g s", needed_s,
                     left_s > 0 ? left_s : 0);
}

static dcrf_status check_time(const dcrf_model *model, dcrf_operator_kind kind,
                              dcrf_workspace *workspace, dcrf_error *error) {
    const double deadline_s = dcrf_workspace_deadline_s(workspace), began_s = dcrf_time_s();
    double part = 1;
    dcrf_status status = DCRF_OK;
    /* No estimate for exact kernels: it would be slow too, and building them stops promptly. */
    if (!isfinite(deadline_s) || model->variables < SMALL_PLAN || kind == DCRF_OPERATOR_EXACT ||
        dcrf_workspace_source(workspace))
        return DCRF_OK;
    dcrf_workspace_put_off(workspace, (double)INFINITY);
    for (size_t m = 0; m < model->kernel_count && status == DCRF_OK; m++) {
        const struct dcrf_features band = band_of(&model->kernels[m].features);
        struct dcrf_plan_kernel built = {0};
        part = (double)band.variables / (double)model->variables;
        status =
            build_kernel(&built, &band, model->kernels[m].normalization, kind, workspace, error);
        clear_kernel(&built);
    }
    dcrf_workspace_put_off(workspace, deadline_s);
    const double now_s = dcrf_time_s();
    return status == DCRF_OK ? dcrf_plan_fits((now_s - began_s) / part, deadline_s - now_s, error)
                             : status;
}

/* ---- making ---------------------------------------------------------------------------------- */

dcrf_status dcrf_plan_new(dcrf_plan **out, const dcrf_model *model, dcrf_operator_kind kind,
                          dcrf_workspace *workspace, dcrf_error *error) {
    if (!out)
        return dcrf_fail_null(error, "the place for the plan");
    *out = NULL;
    if (!model || !workspace)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a plan needs a %s",
                         model ? "workspace" : "model");
    DCRF_ENTER(workspace, error);
    TRY(check_time(model, kind, workspace, error));
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = dcrf_allocate_zero(1, sizeof *plan);
    if (!plan)
        return dcrf_fail_memory(error, "a plan");
    plan->model = model;
    plan->kernel_revision = model->kernel_revision;
    dcrf_model_hold(model);
    plan->kernels = dcrf_allocate_zero(model->kernel_count, sizeof *plan->kernels);
    if (!plan->kernels)
        return dcrf_fail_memory(error, "a plan");
    plan->kernel_count = model->kernel_count;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        TRY(build_kernel(&plan->kernels[m], &kernel->features, kernel->normalization, kind,
                         workspace, error));
    }
    dcrf_workspace_release(workspace, &dcrf_operator_slot2); /* of the diagonals: for each vertex */
    *out = DCRF_PASS_ON(plan);
    return DCRF_OK;
}

void dcrf_plan_hold(const dcrf_plan *plan) {
    dcrf_hold(&((dcrf_plan *)plan)->holders);
}

void dcrf_plan_free(dcrf_plan **plan_pointer) {
    if (!plan_pointer || !*plan_pointer)
        return;
    dcrf_plan *plan = *plan_pointer;
    dcrf_model *model = (dcrf_model *)plan->model;
    *plan_pointer = NULL;
    if (!dcrf_let_go(&plan->holders))
        return;
    for (size_t m = 0; m < plan->kernel_count; m++)
        clear_kernel(&plan->kernels[m]);
    dcrf_release(plan->kernels);
    dcrf_release(plan);
    dcrf_model_free(&model);
}

const dcrf_model *dcrf_plan_model(const dcrf_plan *plan) {
    return plan ? plan->model : NULL;
}

const dcrf_operator *dcrf_plan_operator(const dcrf_plan *plan, size_t kernel) {
    return plan && kernel < plan->kernel_count ? plan->kernels[kernel].op : NULL;
}

/* ---- reach ---------------------------------------------------------------------------------- */

/* The row sums that a kernel was normalized by, those of a lattice up to a factor. */
static void sums_before(const struct dcrf_plan_kernel *kernel, float *sums) {
    for (size_t a = 0; a < kernel->op->variables; a++) {
        const double scale = dcrf_plan_scale(kernel, a);
        sums[a] = scale > 0 ? (float)(1 / (scale * scale)) : 0;
    }
}

dcrf_status dcrf_plan_reach(const dcrf_plan *plan, size_t kernel, dcrf_workspace *workspace,
                            double *reach, dcrf_error *error) {
    if (!plan || !workspace || !reach)
        return dcrf_fail_null(error, "the plan, the workspace or the place for a reach");
    DCRF_ENTER(workspace, error);
    TRY(dcrf_plan_check(plan, error));
    if (kernel >= plan->kernel_count)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "there is no kernel %zu", kernel);
    const struct dcrf_model_kernel *given = &plan->model->kernels[kernel];
    const dcrf_operator *op = plan->kernels[kernel].op;
    DCRF_SCOPED float *sums = dcrf_allocate(op->variables, sizeof *sums);
    if (!sums)
        return dcrf_fail_memory(error, "the row sums of a kernel");
    double scale = 1, sum = 0;
    if (given->normalization == DCRF_NORMALIZE_NONE) {
        TRY(dcrf_operator_row_sums(op, workspace, sums, op->variables, error));
    } else {
        sums_before(&plan->kernels[kernel], sums);
        if (op->methods->kind == DCRF_OPERATOR_LATTICE)
            TRY(dcrf_lattice_find_scale(&given->features, sums, workspace, &scale, error));
    }
    for (size_t a = 0; a < op->variables; a++)
        sum += (double)sums[a];
    *reach = scale * sum / (double)op->variables;
    return DCRF_OK;
}

size_t dcrf_plan_bytes(const dcrf_plan *plan) {
    if (!plan)
        return 0;
    size_t bytes = sizeof *plan + plan->kernel_count * sizeof *plan->kernels;
    for (size_t m = 0; m < plan->kernel_count; m++)
        bytes += dcrf_operator_bytes(plan->kernels[m].op) +
                 plan->model->variables * sizeof *plan->kernels[m].diagonal;
    return bytes;
}

dcrf_status dcrf_plan_check(const dcrf_plan *plan, dcrf_error *error) {
    if (plan->kernel_count != plan->model->kernel_count)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the plan was made when the model had %zu kernels; it has %zu now: make a "
                         "new plan",
                         plan->kernel_count, plan->model->kernel_count);
    if (plan->kernel_revision != plan->model->kernel_revision)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the origin of the model has changed since the plan was made: make a new "
                         "plan");
    return DCRF_OK;
}

bool dcrf_plan_is_reproducible(const dcrf_plan *plan) {
    bool is_reproducible = true;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const dcrf_operator *op = plan->kernels[m].op;
        is_reproducible &= !op->device || op->methods->kind == DCRF_OPERATOR_EXACT;
    }
    return is_reproducible;
}

bool dcrf_plan_is_exact(const dcrf_plan *plan) {
    bool is_exact = true;
    for (size_t m = 0; m < plan->kernel_count; m++)
        is_exact &= plan->kernels[m].op->methods->kind == DCRF_OPERATOR_EXACT;
    return is_exact;
}

/* ---- sums over kernels ---------------------------------------------------------------------- */

bool dcrf_plan_collect(const dcrf_plan *plan, const dcrf_workspace *workspace,
                       const size_t *kernels, size_t count, struct dcrf_together *together) {
    const struct dcrf_operator_source *source = dcrf_workspace_source(workspace);
    *together = (struct dcrf_together){.methods = source ? source->methods : NULL};
    for (size_t k = 0; k < count && source; k++) {
        const size_t m = kernels ? kernels[k] : k;
        if (plan->model->kernels[m].weight == 0)
            continue;
        if (plan->kernels[m].op->device != source->device || together->count == DCRF_MOST_TOGETHER)
            return false;
        together->operators[together->count] = plan->kernels[m].op;
        together->factors[together->count++] = (float)plan->model->kernels[m].weight;
    }
    return together->count > 0;
}

dcrf_status dcrf_plan_sum(const dcrf_plan *plan, dcrf_workspace *workspace, const size_t *kernels,
                          size_t count, const float *in, float *out, size_t channels, size_t stride,
                          dcrf_error *error) {
    struct dcrf_together together;
    if (dcrf_plan_collect(plan, workspace, kernels, count, &together))
        return together.methods->sum(together.operators, together.factors, together.count, in, out,
                                     channels, stride, error);
    bool is_first = true;
    for (size_t k = 0; k < count; k++) {
        const size_t m = kernels ? kernels[k] : k;
        const double weight = plan->model->kernels[m].weight;
        if (weight == 0)
            continue;
        const struct dcrf_application application = {.direction = DCRF_SYMMETRIC,
                                                     .in = in,
                                                     .out = out,
                                                     .channels = channels,
                                                     .stride = stride,
                                                     .factor = (float)weight,
                                                     .accumulate = !is_first};
        TRY(dcrf_operator_run(plan->kernels[m].op, workspace, &application, error));
        is_first = false;
    }
    if (is_first)
        dcrf_parallel_clear(dcrf_workspace_pool(workspace), out,
                            plan->model->variables * stride * sizeof *out);
    return DCRF_OK;
}

struct double_addition {
    const double *from;
    double *to;
    double weight;
};

static void add_doubles(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_addition *addition = context;
    for (size_t k = begin; k < end; k++)
        addition->to[k] += addition->weight * addition->from[k];
}

dcrf_status dcrf_plan_sum_double(const dcrf_plan *plan, dcrf_workspace *workspace, const double *in,
                                 double *out, double *scratch, size_t channels, dcrf_error *error) {
    const size_t count = plan->model->variables * channels;
    dcrf_parallel_clear(dcrf_workspace_pool(workspace), out, count * sizeof *out);
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const dcrf_operator *op = plan->kernels[m].op;
        struct double_addition addition = {scratch, out, plan->model->kernels[m].weight};
        if (addition.weight == 0)
            continue;
        TRY(dcrf_go_on(workspace, "summing up", error));
        TRY(op->methods->apply_double(op, workspace, in, scratch, channels, error));
        dcrf_parallel_rows(dcrf_workspace_pool(workspace), count, add_doubles, &addition);
    }
    return DCRF_OK;
}

struct diagonal_removal {
    const float *diagonal;
    const float *in;
    float *out;
    size_t channels;
    size_t stride;
};

static void remove_diagonal(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct diagonal_removal *removal = context;
    for (size_t a = begin; a < end; a++) {
        const float diagonal = removal->diagonal[a];
        const float *in = removal->in + a * removal->stride;
        float *out = removal->out + a * removal->stride;
        for (size_t c = 0; c < removal->channels; c++)
            out[c] -= diagonal * in[c];
    }
}

void dcrf_plan_remove_diagonal(const dcrf_plan *plan, dcrf_workspace *workspace,
                               const float *diagonal, const float *in, float *out, size_t channels,
                               size_t stride) {
    struct diagonal_removal removal = {diagonal, in, out, channels, stride};
    dcrf_parallel_rows(dcrf_workspace_pool(workspace), plan->model->variables, remove_diagonal,
                       &removal);
}
