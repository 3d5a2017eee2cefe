/* Lattice vertices as integer codes: see lattice.cuh. */
#ifndef DCRF_BACKEND_CUDA_LATTICE_CODES_CUH
#define DCRF_BACKEND_CUDA_LATTICE_CODES_CUH

#include "backend/cuda/device.cuh"

/* How vertices become codes: digit i of a code is m_i - low[i], with place value place[i]. The last
 * digit is the remainder k, with place value 1; the first is the picture. */
struct coding {
    int dimension;
    size_t picture_points; /* of each picture */
    unsigned long long picture_place;
    bool is_single;
    double factor[DCRF_MAX_FEATURES]; /* of the embedding */
    long long low[DCRF_MAX_FEATURES];
    unsigned long long place[DCRF_MAX_FEATURES];
    int bits;      /* enough for every code */
    int is_failed; /* a coding_failure */
};

enum coding_failure { CODING_IS_RIGHT, CODING_TOO_LARGE, CODING_TOO_LARGE_SINGLE, CODING_TOO_WIDE };

/* Points, and the outputs for their corners: codes, weights, and entry numbers (point * corners +
 * corner). */
struct embedding {
    const struct coding *coding; /* on the device */
    int dimension;
    bool is_single;
    const float *rows;
    size_t points;
    unsigned long long *codes;
    uint32_t *entries;
    float *weights;
};

/* Choose a coding for points in feature rows on the device. The result is on the device too; the
 * caller releases it. Only enqueues work; a coding that failed yields NaN weights. */
dcrf_status coding_choose(struct coding **on_device, dcrf_backend_device *device, size_t dimension,
                          bool is_single, const float *rows, size_t points, size_t pictures,
                          dcrf_error *error);
/* Copy the coding to the host, or report why it failed. */
dcrf_status coding_download(struct coding *coding, const struct coding *on_device,
                            dcrf_backend_device *device, dcrf_error *error);

void embedding_launch(const struct embedding &e, cudaStream_t stream);

#endif
