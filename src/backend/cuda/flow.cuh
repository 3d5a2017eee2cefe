/* The potential flow on a device: see backend/backend.h. */
#ifndef DCRF_BACKEND_CUDA_FLOW_CUH
#define DCRF_BACKEND_CUDA_FLOW_CUH

#include "backend/cuda/device.cuh"

extern const struct dcrf_backend_flow_methods flow_methods;

#endif
