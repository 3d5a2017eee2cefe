/* Makes an object through a backend's table: on the workspace's device if all operators are on it
 * and the device supports it, otherwise on the CPU. */
#ifndef DCRF_BACKEND_MAKE_H
#define DCRF_BACKEND_MAKE_H

#include "backend/backend.h"

/* Calls a `make` of the backend's table, and stores the methods that go with the new object. If a
 * device returns DCRF_ERROR_UNSUPPORTED, the CPU is used. */
typedef dcrf_status (*dcrf_backend_maker)(void *user, const struct dcrf_backend *backend,
                                          dcrf_backend_device *device,
                                          const struct dcrf_backend_model *model,
                                          dcrf_error *error);

/* For a coupling and the cliques of its model; or, if coupling is NULL, for a plan whose kernels
 * are all Potts (the LP and the flow). Plan, workspace and coupling must outlive the object. */
dcrf_status dcrf_backend_make(const dcrf_plan *plan, dcrf_workspace *workspace,
                              const struct dcrf_coupling *coupling, dcrf_backend_maker make,
                              void *user, dcrf_error *error);

#endif
