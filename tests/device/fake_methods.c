/* Mean field, QP, the LP, the potential flow and the moves of the fake device: the CPU's own table
 * (src/backend/cpu/), from a copy of libdcrf in this library, on device memory (fake_memory.c).
 * Inputs are copied there, as to a GPU, and results come back only through `read`.
 *
 * FAKE_FAILURE names an entry by its table and its name, such as "lp_advance". */
#include "core/memory.h"
#include "core/workspace.h"
#include "energy/columns.h"
#include "energy/coupling.h"
#include "fake_backend.h"
#include "filter/plan.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static const struct dcrf_backend *const cpu = &dcrf_backend_cpu;

/* What a handle of the host stands for: an object of the CPU's table and its model, all in device
 * memory. */
struct object {
    dcrf_backend_device *device;
    dcrf_model model;
    dcrf_plan plan;
    dcrf_workspace *workspace;
    struct dcrf_coupling *coupling;
    void *of_cpu;

    struct dcrf_dual_space space; /* for the LP: a copy of host_space */
    const struct dcrf_dual_space *host_space;
    float *metric;       /* for the LP and the flow */
    float *row_sums, *u; /* for the flow */
    float *host_u;

    struct dcrf_backend_pictures pictures; /* for mean field of the caller's arrays */
    float *numbers;                        /* their unaries */
    dcrf_view *views;
    size_t wrong;
};

static struct object *object_of(const void *handle) {
    return (struct object *)(uintptr_t)handle;
}

/* A call of the CPU's table, with the device at work. */
#define RUN(entry, call)                                                                           \
    do {                                                                                           \
        fake_enter();                                                                              \
        const dcrf_status run_status = (call);                                                     \
        fake_leave();                                                                              \
        return run_status != DCRF_OK ? run_status : fake_refuse(entry, error);                     \
    } while (0)

/* ---- models --------------------------------------------------------------------------------- */

static void *copied(const void *from, size_t count, size_t bytes) {
    void *to = from ? dcrf_allocate(count, bytes) : NULL;
    return to ? memcpy(to, from, count * bytes) : NULL;
}

static void free_object(struct object *object) {
    fake_enter();
    dcrf_backend_device *device = object->device;
    dcrf_coupling_free(&object->coupling);
    dcrf_workspace_free(&object->workspace);
    for (size_t m = 0; m < object->plan.kernel_count; m++) {
        dcrf_release(object->plan.kernels[m].diagonal);
        dcrf_release(object->model.kernels[m].compatibility_values);
        dcrf_cuts_free(&object->model.kernels[m].cuts);
    }
    dcrf_dual_space_clear(&object->space);
    void *const held[] = {object->plan.kernels,
                          object->model.kernels,
                          object->model.unary,
                          object->model.cliques.offsets,
                          object->model.cliques.costs,
                          object->model.cliques.members,
                          object->metric,
                          object->row_sums,
                          object->u,
                          object->numbers,
                          object->views};
    for (size_t k = 0; k < sizeof held / sizeof *held; k++)
        dcrf_release(held[k]);
    dcrf_release(object);
    fake_leave();
    fake_drop(device);
}

static dcrf_status take_cuts(struct dcrf_model_kernel *kernel, const struct dcrf_cuts *from,
                             dcrf_error *error) {
    uint8_t *sets = dcrf_allocate(from->count + 1, from->labels);
    if (!sets)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake cuts");
    dcrf_cuts_sets(from, sets);
    kernel->compatibility = DCRF_COMPATIBILITY_MATRIX;
    const dcrf_status status = dcrf_cuts_new(&kernel->cuts, from->labels, from->count, sets,
                                             from->lengths, from->order, error);
    dcrf_release(sets);
    return status;
}

