#include "backend/dual_space.h"

#include "core/error.h"
#include "core/memory.h"
#include "energy/columns.h"
#include "energy/energy.h"
#include "filter/plan.h"

/* A kernel's row sums, to be added to the totals. */
struct rows {
    struct dcrf_dual_space *space;
    double weight, reach, stiffness;
    float *group_sums; /* of the kernel's group; NULL for Potts */
    const double *image;
};

static void add_image(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rows *rows = context;
    for (size_t a = begin; a < end; a++) {
        rows->space->sums[a] += rows->reach * rows->image[a];
        rows->space->curvature[a] += (float)(rows->stiffness * rows->image[a]);
    }
    for (size_t a = begin; a < end && rows->group_sums; a++)
        rows->group_sums[a] += (float)(rows->weight * rows->image[a]);
}

/* `image`: room for a number per variable. */
static dcrf_status add_rows(struct dcrf_dual_space *space, size_t kernel, const double *ones,
                            double *image, dcrf_error *error) {
    const dcrf_operator *op = space->plan->kernels[kernel].op;
    const size_t n = space->plan->model->variables, group = space->columns->group_of[kernel];
    const double weight = space->plan->model->kernels[kernel].weight;
    if (weight == 0)
        return DCRF_OK;
    const struct dcrf_column_group *columns = &space->columns->groups[group];
    struct rows rows = {.space = space,
                        .weight = weight,
                        .reach = weight * dcrf_columns_reach(columns),
                        .stiffness = weight * dcrf_columns_stiffness(columns),
                        .group_sums = space->group_sums ? space->group_sums + group * n : NULL,
                        .image = image};
    TRY(dcrf_go_on(space->workspace, "summing up", error));
    TRY(op->methods->apply_double(op, space->workspace, ones, image, 1, error));
    dcrf_parallel_rows(dcrf_workspace_pool(space->workspace), n, add_image, &rows);
    return DCRF_OK;
}

struct clearing {
    struct dcrf_dual_space *space;
    double *ones;
};

static void clear_sums(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct clearing *clearing = context;
    struct dcrf_dual_space *space = clearing->space;
    for (size_t a = begin; a < end; a++) {
        clearing->ones[a] = 1;
        space->sums[a] = 0;
        space->curvature[a] = 0;
    }
    for (size_t g = 0; g < space->columns->group_count && space->group_sums; g++)
        for (size_t a = begin; a < end; a++)
            space->group_sums[g * space->variables + a] = 0;
}

static void round_sums(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_dual_space *space = context;
    for (size_t a = begin; a < end; a++) {
        space->row_sums[a] = (float)(space->sums[a] * (1 + 2 * DCRF_DUAL_UNIT));
        if (space->is_potts)
            space->curvature[a] = space->row_sums[a];
    }
}

/* The row sums in double, so that their rounding error is negligible. */
static dcrf_status sum_rows(struct dcrf_dual_space *space, dcrf_error *error) {
    const size_t n = space->plan->model->variables;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    double *ones = dcrf_workspace_slot(space->workspace, &dcrf_energy_slot, n, sizeof *ones);
    double *image = dcrf_workspace_slot(space->workspace, &dcrf_filtered_slot, n, sizeof *image);
    if (!ones || !image)
        return dcrf_fail_memory(error, "the row sums of the kernels");
    struct clearing clearing = {space, ones};
    dcrf_parallel_rows(pool, n, clear_sums, &clearing);
    for (size_t m = 0; m < space->plan->kernel_count; m++)
        TRY(add_rows(space, m, ones, image, error));
    dcrf_parallel_rows(pool, n, round_sums, space);
    space->total = 0;
    for (size_t a = 0; a < n; a++)
        space->total += space->sums[a];
    return DCRF_OK;
}

/* The term of a clique is smoothed by max_v -<v, y> - |v|^2 epsilon / (2 stiffness): the stiffer,
 * the closer to the term itself, and the shorter the steps. A fraction of the members' row sums
 * shortens the steps little; a stiffness above C is of no use. */
#define STIFFNESS_PART 0.25

static double choose_stiffness(const struct dcrf_dual_space *space, size_t clique) {
    const struct dcrf_cliques *cliques = &space->plan->model->cliques;
    const size_t begin = cliques->offsets[clique], end = cliques->offsets[clique + 1];
    const double cost = cliques->costs[clique], size = (double)(end - begin);
    double row_sums = 0;
    for (size_t k = begin; k < end; k++)
        row_sums += (double)space->row_sums[cliques->members[k]];
    return end == begin ? 0 : fmin(cost, fmax(cost, STIFFNESS_PART * row_sums) / size);
}

static void spread_costs(struct dcrf_dual_space *space) {
    const struct dcrf_cliques *cliques = &space->plan->model->cliques;
    space->constant = space->clique_total = 0;
    for (size_t p = 0; p < cliques->count; p++) {
        const size_t size = cliques->offsets[p + 1] - cliques->offsets[p];
        if (space->form == DCRF_CLIQUE_MIN)
            space->constant += cliques->costs[p];
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++) {
            space->clique_cost[cliques->members[k]] =
                (float)(cliques->costs[p] * (1 + 2 * DCRF_DUAL_UNIT));
            space->clique_weight[cliques->members[k]] = (float)(cliques->costs[p] / (double)size);
            space->clique_total += (double)space->clique_cost[cliques->members[k]];
        }
    }
}

/* ---- distances ------------------------------------------------------------------------------ */

static dcrf_status fill_distances(const struct dcrf_column_group *group, size_t labels,
                                  double *matrix, float *distances, dcrf_error *error) {
    const dcrf_status status =
        group->cuts ? dcrf_cuts_distances(group->cuts, matrix, error) : DCRF_OK;
    for (size_t i = 0; i < labels && status == DCRF_OK; i++)
        for (size_t j = 0; j < labels; j++)
            distances[i * labels + j] = group->cuts ? (float)matrix[i * labels + j] : i != j;
    return status;
}

