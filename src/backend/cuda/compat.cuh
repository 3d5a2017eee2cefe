/* The compatible mean field on a device: see backend/backend.h. */
#ifndef DCRF_BACKEND_CUDA_COMPAT_CUH
#define DCRF_BACKEND_CUDA_COMPAT_CUH

#include "backend/cuda/device.cuh"

extern const struct dcrf_backend_compat_methods compat_methods;

#endif
