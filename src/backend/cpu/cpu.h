/* The method tables of the CPU backend. */
#ifndef DCRF_BACKEND_CPU_CPU_H
#define DCRF_BACKEND_CPU_CPU_H

#include "backend/backend.h"

extern const struct dcrf_backend_iterate_methods dcrf_cpu_iterate;
extern const struct dcrf_backend_lp_methods dcrf_cpu_lp;
extern const struct dcrf_backend_flow_methods dcrf_cpu_flow;
extern const struct dcrf_backend_moves_methods dcrf_cpu_moves;

#endif
