/* Models as a backend takes them, and which backend that is: the workspace's device where all
 * operators are on it, else the CPU. */
#ifndef DCRF_BACKEND_PLACED_MODEL_H
#define DCRF_BACKEND_PLACED_MODEL_H

#include "backend/device.h"
#include "energy/coupling.h"

struct dcrf_place {
    const struct dcrf_backend *backend;
    dcrf_backend_device *device; /* NULL: the CPU */
};

/* After a backend has answered `status` to a make: is the CPU to be tried now, because a device
 * cannot have it? Then that is the place. */
bool dcrf_place_falls_back(struct dcrf_place *place, dcrf_status status);

/* A coupling and the cliques of its model. */
struct dcrf_placed_model {
    struct dcrf_place place;
    struct dcrf_backend_model model;
    struct dcrf_backend_group *groups;
    dcrf_operator **operators; /* of all groups */
    float *weights;
    float *compatibilities; /* one matrix per group; NULL where all kernels are Potts */
};

/* The coupling outlives what is made of the model. */
dcrf_status dcrf_placed_model_init(struct dcrf_placed_model *placed,
                                   const struct dcrf_coupling *coupling, dcrf_error *error);
void dcrf_placed_model_clear(struct dcrf_placed_model *placed);

/* A plan whose kernels are all Potts. */
struct dcrf_placed_lp_model {
    struct dcrf_place place;
    struct dcrf_backend_lp_model model;
    dcrf_operator **operators;
    double *weights;
};

/* The plan and the workspace outlive what is made of the model. */
dcrf_status dcrf_placed_lp_model_init(struct dcrf_placed_lp_model *placed, const dcrf_plan *plan,
                                      dcrf_workspace *workspace, dcrf_error *error);
void dcrf_placed_lp_model_clear(struct dcrf_placed_lp_model *placed);

#endif
