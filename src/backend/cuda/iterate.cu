#include "backend/cuda/iterate.cuh"

#include <cstdlib>

#define WHAT "marginals"
void iterate_free(dcrf_backend_iterate *it) {
    if (!it)
        return;
    dcrf_backend_device *device = it->device;
    cudaSetDevice((int)device->index);
    mean_field_release(it);
    qp_release(it);
    device_release(device, it->own_unary);
    device_release(device, it->y);
    device_release(device, it->wrong);
    device_cliques_release(&it->cliques);
    message_kernels_release(&it->kernels);
    free(it);
    device_drop(device);
}

static dcrf_status fill(dcrf_backend_iterate *it, const struct dcrf_backend_model *model,
                        bool is_adopted, dcrf_error *error) {
    const size_t floats = model->variables * model->stride;
    TRY(message_kernels_take(&it->kernels, it->device, model, is_adopted, error));
    if (model->cliques)
        TRY(device_cliques_take(&it->cliques, it->device, model->variables, model->labels,
                                model->stride, model->cliques, error));
    TRY(device_array(it->device, &it->y, floats, WHAT, error));
    if (!is_adopted)
        TRY(device_copy(it->device, &it->own_unary, model->unary, floats, WHAT, error));
    it->unary = is_adopted ? model->unary : it->own_unary;
    return DCRF_OK;
}

static dcrf_status take(dcrf_backend_iterate **out, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, bool is_adopted,
                        dcrf_error *error) {
    *out = nullptr;
    if (model->labels > DCRF_BACKEND_MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "a model with more than %d labels is not on this device yet",
                    DCRF_BACKEND_MOST_LABELS);
    TRY(device_enter(device, error));
    dcrf_backend_iterate *it =
        static_cast<dcrf_backend_iterate *>(calloc(1, sizeof(dcrf_backend_iterate)));
    if (!it)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    it->device = device;
    device_hold(device);
    it->variables = model->variables;
    it->labels = model->labels;
    it->stride = model->stride;
    it->same_label_factor = model->same_label_factor;
    it->all_factor = model->all_factor;
    const dcrf_status status = fill(it, model, is_adopted, error);
    if (status < 0) {
        iterate_free(it);
        return status;
    }
    *out = it;
    return DCRF_OK;
}

static dcrf_status iterate_make(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                const struct dcrf_backend_model *model, enum dcrf_backend_use use,
                                dcrf_error *error) {
    (void)use;
    return take(out, device, model, false, error);
}

dcrf_status iterate_adopt(dcrf_backend_iterate **out, dcrf_backend_device *device,
                          const struct dcrf_backend_model *model, dcrf_error *error) {
    return take(out, device, model, true, error);
}

static const float *iterate_view(const dcrf_backend_iterate *it) {
    (void)it;
    return nullptr;
}

static dcrf_status iterate_read(dcrf_backend_iterate *it, float *block, dcrf_error *error) {
    TRY(device_enter(it->device, error));
    return device_download(it->device, block, it->y, it->variables * it->stride * sizeof *block,
                           error);
}

static dcrf_status iterate_labels(dcrf_backend_iterate *it, uint16_t *labels, dcrf_error *error) {
    TRY(device_enter(it->device, error));
    return labels_download(it->device, it->y, it->variables, it->labels, it->stride, labels, error);
}

dcrf_status iterate_record(dcrf_backend_iterate *it, iterate_launches launches,
                           cudaGraphExec_t *graph, dcrf_error *error) {
    const device_turn turn(it->device);
    cudaStream_t stream = it->device->stream;
    cudaGraph_t recorded = nullptr;
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording",
              error));
    dcrf_status status = launches(it, error);
    const cudaError_t result = cudaStreamEndCapture(stream, &recorded);
    if (status == DCRF_OK)
        status = check(result, "recording", error);
    if (status == DCRF_OK)
        status = check(cudaGraphInstantiate(graph, recorded, 0), "recording", error);
    if (recorded)
        cudaGraphDestroy(recorded);
    return status;
}

dcrf_status iterate_repeat(dcrf_backend_iterate *it, iterate_launches launches,
                           cudaGraphExec_t *graph, dcrf_error *error) {
    if (*graph)
        return check(cudaGraphLaunch(*graph, it->device->stream), WHAT, error);
    TRY(launches(it, error));
    return iterate_record(it, launches, graph, error);
}

static struct dcrf_backend_iterate_methods make_methods() {
    struct dcrf_backend_iterate_methods methods = {};
    methods.make = iterate_make;
    methods.free = iterate_free;
    methods.view = iterate_view;
    methods.read = iterate_read;
    methods.labels = iterate_labels;
    methods.mean_field_start = mean_field_start;
    methods.mean_field_step = mean_field_step;
    methods.make_of_pictures = make_of_pictures;
    methods.takes_several = true;
    methods.write = write_pictures;
    methods.qp_start = qp_start;
    methods.qp_bend = qp_bend;
    methods.qp_move = qp_move;
    return methods;
}

const struct dcrf_backend_iterate_methods iterate_methods = make_methods();
