#include "solver/iterate.h"

#include "energy/device_model.h"
#include "solver/method.h"

dcrf_status dcrf_iterate_try(struct dcrf_iterate *iterate, const struct dcrf_coupling *coupling,
                             dcrf_error *error) {
    struct dcrf_device_model there;
    *iterate = (struct dcrf_iterate){0};
    dcrf_status status = dcrf_device_model_init(&there, coupling, error);
    if (status == DCRF_OK && there.device) {
        iterate->methods = &there.device->backend->iterate;
        status = iterate->methods->make(&iterate->there, there.device->opened, &there.model, error);
        if (status == DCRF_ERROR_UNSUPPORTED)
            status = DCRF_OK; /* here, then */
    }
    dcrf_device_model_clear(&there);
    return status;
}

void dcrf_iterate_clear(struct dcrf_iterate *iterate) {
    if (iterate->there)
        iterate->methods->free(iterate->there);
    *iterate = (struct dcrf_iterate){0};
}

dcrf_status dcrf_iterate_fetch(struct dcrf_iterate *iterate, float *block, dcrf_error *error) {
    if (!iterate->is_ahead)
        return DCRF_OK;
    const dcrf_status status = iterate->methods->read(iterate->there, block, error);
    iterate->is_ahead = status < 0;
    return status;
}

dcrf_status dcrf_iterate_labels(const struct dcrf_iterate *iterate, uint16_t *labels,
                                dcrf_error *error) {
    return iterate->is_ahead ? iterate->methods->labels(iterate->there, labels, error)
                             : DCRF_NO_LABELS;
}