static dcrf_status take_kernel(struct object *object, const struct dcrf_backend_group *group,
                               size_t m, dcrf_error *error) {
    const size_t labels = object->model.labels;
    struct dcrf_model_kernel *kernel = &object->model.kernels[object->plan.kernel_count];
    struct dcrf_plan_kernel *planned = &object->plan.kernels[object->plan.kernel_count];
    object->model.kernel_count = ++object->plan.kernel_count;
    if (!fake_is_on(group->operators[m], object->device))
        return fake_fail(error, DCRF_ERROR_DEVICE, "an operator of another device");
    planned->op = group->operators[m];
    planned->diagonal = dcrf_allocate(object->model.variables, sizeof(float));
    kernel->weight = group->weights[m];
    kernel->compatibility =
        group->compatibility ? DCRF_COMPATIBILITY_MATRIX : DCRF_COMPATIBILITY_POTTS;
    kernel->compatibility_values = copied(group->compatibility, labels, labels * sizeof(float));
    if (!planned->diagonal || (group->compatibility && !kernel->compatibility_values))
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake kernel");
    const dcrf_status status = group->cuts ? take_cuts(kernel, group->cuts, error) : DCRF_OK;
    if (status < 0)
        return status;
    return planned->op->methods->diagonal(planned->op, object->workspace, planned->diagonal, error);
}

static bool take_cliques(struct object *object, const struct dcrf_cliques *given) {
    struct dcrf_cliques *cliques = &object->model.cliques;
    if (!given)
        return true;
    cliques->count = given->count;
    cliques->offsets = copied(given->offsets, given->count + 1, sizeof *cliques->offsets);
    cliques->members =
        copied(given->members, given->offsets[given->count], sizeof *cliques->members);
    cliques->costs = copied(given->costs, given->count, sizeof *cliques->costs);
    return cliques->offsets && cliques->members && cliques->costs;
}

static dcrf_status take_model(struct object *object, const struct dcrf_backend_model *given,
                              dcrf_error *error) {
    size_t kernels = 0;
    for (size_t g = 0; g < given->group_count; g++)
        kernels += given->groups[g].kernel_count;
    object->model.variables = given->variables;
    object->model.labels = given->labels;
    object->model.stride = given->stride;
    object->model.unary = copied(given->unary, given->variables, given->stride * sizeof(float));
    object->model.kernels = dcrf_allocate_zero(kernels + 1, sizeof *object->model.kernels);
    object->plan.kernels = dcrf_allocate_zero(kernels + 1, sizeof *object->plan.kernels);
    object->plan.model = &object->model;
    if (!object->model.unary || !object->model.kernels || !object->plan.kernels ||
        !take_cliques(object, given->cliques))
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake model");
    dcrf_status status = dcrf_workspace_new(&object->workspace, 1, error);
    for (size_t g = 0; g < given->group_count; g++)
        for (size_t m = 0; m < given->groups[g].kernel_count && status == DCRF_OK; m++)
            status = take_kernel(object, &given->groups[g], m, error);
    return status == DCRF_OK
               ? dcrf_coupling_new(&object->coupling, &object->plan, object->workspace, error)
               : status;
}

/* The part of the model that the CPU's table reads. */
static struct dcrf_backend_model model_of(const struct object *object) {
    return (struct dcrf_backend_model){
        .plan = &object->plan,
        .workspace = object->workspace,
        .coupling = object->coupling,
        .cliques = object->model.cliques.count > 0 ? &object->model.cliques : NULL};
}

/* The first part of every make function; the device is at work afterwards. No model: only the
 * object. */
static dcrf_status begin(const char *entry, struct object **out, dcrf_backend_device *device,
                         const struct dcrf_backend_model *model, dcrf_error *error) {
    const dcrf_status status = fake_refuse(entry, error);
    *out = NULL;
    fake_enter();
    if (status < 0)
        return status;
    struct object *object = *out = dcrf_allocate_zero(1, sizeof *object);
    if (!object)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake object");
    fake_hold(device);
    object->device = device;
    return model ? take_model(object, model, error) : DCRF_OK;
}

/* The last part: returns the handle, or nothing. */
static dcrf_status finish(struct object *object, dcrf_status status, void **handle) {
    *handle = status < 0 ? NULL : object;
    fake_leave();
    if (status < 0 && object)
        free_object(object);
    return status;
}

/* ---- mean field and QP ---------------------------------------------------------------------- */

static dcrf_status iterate_make(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                const struct dcrf_backend_model *given, enum dcrf_backend_use use,
                                dcrf_error *error) {
    struct object *object;
    dcrf_status status = begin("iterate_make", &object, device, given, error);
    if (status == DCRF_OK) {
        const struct dcrf_backend_model model = model_of(object);
        dcrf_backend_iterate *made = NULL;
        status = cpu->iterate->make(&made, NULL, &model, use, error);
        object->of_cpu = made;
    }
    return finish(object, status, (void **)out);
}

