/* The combined messages of a model's kernels: the field of a block (energy/coupling.h). */
#ifndef DCRF_BACKEND_CUDA_MESSAGES_CUH
#define DCRF_BACKEND_CUDA_MESSAGES_CUH

#include "backend/cuda/cuts.cuh"

/* Kernels that share a compatibility. */
struct message_group {
    size_t first, count;     /* in `operators` */
    const float *diagonal;   /* on the device; NULL: it is not subtracted */
    float *own_diagonal;     /* the same, or NULL if it is the caller's */
    bool is_potts;           /* the only group */
    struct device_cuts cuts; /* of the compatibility, or none: labels is 0 */
    float *mu;               /* on the device, rows of the model's stride; NULL: Potts or cuts */
};

struct message_kernels {
    dcrf_backend_device *device;
    size_t variables, labels, stride; /* of the messages */
    size_t group_count;
    struct message_group *groups;
    struct device_operator **operators; /* of all groups */
    float *weights;                     /* on the host */
    /* On the device. For Potts the message is the sum of both: the first kernel has its own, so
     * that it can be filtered concurrently with the others, and the second is NULL if there is only
     * one kernel. Otherwise the first is the field, and the second the message of one group. */
    float *messages[2];
};

/* Holds the device. On failure nothing is held. The model's diagonals are host arrays, or device
 * arrays if are_adopted. */
dcrf_status message_kernels_take(struct message_kernels *kernels, dcrf_backend_device *device,
                                 const struct dcrf_backend_model *model, bool are_adopted,
                                 dcrf_error *error);
void message_kernels_release(struct message_kernels *kernels);

/* Potts: enqueue the filters of a device block whose rows are at most as long as the model's. The
 * diagonal is still included in the messages. */
dcrf_status messages_send(const struct message_kernels *kernels, const float *in, size_t channels,
                          size_t stride, dcrf_error *error);

/* The field of a block with the model's stride: the sum of the parts minus diagonal x in. */
struct field_parts {
    float4 *part[2];       /* the second may be NULL */
    const float *diagonal; /* one per variable, or NULL */
};

dcrf_status field_send(const struct message_kernels *kernels, const float *in,
                       struct field_parts *field, dcrf_error *error);

#ifdef __CUDACC__
static __device__ inline float4 field_at(const struct field_parts &field, size_t row, size_t at,
                                         const float4 &in) {
    const float4 one = field.part[0][at];
    const float4 other = field.part[1] ? field.part[1][at] : make_float4(0, 0, 0, 0);
    const float diagonal = field.diagonal ? field.diagonal[row] : 0;
    return make_float4(one.x + other.x - diagonal * in.x, one.y + other.y - diagonal * in.y,
                       one.z + other.z - diagonal * in.z, one.w + other.w - diagonal * in.w);
}
#endif

#endif
