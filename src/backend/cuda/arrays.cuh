/* The caller's arrays on a device: see backend/backend.h. */
#ifndef DCRF_BACKEND_CUDA_ARRAYS_CUH
#define DCRF_BACKEND_CUDA_ARRAYS_CUH

#include "backend/cuda/device.cuh"

extern const struct dcrf_backend_arrays_methods arrays_methods;

#endif