static dcrf_status find_distances(struct dcrf_dual_space *space, dcrf_error *error) {
    const size_t labels = space->labels, cells = labels * labels;
    const struct dcrf_columns *columns = space->columns;
    space->distances = dcrf_allocate(columns->group_count, cells * sizeof *space->distances);
    double *matrix = dcrf_allocate(cells, sizeof *matrix);
    dcrf_status status =
        space->distances && matrix ? DCRF_OK : dcrf_fail_memory(error, "the metric of the cuts");
    for (size_t g = 0; g < columns->group_count && status == DCRF_OK; g++)
        status = fill_distances(&columns->groups[g], labels, matrix, space->distances + g * cells,
                                error);
    dcrf_release(matrix);
    return status;
}

/* ---- the space ------------------------------------------------------------------------------ */

dcrf_status dcrf_dual_space_init(struct dcrf_dual_space *space, const dcrf_plan *plan,
                                 dcrf_workspace *workspace, dcrf_clique_form form,
                                 dcrf_error *error) {
    const size_t n = plan->model->variables;
    const struct dcrf_cliques *cliques = &plan->model->cliques;
    const bool has_cliques = cliques->count > 0;
    *space = (struct dcrf_dual_space){.plan = plan,
                                      .workspace = workspace,
                                      .variables = n,
                                      .labels = plan->model->labels,
                                      .stride = plan->model->stride,
                                      .form = form};
    dcrf_status status = dcrf_columns_new(&space->columns, plan->model, error);
    if (status < 0)
        return status;
    space->is_potts = dcrf_columns_are_labels(space->columns);
    space->sums = dcrf_allocate(n, sizeof(double));
    space->row_sums = dcrf_allocate(n, sizeof(float));
    space->curvature = dcrf_allocate(n, sizeof(float));
    if (!space->is_potts)
        space->group_sums = dcrf_allocate(n, space->columns->group_count * sizeof(float));
    space->is_open = dcrf_allocate(n, sizeof *space->is_open);
    for (size_t p = 0; p < cliques->count; p++) {
        const size_t size = cliques->offsets[p + 1] - cliques->offsets[p];
        space->largest_clique = size > space->largest_clique ? size : space->largest_clique;
    }
    if (has_cliques) {
        space->clique_cost = dcrf_allocate_zero(n, sizeof(float));
        space->clique_weight = dcrf_allocate_zero(n, sizeof(float));
        space->stiffness = dcrf_allocate(cliques->count, sizeof(double));
    }
    if (space->sums && space->row_sums && space->curvature && space->is_open &&
        (space->is_potts || space->group_sums) &&
        (!has_cliques || (space->clique_cost && space->clique_weight && space->stiffness)))
        status = space->is_potts ? DCRF_OK : find_distances(space, error);
    else
        status = dcrf_fail_memory(error, "the row sums of the kernels");
    if (status < 0)
        dcrf_dual_space_clear(space);
    return status;
}

dcrf_status dcrf_dual_space_measure(struct dcrf_dual_space *space, dcrf_error *error) {
    spread_costs(space);
    const dcrf_status status = sum_rows(space, error);
    for (size_t p = 0; p < space->plan->model->cliques.count && status == DCRF_OK; p++)
        space->stiffness[p] = choose_stiffness(space, p);
    return status;
}

void dcrf_dual_space_clear(struct dcrf_dual_space *space) {
    dcrf_release(space->sums);
    dcrf_release(space->row_sums);
    dcrf_release(space->curvature);
    dcrf_release(space->group_sums);
    dcrf_release(space->distances);
    dcrf_columns_free(&space->columns);
    dcrf_release(space->is_open);
    dcrf_release(space->clique_cost);
    dcrf_release(space->clique_weight);
    dcrf_release(space->stiffness);
    *space = (struct dcrf_dual_space){0};
}

/* ---- roundings ------------------------------------------------------------------------------ */

/* In double, each number is a sum of at most 2 n + 1000 terms, then over the bins. An operator
 * defined by a formula adds its own approximation error. */
static double roundings_of(const dcrf_operator *op, const struct dcrf_pair_shape *shape,
                           size_t variables) {
    if (shape->is_precise)
        return (3 * (double)variables + 2000) * DCRF_DOUBLE_ROUNDING +
               (op->methods->double_error ? op->methods->double_error(op) * 0x1p24 : 0);
    if (op->methods->line)
        return (double)op->methods->line_roundings(op);
    const bool is_sign = shape->epsilon == 0 || dcrf_pair_slope(shape) == 1;
    return (double)op->methods->ordered_roundings(op, shape->bins, is_sign);
}

double dcrf_pair_roundings(const struct dcrf_dual_space *space,
                           const struct dcrf_pair_shape *shape) {
    const dcrf_plan *plan = space->plan;
    double roundings = 0, of_map = 0;
    size_t used = 0;
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (plan->model->kernels[m].weight != 0) {
            used++;
            roundings =
                fmax(roundings, roundings_of(plan->kernels[m].op, shape, plan->model->variables));
            of_map =
                fmax(of_map,
                     dcrf_columns_roundings(&space->columns->groups[space->columns->group_of[m]]));
        }
    /* For the map of columns, the product with the weight, and the sum over the kernels. */
    return roundings + (1 + (double)used + of_map) * DCRF_DOUBLE_ROUNDING;
}

/* Columns are scaled to their prescribed sums in double. */
double dcrf_clique_roundings(const struct dcrf_dual_space *space) {
    return ((double)space->largest_clique + 8) * DCRF_DOUBLE_ROUNDING;
}
