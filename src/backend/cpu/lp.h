/* The state of the LP on the CPU, for its two kinds of steps. */
#ifndef DCRF_BACKEND_CPU_LP_H
#define DCRF_BACKEND_CPU_LP_H

#include "backend/cpu/clique_dual.h"
#include "backend/cpu/cut_step.h"
#include "backend/cpu/lp_blocks.h"

struct dcrf_backend_lp {
    const dcrf_model *model;
    dcrf_pool *pool;
    struct dcrf_lp_blocks blocks;
    struct dcrf_clique_dual cliques;
    const float *metric; /* the caller's */
    double epsilon;      /* of the current step */
    float beta;          /* of the current step */
};

extern const struct dcrf_backend_proximal_methods dcrf_cpu_proximal;

#endif
