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
/* For infer.cu. Unary and diagonal of the model are arrays of the device, and outlive mean field.
 */
dcrf_status mean_field_adopt(dcrf_backend_mean_field **out, dcrf_backend_device *device,
                             const struct dcrf_backend_model *model, dcrf_error *error);
/* From softmax(-unary) on, so many updates without damping; only put into the stream. */
dcrf_status mean_field_iterate(dcrf_backend_mean_field *mf, size_t updates, dcrf_error *error);
const float *mean_field_block(const dcrf_backend_mean_field *mf); /* q, on the device */
void mean_field_free(dcrf_backend_mean_field *mf);

#endif
