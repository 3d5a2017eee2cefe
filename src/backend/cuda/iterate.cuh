/* Marginals and their model on a device (see backend/backend.h): the state shared by mean field
 * (mean_field.cu) and QP (qp.cu), and the state of each. */
#ifndef DCRF_BACKEND_CUDA_ITERATE_CUH
#define DCRF_BACKEND_CUDA_ITERATE_CUH

#include "backend/cuda/cliques.cuh"
#include "backend/cuda/messages.cuh"

/* Allocated at the first start; logits at the first damped update. */
struct mean_field {
    float *logits;
    bool has_logits;
    float *extra;                   /* what cliques add to the logits; NULL without cliques */
    struct dcrf_backend_update how; /* of the last update */
    struct dcrf_backend_update *how_on_device; /* its device copy, which graphs read */
    double *partial, *sums;                    /* of each block, and of all blocks */
    unsigned *blocks_done;
    size_t blocks;                     /* of the softmax */
    cudaGraphExec_t step, damped_step; /* NULL until there is one */
};

/* Allocated at the first start. */
struct qp {
    float *field;  /* of y */
    float *vertex; /* the vertex s, as a block */
    double *partial, *sums;
    double quadratic;     /* the cliques' part of Q */
    cudaGraphExec_t bend; /* NULL until there is one */
};

struct dcrf_backend_iterate {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    float same_label_factor, all_factor;
    struct message_kernels kernels;
    struct device_cliques cliques;
    const float *unary;
    float *own_unary; /* the same, or NULL if it is the caller's */
    float *y;
    struct mean_field mean_field;
    struct qp qp;
    /* Of the caller's arrays: */
    const struct dcrf_backend_pictures *pictures;
    unsigned long long *wrong; /* on the device: the first invalid number */
};

extern const struct dcrf_backend_iterate_methods iterate_methods;
void iterate_free(dcrf_backend_iterate *it);
/* The model's unary and diagonals are device arrays that must outlive *out. */
dcrf_status iterate_adopt(dcrf_backend_iterate **out, dcrf_backend_device *device,
                          const struct dcrf_backend_model *model, dcrf_error *error);

/* Launches that are the same every time. iterate_record captures them as a graph, which requires a
 * previous run that allocated the memory of the filters; iterate_repeat does both. */
typedef dcrf_status (*iterate_launches)(dcrf_backend_iterate *it, dcrf_error *error);
dcrf_status iterate_record(dcrf_backend_iterate *it, iterate_launches launches,
                           cudaGraphExec_t *graph, dcrf_error *error);
dcrf_status iterate_repeat(dcrf_backend_iterate *it, iterate_launches launches,
                           cudaGraphExec_t *graph, dcrf_error *error);

dcrf_status mean_field_start(dcrf_backend_iterate *it, const float *q, float coldness,
                             double *entropy, dcrf_error *error);
dcrf_status mean_field_step(dcrf_backend_iterate *it, const struct dcrf_backend_update *how,
                            double *sums, dcrf_error *error);
void mean_field_release(dcrf_backend_iterate *it);

/* pictures.cu */
dcrf_status make_of_pictures(dcrf_backend_iterate **out, dcrf_backend_device *device,
                             const struct dcrf_backend_pictures *given, dcrf_error *error);
dcrf_status write_pictures(dcrf_backend_iterate *it, size_t *wrong, dcrf_error *error);

dcrf_status qp_start(dcrf_backend_iterate *it, const float *y, double *sums, dcrf_error *error);
dcrf_status qp_bend(dcrf_backend_iterate *it, double *quadratic, dcrf_error *error);
dcrf_status qp_move(dcrf_backend_iterate *it, double step, double *sums, dcrf_error *error);
void qp_release(dcrf_backend_iterate *it);

#endif
