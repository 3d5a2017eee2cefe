/* The compatible mean field on a device, as backend/backend.h describes it. */
#ifndef DCRF_CUDA_COMPAT_CUH
#define DCRF_CUDA_COMPAT_CUH

#include "cuda/device.cuh"

extern const struct dcrf_backend_compat_methods compat_methods;

#endif
