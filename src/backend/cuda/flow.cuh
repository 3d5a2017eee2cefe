/* The potential flow on a device, as backend/backend.h describes it. */
#ifndef DCRF_BACKEND_CUDA_FLOW_CUH
#define DCRF_BACKEND_CUDA_FLOW_CUH

#include "backend/cuda/device.cuh"

extern const struct dcrf_backend_flow_methods flow_methods;

#endif
