/* Making an object of a backend's table: on the workspace's device where all operators are on it,
 * else, or where the device cannot have it, on the CPU. */
#ifndef DCRF_BACKEND_MAKE_H
#define DCRF_BACKEND_MAKE_H

#include "backend/backend.h"

/* Calls a `make` of the backend's table, and keeps the methods that go with what it made. Such an
 * answer of a device as DCRF_ERROR_UNSUPPORTED asks for the CPU. */
typedef dcrf_status (*dcrf_backend_maker)(void *user, const struct dcrf_backend *backend,
                                          dcrf_backend_device *device,
                                          const struct dcrf_backend_model *model,
                                          dcrf_error *error);

/* Of a coupling and the cliques of its model; or, coupling = NULL, of a plan whose kernels are all
 * Potts, for the LP and the flow. All three outlive what is made. */
dcrf_status dcrf_backend_make(const dcrf_plan *plan, dcrf_workspace *workspace,
                              const struct dcrf_coupling *coupling, dcrf_backend_maker make,
                              void *user, dcrf_error *error);

#endif
