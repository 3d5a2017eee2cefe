#include "solver/lp_record.h"

#include "core/error.h"
#include "core/memory.h"
#include "solver/lp.h"
#include "solver/solver.h"

#include <string.h>

void dcrf_lp_record_clear(struct dcrf_lp_record *record) {
    for (size_t k = 0; k < record->count; k++) {
        dcrf_release(record->points[k].alive);
        dcrf_release(record->points[k].y);
    }
    dcrf_release(record->points);
    *record = (struct dcrf_lp_record){0};
}

static dcrf_status add_recipe(struct dcrf_dual *dual, size_t length, dcrf_error *error) {
    dual->recipe = dcrf_allocate_zero(length, sizeof *dual->recipe);
    if (!dual->recipe)
        return dcrf_fail_memory(error, "the record of the LP");
    dual->recipe_length = length;
    return DCRF_OK;
}

dcrf_status dcrf_solver_record(dcrf_solver *solver, size_t capacity, dcrf_error *error) {
    if (solver->settings.method != DCRF_METHOD_LP || solver->has_started ||
        solver->settings.lp.schedule != DCRF_LP_SCHEDULE_HUBER)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "only the LP by Huber continuation can be recorded, from its start on");
    struct dcrf_lp *lp = solver->state;
    lp->record.points = dcrf_allocate_zero(capacity, sizeof *lp->record.points);
    if (!lp->record.points)
        return dcrf_fail_memory(error, "the record of the LP");
    lp->record.capacity = capacity;
    lp->record.variables = solver->problem.model->variables;
    dcrf_status status = add_recipe(&lp->huber.current, capacity, error);
    if (status == DCRF_OK)
        status = add_recipe(&lp->huber.average, capacity, error);
    return status == DCRF_OK ? add_recipe(&lp->best, capacity, error) : status;
}

dcrf_status dcrf_lp_record_point(struct dcrf_lp *lp, struct dcrf_dual *dual,
                                 const struct dcrf_pair_shape *shape, const float *y,
                                 const size_t *alive, size_t alive_count, dcrf_error *error) {
    struct dcrf_lp_record *record = &lp->record;
    const size_t stride = lp->problem->model->stride;
    if (record->capacity == 0)
        return DCRF_OK;
    if (record->count == record->capacity)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the record of the LP has room for %zu points only", record->capacity);
    struct dcrf_lp_point point = {
        .epsilon = shape->epsilon, .bins = shape->bins, .alive_count = alive_count};
    point.alive = dcrf_allocate(alive_count, sizeof *point.alive);
    point.y = dcrf_allocate(record->variables, alive_count * sizeof *point.y);
    if (!point.alive || !point.y) {
        dcrf_release(point.alive);
        dcrf_release(point.y);
        return dcrf_fail_memory(error, "the record of the LP");
    }
    for (size_t k = 0; k < alive_count; k++)
        point.alive[k] = alive ? alive[k] : k;
    for (size_t a = 0; a < record->variables; a++)
        for (size_t k = 0; k < alive_count; k++)
            point.y[a * alive_count + k] = y[a * stride + point.alive[k]];
    for (size_t k = 0; k < dual->recipe_length; k++)
        dual->recipe[k] = 0;
    dual->recipe[record->count] = 1;
    record->points[record->count++] = point;
    return DCRF_OK;
}

const struct dcrf_lp_record *dcrf_solver_recorded(const dcrf_solver *solver) {
    if (solver->settings.method != DCRF_METHOD_LP)
        return NULL;
    struct dcrf_lp *lp = solver->state;
    if (lp->record.capacity == 0 || dcrf_lp_device_fetch_best(lp, NULL) < 0)
        return NULL;
    for (size_t k = 0; k < lp->record.count; k++)
        lp->record.points[k].weight = lp->best.recipe[k];
    lp->record.clique = lp->best.clique;
    return &lp->record;
}