static void iterate_free(dcrf_backend_iterate *handle) {
    fake_enter();
    cpu->iterate->free(object_of(handle)->of_cpu);
    fake_leave();
    free_object(object_of(handle));
}

static const float *iterate_view(const dcrf_backend_iterate *handle) {
    (void)handle;
    return NULL;
}

static dcrf_status iterate_read(dcrf_backend_iterate *handle, float *block, dcrf_error *error) {
    RUN("iterate_read", cpu->iterate->read(object_of(handle)->of_cpu, block, error));
}

static dcrf_status iterate_labels(dcrf_backend_iterate *handle, uint16_t *labels,
                                  dcrf_error *error) {
    RUN("iterate_labels", cpu->iterate->labels(object_of(handle)->of_cpu, labels, error));
}

static dcrf_status mean_field_start(dcrf_backend_iterate *handle, const float *q, float coldness,
                                    double *entropy, dcrf_error *error) {
    RUN("mean_field_start",
        cpu->iterate->mean_field_start(object_of(handle)->of_cpu, q, coldness, entropy, error));
}

static dcrf_status mean_field_step(dcrf_backend_iterate *handle,
                                   const struct dcrf_backend_update *how, double *sums,
                                   dcrf_error *error) {
    RUN("mean_field_step",
        cpu->iterate->mean_field_step(object_of(handle)->of_cpu, how, sums, error));
}

static dcrf_status qp_start(dcrf_backend_iterate *handle, const float *y, double *sums,
                            dcrf_error *error) {
    RUN("qp_start", cpu->iterate->qp_start(object_of(handle)->of_cpu, y, sums, error));
}

static dcrf_status qp_bend(dcrf_backend_iterate *handle, double *quadratic, dcrf_error *error) {
    RUN("qp_bend", cpu->iterate->qp_bend(object_of(handle)->of_cpu, quadratic, error));
}

static dcrf_status qp_move(dcrf_backend_iterate *handle, double step, double *sums,
                           dcrf_error *error) {
    RUN("qp_move", cpu->iterate->qp_move(object_of(handle)->of_cpu, step, sums, error));
}

/* The number of pictures in the last mean field of arrays; for tests, through dlsym. */
static atomic_size_t pictures_at_once;
__attribute__((visibility("default"))) size_t fake_backend_pictures(void);
size_t fake_backend_pictures(void) {
    return atomic_load(&pictures_at_once);
}

/* The unaries as floats in device memory. Invalid ones, which a device finds only while it works,
 * become 1; the first is remembered. */
static bool copy_numbers(struct object *object) {
    struct dcrf_backend_pictures *pictures = &object->pictures;
    const size_t per_picture = pictures->variables * pictures->labels;
    object->wrong = SIZE_MAX;
    object->numbers = dcrf_allocate(pictures->count * per_picture, sizeof *object->numbers);
    object->views = dcrf_allocate(pictures->count, sizeof *object->views);
    if (!object->numbers || !object->views)
        return false;
    for (size_t k = pictures->count * per_picture; k-- > 0;) {
        const double number =
            fake_element(&pictures->unary[k / per_picture], pictures->grid,
                         k % per_picture / pictures->labels, k % pictures->labels);
        const bool is_right = pictures->kind == DCRF_UNARY_PROBABILITIES
                                  ? number >= 0 && number <= 1.001
                                  : isfinite(number);
        object->numbers[k] = is_right ? (float)number : 1;
        object->wrong = is_right ? object->wrong : k;
    }
    for (size_t p = 0; p < pictures->count; p++)
        object->views[p] = dcrf_view_interleaved(object->numbers + p * per_picture, DCRF_F32,
                                                 pictures->grid, pictures->labels);
    pictures->unary = object->views;
    return true;
}

static dcrf_status make_of_pictures(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                    const struct dcrf_backend_pictures *given, dcrf_error *error) {
    struct object *object;
    dcrf_status status = begin("make_of_pictures", &object, device, NULL, error);
    if (status == DCRF_OK)
        status = dcrf_workspace_new(&object->workspace, 1, error);
    for (size_t m = 0; m < given->kernel_count && status == DCRF_OK; m++)
        if (!fake_is_on(given->operators[m], device))
            status = fake_fail(error, DCRF_ERROR_DEVICE, "an operator of another device");
    if (status == DCRF_OK) {
        dcrf_backend_iterate *made = NULL;
        object->pictures = *given;
        object->pictures.workspace = object->workspace;
        status = copy_numbers(object)
                     ? cpu->iterate->make_of_pictures(&made, NULL, &object->pictures, error)
                     : fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake pictures");
        object->of_cpu = made;
    }
    atomic_store(&pictures_at_once, given->count);
    return finish(object, status, (void **)out);
}

