/* The structures of DLPack, from its specification (https://dmlc.github.io/dlpack/latest,
 * version 0.8: the unversioned DLManagedTensor). */
#ifndef DCRF_PYTHON_DLPACK_H
#define DCRF_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_CUDA = 2, DLPACK_CUDA_MANAGED = 13 };         /* DLDeviceType */
enum { DLPACK_INT = 0, DLPACK_UINT = 1, DLPACK_FLOAT = 2 }; /* DLDataTypeCode */

struct dlpack_device {
    int32_t type;
    int32_t index;
};

struct dlpack_type {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t ndim;
    struct dlpack_type type;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous, the last axis fastest */
    uint64_t byte_offset;
};

struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
};

#endif
