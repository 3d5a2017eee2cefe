/* The moves that polish a labelling, on a device, as filter/backend.h describes them. */
#ifndef DCRF_CUDA_MOVES_CUH
#define DCRF_CUDA_MOVES_CUH

#include "cuda/device.cuh"

extern const struct dcrf_backend_moves_methods moves_methods;

#endif
