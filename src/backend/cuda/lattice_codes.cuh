/* The vertices of points on a lattice as numbers: lattice.cuh says how. */
#ifndef DCRF_BACKEND_CUDA_LATTICE_CODES_CUH
#define DCRF_BACKEND_CUDA_LATTICE_CODES_CUH

#include "backend/cuda/device.cuh"

/* How vertices become codes: digit i of a code is m_i - low[i], and weighs place[i]. The digit of
 * the remainder is the last one, which weighs 1; that of the picture is the first. */
struct coding {
    int dimension;
    size_t picture_points; /* of each picture */
    unsigned long long picture_place;
    bool is_single;
    double factor[DCRF_MAX_FEATURES]; /* of the embedding */
    long long low[DCRF_MAX_FEATURES];
    unsigned long long place[DCRF_MAX_FEATURES];
    int bits;      /* of all codes */
    int is_failed; /* a coding_failure */
};

enum coding_failure { CODING_IS_RIGHT, CODING_TOO_LARGE, CODING_TOO_LARGE_SINGLE, CODING_TOO_WIDE };

/* Points and where their corners go: codes and weights, and entries, which are numbered point *
 * corners + corner. */
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

/* The coding of points in rows of features of the device's: there, the caller's to release. Only
 * puts work into the stream; one that has failed gives weights that are not numbers. */
dcrf_status coding_choose(struct coding **there, dcrf_backend_device *device, size_t dimension,
                          bool is_single, const float *rows, size_t points, size_t pictures,
                          dcrf_error *error);
/* What was chosen, here, or why it has failed. */
dcrf_status coding_download(struct coding *coding, const struct coding *there,
                            dcrf_backend_device *device, dcrf_error *error);

void embedding_launch(const struct embedding &e, cudaStream_t stream);

#endif