static dcrf_status write_pictures(dcrf_backend_iterate *handle, size_t *wrong, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    fake_enter();
    *wrong = object_of(handle)->wrong;
    if (*wrong == SIZE_MAX)
        status = cpu->iterate->write(object_of(handle)->of_cpu, wrong, error);
    fake_leave();
    return status < 0 ? status : fake_refuse("write", error);
}

const struct dcrf_backend_iterate_methods fake_iterate = {.make = iterate_make,
                                                          .free = iterate_free,
                                                          .view = iterate_view,
                                                          .read = iterate_read,
                                                          .labels = iterate_labels,
                                                          .mean_field_start = mean_field_start,
                                                          .mean_field_step = mean_field_step,
                                                          .make_of_pictures = make_of_pictures,
                                                          .takes_several = true,
                                                          .write = write_pictures,
                                                          .qp_start = qp_start,
                                                          .qp_bend = qp_bend,
                                                          .qp_move = qp_move};

/* ---- the LP --------------------------------------------------------------------------------- */

/* The cuts of the kernels, which the LP's model does not have. The columns count all kernels, the
 * model only those with a weight. */
static dcrf_status take_columns(struct object *object, const struct dcrf_columns *columns,
                                dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    for (size_t kernel = 0, m = 0; m < object->model.kernel_count && status == DCRF_OK; kernel++) {
        if (columns->group_of[kernel] == DCRF_NO_GROUP)
            continue;
        const struct dcrf_cuts *cuts = columns->groups[columns->group_of[kernel]].cuts;
        if (cuts)
            status = take_cuts(&object->model.kernels[m], cuts, error);
        m++;
    }
    return status;
}

/* Room for the space, which is not measured yet. */
static dcrf_status take_space(struct object *object, const struct dcrf_dual_space *host,
                              dcrf_error *error) {
    object->host_space = host;
    object->metric = dcrf_allocate(object->model.variables, sizeof *object->metric);
    return object->metric ? dcrf_dual_space_init(&object->space, &object->plan, object->workspace,
                                                 host->form, error)
                          : fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake LP");
}

static void fetch_space(struct object *object) {
    const struct dcrf_dual_space *host = object->host_space;
    const size_t n = object->model.variables, cliques = object->model.cliques.count;
    struct dcrf_dual_space *space = &object->space;
    memcpy(space->row_sums, host->row_sums, n * sizeof *space->row_sums);
    if (space->group_sums)
        memcpy(space->group_sums, host->group_sums,
               n * space->columns->group_count * sizeof *space->group_sums);
    if (cliques > 0) {
        memcpy(space->clique_cost, host->clique_cost, n * sizeof *space->clique_cost);
        memcpy(space->clique_weight, host->clique_weight, n * sizeof *space->clique_weight);
        memcpy(space->stiffness, host->stiffness, cliques * sizeof *space->stiffness);
    }
    space->total = host->total;
    space->clique_total = host->clique_total;
    space->constant = host->constant;
}

static dcrf_status lp_make(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *given,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
    struct object *object;
    dcrf_status status = begin("lp_make", &object, device, given, error);
    if (status == DCRF_OK && given->cliques && space->form != DCRF_CLIQUE_MIN)
        status = fake_fail(error, DCRF_ERROR_UNSUPPORTED, "the spread form on the fake device");
    if (status == DCRF_OK)
        status = take_columns(object, space->columns, error);
    if (status == DCRF_OK)
        status = take_space(object, space, error);
    if (status == DCRF_OK) {
        const struct dcrf_backend_model model = model_of(object);
        dcrf_backend_lp *made = NULL;
        status = cpu->lp->make(&made, NULL, &model, &object->space, error);
        object->of_cpu = made;
    }
    return finish(object, status, (void **)out);
}

static void lp_free(dcrf_backend_lp *handle) {
    fake_enter();
    cpu->lp->free(object_of(handle)->of_cpu);
    fake_leave();
    free_object(object_of(handle));
}

