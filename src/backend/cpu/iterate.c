#include "backend/cpu/iterate.h"

#include "energy/labelling.h"

#include <string.h>

void dcrf_cpu_iterate_init(dcrf_backend_iterate *iterate, const struct dcrf_backend_model *model,
                           void (*free_state)(dcrf_backend_iterate *iterate)) {
    *iterate = (dcrf_backend_iterate){.coupling = model->coupling,
                                      .model = model->coupling->plan->model,
                                      .cliques = model->cliques,
                                      .pool = dcrf_workspace_pool(model->coupling->workspace),
                                      .free = free_state};
}

size_t dcrf_cpu_clique_count(const dcrf_backend_iterate *iterate) {
    return iterate->cliques ? iterate->cliques->count : 0;
}

static dcrf_status make_iterate(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                const struct dcrf_backend_model *model, enum dcrf_backend_use use,
                                dcrf_error *error) {
    (void)device;
    return use == DCRF_BACKEND_FOR_QP ? dcrf_cpu_qp_make(out, model, error)
                                      : dcrf_cpu_mean_field_make(out, model, use, error);
}

static void free_iterate(dcrf_backend_iterate *iterate) {
    struct dcrf_cpu_pictures *pictures = iterate->pictures;
    iterate->free(iterate);
    dcrf_cpu_pictures_free(pictures);
}

static const float *view_marginals(const dcrf_backend_iterate *iterate) {
    return iterate->y;
}

static dcrf_status read_marginals(dcrf_backend_iterate *iterate, float *block, dcrf_error *error) {
    (void)error;
    memcpy(block, iterate->y, iterate->model->variables * iterate->model->stride * sizeof *block);
    return DCRF_OK;
}

static dcrf_status read_labels(dcrf_backend_iterate *iterate, uint16_t *labels, dcrf_error *error) {
    (void)error;
    const dcrf_model *model = iterate->model;
    const struct dcrf_marginals rows = {iterate->y, model->variables, model->labels, model->stride,
                                        NULL};
    dcrf_labels_of_marginals(&rows, iterate->pool, labels);
    return DCRF_OK;
}

const struct dcrf_backend_iterate_methods dcrf_cpu_iterate = {
    .make = make_iterate,
    .free = free_iterate,
    .view = view_marginals,
    .read = read_marginals,
    .labels = read_labels,
    .mean_field_start = dcrf_cpu_mean_field_start,
    .mean_field_step = dcrf_cpu_mean_field_step,
    .make_of_pictures = dcrf_cpu_make_of_pictures,
    .write = dcrf_cpu_write_pictures,
    .qp_start = dcrf_cpu_qp_start,
    .qp_bend = dcrf_cpu_qp_bend,
    .qp_move = dcrf_cpu_qp_move,
};
