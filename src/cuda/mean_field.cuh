/* Mean field on a device, as filter/backend.h describes it. */
#ifndef DCRF_CUDA_MEAN_FIELD_CUH
#define DCRF_CUDA_MEAN_FIELD_CUH

#include "cuda/device.cuh"

dcrf_status mean_field_new(dcrf_backend_mean_field **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model, dcrf_error *error);
dcrf_status mean_field_start(dcrf_backend_mean_field *mf, const float *q, float coldness,
                             double *entropy, dcrf_error *error);
dcrf_status mean_field_step(dcrf_backend_mean_field *mf, const struct dcrf_backend_update *how,
                            double *sums, dcrf_error *error);
dcrf_status mean_field_marginals(dcrf_backend_mean_field *mf, float *q, dcrf_error *error);
dcrf_status mean_field_labels(dcrf_backend_mean_field *mf, uint16_t *labels, dcrf_error *error);
void mean_field_free(dcrf_backend_mean_field *mf);

#endif