static dcrf_status start(struct object *object, const float *y, const uint16_t *labels,
                         const float *metric, dcrf_error *error) {
    fetch_space(object);
    memcpy(object->metric, metric, object->model.variables * sizeof *metric);
    return cpu->lp->start(object->of_cpu, y, labels, object->metric, error);
}

static dcrf_status lp_start(dcrf_backend_lp *handle, const float *y, const uint16_t *labels,
                            const float *metric, dcrf_error *error) {
    RUN("lp_start", start(object_of(handle), y, labels, metric, error));
}

static dcrf_status lp_restart(dcrf_backend_lp *handle, dcrf_error *error) {
    RUN("lp_restart", cpu->lp->restart(object_of(handle)->of_cpu, error));
}

static bool lp_view(const dcrf_backend_lp *handle, struct dcrf_marginals *rows) {
    (void)handle, (void)rows;
    return false;
}

static dcrf_status lp_read(dcrf_backend_lp *handle, enum dcrf_backend_marginals which, float *block,
                           dcrf_error *error) {
    RUN("lp_read", cpu->lp->read(object_of(handle)->of_cpu, which, block, error));
}

static dcrf_status lp_labels(dcrf_backend_lp *handle, uint16_t *labels, dcrf_error *error) {
    RUN("lp_labels", cpu->lp->labels(object_of(handle)->of_cpu, labels, error));
}

static bool lp_view_best(const dcrf_backend_lp *handle, struct dcrf_dual *best) {
    (void)handle, (void)best;
    return false;
}

static dcrf_status lp_read_best(dcrf_backend_lp *handle, double *pairwise, double *clique,
                                dcrf_error *error) {
    RUN("lp_read_best", cpu->lp->read_best(object_of(handle)->of_cpu, pairwise, clique, error));
}

static dcrf_status reset_best(struct object *object, struct dcrf_roundings roundings, double *bound,
                              dcrf_error *error) {
    fetch_space(object);
    return cpu->lp->reset_best(object->of_cpu, roundings, bound, error);
}

static dcrf_status lp_reset_best(dcrf_backend_lp *handle, struct dcrf_roundings roundings,
                                 double *bound, dcrf_error *error) {
    RUN("lp_reset_best", reset_best(object_of(handle), roundings, bound, error));
}

static dcrf_status lp_write_best(dcrf_backend_lp *handle, const double *pairwise,
                                 dcrf_error *error) {
    RUN("lp_write_best", cpu->lp->write_best(object_of(handle)->of_cpu, pairwise, error));
}

static dcrf_status lp_find_point(dcrf_backend_lp *handle, const struct dcrf_pair_shape *shape,
                                 double threshold, const struct dcrf_interrupt *interrupt,
                                 dcrf_error *error) {
    RUN("lp_find_point",
        cpu->lp->find_point(object_of(handle)->of_cpu, shape, threshold, interrupt, error));
}

static dcrf_status lp_find_cliques(dcrf_backend_lp *handle, double epsilon, dcrf_error *error) {
    RUN("lp_find_cliques", cpu->lp->find_cliques(object_of(handle)->of_cpu, epsilon, error));
}

static dcrf_status lp_advance(dcrf_backend_lp *handle, const struct dcrf_backend_advance *how,
                              struct dcrf_backend_advanced *done, dcrf_error *error) {
    RUN("lp_advance", cpu->lp->advance(object_of(handle)->of_cpu, how, done, error));
}

/* The CPU's table does not have this entry; a device's may. */
static dcrf_status measure(const struct object *object, uint16_t *labels, double *unary,
                           double *pairwise, dcrf_error *error) {
    dcrf_status status = labels ? cpu->lp->labels(object->of_cpu, labels, error)
                                : fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake labels");
    *unary = *pairwise = 0;
    for (size_t a = 0; a < object->model.variables && status == DCRF_OK; a++)
        *unary += (double)object->model.unary[a * object->model.stride + labels[a]];
    for (size_t m = 0; m < object->plan.kernel_count && status == DCRF_OK; m++) {
        const dcrf_operator *op = object->plan.kernels[m].op;
        double sum;
        status = op->methods->disagreement(op, object->workspace, labels, false, &sum, error);
        *pairwise += object->model.kernels[m].weight * sum;
    }
    return status;
}

