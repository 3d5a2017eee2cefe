/* Marginals on the CPU, and their model: the state that mean field and QP share. */
#ifndef DCRF_BACKEND_CPU_ITERATE_H
#define DCRF_BACKEND_CPU_ITERATE_H

#include "backend/cpu/cpu.h"
#include "energy/coupling.h"

#define DCRF_CLIQUES_PER_CHUNK 8

/* The first member of the states of mean field and QP. */
struct dcrf_backend_iterate {
    const struct dcrf_coupling *coupling;
    const dcrf_model *model;
    const struct dcrf_cliques *cliques; /* NULL: none */
    dcrf_pool *pool;
    float *y; /* the marginals */
    void (*free)(dcrf_backend_iterate *iterate);
    struct dcrf_cpu_pictures *pictures; /* what it was made of, if of arrays */
};

dcrf_status dcrf_cpu_mean_field_make(dcrf_backend_iterate **out,
                                     const struct dcrf_backend_model *model,
                                     enum dcrf_backend_use use, dcrf_error *error);
dcrf_status dcrf_cpu_mean_field_start(dcrf_backend_iterate *iterate, const float *q, float coldness,
                                      double *entropy, dcrf_error *error);
dcrf_status dcrf_cpu_mean_field_step(dcrf_backend_iterate *iterate,
                                     const struct dcrf_backend_update *how, double *sums,
                                     dcrf_error *error);

dcrf_status dcrf_cpu_make_of_pictures(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                      const struct dcrf_backend_pictures *given, dcrf_error *error);
dcrf_status dcrf_cpu_write_pictures(dcrf_backend_iterate *iterate, size_t *wrong,
                                    dcrf_error *error);
void dcrf_cpu_pictures_free(struct dcrf_cpu_pictures *pictures);

dcrf_status dcrf_cpu_qp_make(dcrf_backend_iterate **out, const struct dcrf_backend_model *model,
                             dcrf_error *error);
dcrf_status dcrf_cpu_qp_start(dcrf_backend_iterate *iterate, const float *y, double *sums,
                              dcrf_error *error);
dcrf_status dcrf_cpu_qp_bend(dcrf_backend_iterate *iterate, double *quadratic, dcrf_error *error);
dcrf_status dcrf_cpu_qp_move(dcrf_backend_iterate *iterate, double step, double *sums,
                             dcrf_error *error);

/* Fill in the common part. */
void dcrf_cpu_iterate_init(dcrf_backend_iterate *iterate, const struct dcrf_backend_model *model,
                           void (*free_state)(dcrf_backend_iterate *iterate));
/* The number of cliques. */
size_t dcrf_cpu_clique_count(const dcrf_backend_iterate *iterate);

#endif
