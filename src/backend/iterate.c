#include "backend/iterate.h"

#include "backend/make.h"
#include "core/error.h"
#include "core/owned.h"

struct wanted {
    struct dcrf_iterate *iterate;
    enum dcrf_backend_use use;
};

static dcrf_status make_marginals(void *user, const struct dcrf_backend *backend,
                                  dcrf_backend_device *device,
                                  const struct dcrf_backend_model *model, dcrf_error *error) {
    const struct wanted *wanted = user;
    struct dcrf_backend_model used = *model;
    if (wanted->use == DCRF_BACKEND_FOR_ANNEALING) /* annealing leaves the cliques to the moves */
        used.cliques = NULL;
    wanted->iterate->methods = backend->iterate;
    return backend->iterate->make(&wanted->iterate->iterate, device, &used, wanted->use, error);
}

/* The marginals of annealing are never read, so they need no copy. */
static dcrf_status take_copy(struct dcrf_iterate *iterate, enum dcrf_backend_use use,
                             dcrf_error *error) {
    const dcrf_model *model = iterate->coupling->plan->model;
    if (use == DCRF_BACKEND_FOR_ANNEALING || iterate->methods->view(iterate->iterate))
        return DCRF_OK;
    iterate->copy = dcrf_allocate(model->variables, model->stride * sizeof(float));
    return iterate->copy ? DCRF_OK : dcrf_fail_memory(error, "marginals");
}

dcrf_status dcrf_iterate_init(struct dcrf_iterate *iterate, const struct dcrf_coupling *coupling,
                              enum dcrf_backend_use use, dcrf_error *error) {
    *iterate = (struct dcrf_iterate){.coupling = coupling};
    struct wanted wanted = {iterate, use};
    dcrf_status status = dcrf_backend_make(coupling->plan, coupling->workspace, coupling,
                                           make_marginals, &wanted, error);
    if (status == DCRF_OK)
        status = take_copy(iterate, use, error);
    if (status < 0)
        dcrf_iterate_clear(iterate);
    return status;
}

void dcrf_iterate_clear(struct dcrf_iterate *iterate) {
    if (iterate->iterate)
        iterate->methods->free(iterate->iterate);
    dcrf_release(iterate->copy);
    *iterate = (struct dcrf_iterate){0};
}

/* ---- methods -------------------------------------------------------------------------------- */

dcrf_status dcrf_iterate_new(void **state, size_t bytes, const struct dcrf_coupling *coupling,
                             enum dcrf_backend_use use, dcrf_error *error) {
    *state = NULL;
    DCRF_SCOPED void *made = dcrf_allocate_zero(1, bytes);
    if (!made)
        return dcrf_fail_memory(error, "marginals");
    TRY(dcrf_iterate_init(made, coupling, use, error));
    *state = DCRF_PASS_ON(made);
    return DCRF_OK;
}

void dcrf_iterate_free(void *state) {
    if (state)
        dcrf_iterate_clear(state);
    dcrf_release(state);
}

dcrf_status dcrf_iterate_fetch(void *state, dcrf_error *error) {
    struct dcrf_iterate *iterate = state;
    if (!iterate->copy || !iterate->is_copy_old)
        return DCRF_OK;
    const dcrf_status status = iterate->methods->read(iterate->iterate, iterate->copy, error);
    iterate->is_copy_old = status < 0;
    return status;
}

const float *dcrf_iterate_view(const void *state) {
    const struct dcrf_iterate *iterate = state;
    return iterate->copy ? iterate->copy : iterate->methods->view(iterate->iterate);
}

dcrf_status dcrf_iterate_labels(void *state, uint16_t *labels, dcrf_error *error) {
    const struct dcrf_iterate *iterate = state;
    return iterate->methods->labels(iterate->iterate, labels, error);
}