static dcrf_status lp_energy(dcrf_backend_lp *handle, double *unary, double *pairwise,
                             dcrf_error *error) {
    fake_enter();
    uint16_t *labels = dcrf_allocate(object_of(handle)->model.variables, sizeof *labels);
    const dcrf_status status = measure(object_of(handle), labels, unary, pairwise, error);
    dcrf_release(labels);
    fake_leave();
    return status < 0 ? status : fake_refuse("lp_energy", error);
}

static dcrf_status proximal_begin(dcrf_backend_lp *handle, bool has_reset, dcrf_error *error) {
    RUN("proximal_begin", cpu->lp->proximal->begin(object_of(handle)->of_cpu, has_reset, error));
}

static dcrf_status proximal_project(dcrf_backend_lp *handle, enum dcrf_backend_marginals which,
                                    double lambda, double delta, double *slope, dcrf_error *error) {
    RUN("proximal_project",
        cpu->lp->proximal->project(object_of(handle)->of_cpu, which, lambda, delta, slope, error));
}

static dcrf_status proximal_find_cliques(dcrf_backend_lp *handle, double step, dcrf_error *error) {
    RUN("proximal_find_cliques",
        cpu->lp->proximal->find_cliques(object_of(handle)->of_cpu, step, error));
}

static dcrf_status proximal_measure(dcrf_backend_lp *handle, double *sums, dcrf_error *error) {
    RUN("proximal_measure", cpu->lp->proximal->measure(object_of(handle)->of_cpu, sums, error));
}

static dcrf_status proximal_mix(dcrf_backend_lp *handle, double delta,
                                struct dcrf_roundings roundings, double *bound, dcrf_error *error) {
    RUN("proximal_mix",
        cpu->lp->proximal->mix(object_of(handle)->of_cpu, delta, roundings, bound, error));
}

static const struct dcrf_backend_proximal_methods fake_proximal = {.begin = proximal_begin,
                                                                   .project = proximal_project,
                                                                   .find_cliques =
                                                                       proximal_find_cliques,
                                                                   .measure = proximal_measure,
                                                                   .mix = proximal_mix};

const struct dcrf_backend_lp_methods fake_lp = {.make = lp_make,
                                                .free = lp_free,
                                                .start = lp_start,
                                                .restart = lp_restart,
                                                .view = lp_view,
                                                .read = lp_read,
                                                .labels = lp_labels,
                                                .view_best = lp_view_best,
                                                .read_best = lp_read_best,
                                                .reset_best = lp_reset_best,
                                                .write_best = lp_write_best,
                                                .find_point = lp_find_point,
                                                .find_cliques = lp_find_cliques,
                                                .advance = lp_advance,
                                                .energy = lp_energy,
                                                .proximal = &fake_proximal};

/* ---- the potential flow --------------------------------------------------------------------- */

static dcrf_status make_flow(struct object *object, const float *row_sums, const float *metric,
                             float *u, dcrf_error *error) {
    const struct dcrf_backend_model model = model_of(object);
    const size_t n = object->model.variables;
    dcrf_backend_flow *made = NULL;
    object->row_sums = copied(row_sums, n, sizeof *row_sums);
    object->metric = copied(metric, n, sizeof *metric);
    object->u = dcrf_allocate(n, object->model.stride * sizeof *u);
    object->host_u = u;
    if (!object->row_sums || !object->metric || !object->u)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake flow");
    const dcrf_status status =
        cpu->flow->make(&made, NULL, &model, object->row_sums, object->metric, object->u, error);
    object->of_cpu = made;
    return status;
}

static dcrf_status flow_make(dcrf_backend_flow **out, dcrf_backend_device *device,
                             const struct dcrf_backend_model *given, const float *row_sums,
                             const float *metric, float *u, dcrf_error *error) {
    struct object *object;
    dcrf_status status = begin("flow_make", &object, device, given, error);
    if (status == DCRF_OK)
        status = make_flow(object, row_sums, metric, u, error);
    return finish(object, status, (void **)out);
}

static void flow_free(dcrf_backend_flow *handle) {
    fake_enter();
    cpu->flow->free(object_of(handle)->of_cpu);
    fake_leave();
    free_object(object_of(handle));
}

static dcrf_status flow_iterate(dcrf_backend_flow *handle, size_t iterations,
                                const struct dcrf_interrupt *interrupt, double *residual,
                                double *estimate, dcrf_error *error) {
    RUN("flow_iterate", cpu->flow->iterate(object_of(handle)->of_cpu, iterations, interrupt,
                                           residual, estimate, error));
}

