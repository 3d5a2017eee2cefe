/* Toys on the CPU and on the fake device (tests/device/fake_backend.c). */
#ifndef DCRF_TESTS_ELSEWHERE_H
#define DCRF_TESTS_ELSEWHERE_H

#include "toy.h"

/* Maximum number of variables of a toy here. */
#define MOST 64

/* A second copy of the toy's model, planned on a device. */
struct elsewhere {
    dcrf_workspace *workspace;
    dcrf_plan *plan;
};

struct elsewhere plan_elsewhere(const struct toy *toy, const char *device);
void free_elsewhere(struct elsewhere *there);

struct toy toy_of(uint64_t seed);
/* Kernels that overwhelm the unaries: the flow proves the best constant labelling. */
struct toy strong_toy(uint64_t seed);

dcrf_solver *run_solver(dcrf_plan *plan, dcrf_workspace *workspace, const dcrf_settings *settings,
                        const uint16_t *start);
void assert_near(double a, double b, double tolerance);

#endif