static dcrf_status read_flow(struct object *object, double *low, double *scale, dcrf_error *error) {
    memcpy(object->host_u, object->u,
           object->model.variables * object->model.stride * sizeof *object->u);
    return cpu->flow->read(object->of_cpu, low, scale, error);
}

static dcrf_status flow_read(dcrf_backend_flow *handle, double *low, double *scale,
                             dcrf_error *error) {
    RUN("flow_read", read_flow(object_of(handle), low, scale, error));
}

const struct dcrf_backend_flow_methods fake_flow = {
    .make = flow_make, .free = flow_free, .iterate = flow_iterate, .read = flow_read};

/* ---- moves ---------------------------------------------------------------------------------- */

static dcrf_status moves_make(dcrf_backend_moves **out, dcrf_backend_device *device,
                              const struct dcrf_backend_model *given, dcrf_error *error) {
    struct object *object;
    dcrf_status status = begin("moves_make", &object, device, given, error);
    if (status == DCRF_OK) {
        const struct dcrf_backend_model model = model_of(object);
        dcrf_backend_moves *made = NULL;
        status = cpu->moves->make(&made, NULL, &model, error);
        object->of_cpu = made;
    }
    return finish(object, status, (void **)out);
}

static void moves_free(dcrf_backend_moves *handle) {
    fake_enter();
    cpu->moves->free(object_of(handle)->of_cpu);
    fake_leave();
    free_object(object_of(handle));
}

static dcrf_status moves_load(dcrf_backend_moves *handle, const uint16_t *labels, double *energy,
                              dcrf_error *error) {
    RUN("moves_load", cpu->moves->load(object_of(handle)->of_cpu, labels, energy, error));
}

static dcrf_status moves_read(dcrf_backend_moves *handle, uint16_t *labels, dcrf_error *error) {
    RUN("moves_read", cpu->moves->read(object_of(handle)->of_cpu, labels, error));
}

static dcrf_status moves_tables(dcrf_backend_moves *handle, double *unary, double *mass,
                                size_t *sizes, dcrf_error *error) {
    RUN("moves_tables", cpu->moves->tables(object_of(handle)->of_cpu, unary, mass, sizes, error));
}

static dcrf_status moves_relabel(dcrf_backend_moves *handle, const uint16_t *map,
                                 dcrf_error *error) {
    RUN("moves_relabel", cpu->moves->relabel(object_of(handle)->of_cpu, map, error));
}

static dcrf_status moves_find_gains(dcrf_backend_moves *handle, bool of_cliques,
                                    dcrf_error *error) {
    RUN(of_cliques ? "moves_find_clique_gains" : "moves_find_gains",
        cpu->moves->find_gains(object_of(handle)->of_cpu, of_cliques, error));
}

static dcrf_status moves_change(dcrf_backend_moves *handle, bool of_cliques, uint64_t salt,
                                uint32_t mask, size_t *changed, dcrf_error *error) {
    RUN("moves_change",
        cpu->moves->change(object_of(handle)->of_cpu, of_cliques, salt, mask, changed, error));
}

static dcrf_status moves_change_best(dcrf_backend_moves *handle, bool of_cliques,
                                     dcrf_error *error) {
    RUN("moves_change_best", cpu->moves->change_best(object_of(handle)->of_cpu, of_cliques, error));
}

static dcrf_status moves_evaluate(dcrf_backend_moves *handle, double *energy, dcrf_error *error) {
    RUN("moves_evaluate", cpu->moves->evaluate(object_of(handle)->of_cpu, energy, error));
}

static void moves_accept(dcrf_backend_moves *handle) {
    fake_enter();
    cpu->moves->accept(object_of(handle)->of_cpu);
    fake_leave();
}

const struct dcrf_backend_moves_methods fake_moves = {.make = moves_make,
                                                      .free = moves_free,
                                                      .load = moves_load,
                                                      .read = moves_read,
                                                      .tables = moves_tables,
                                                      .relabel = moves_relabel,
                                                      .find_gains = moves_find_gains,
                                                      .change = moves_change,
                                                      .change_best = moves_change_best,
                                                      .evaluate = moves_evaluate,
                                                      .accept = moves_accept};
