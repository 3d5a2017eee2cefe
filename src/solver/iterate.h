/* The marginals of mean field or of QP on a device (filter/backend.h), as far as the two methods
 * treat them alike: a copy on the host is made when somebody asks for it. */
#ifndef DCRF_SOLVER_ITERATE_H
#define DCRF_SOLVER_ITERATE_H

#include "energy/coupling.h"
#include "filter/backend.h"

struct dcrf_iterate {
    const struct dcrf_backend_iterate_methods *methods;
    dcrf_backend_iterate *there; /* NULL: the method runs here */
    bool is_ahead;               /* the host's copy is older than what is there */
};

/* Where the operators are on a device that can do it. The coupling is needed for the call only. */
dcrf_status dcrf_iterate_try(struct dcrf_iterate *iterate, const struct dcrf_coupling *coupling,
                             dcrf_error *error);
void dcrf_iterate_clear(struct dcrf_iterate *iterate);

/* Bring the marginals to the host's block where that is older. */
dcrf_status dcrf_iterate_fetch(struct dcrf_iterate *iterate, float *block, dcrf_error *error);
/* The labels of the largest marginals; DCRF_NO_LABELS (solver/method.h): the host's block has them.
 */
dcrf_status dcrf_iterate_labels(const struct dcrf_iterate *iterate, uint16_t *labels,
                                dcrf_error *error);

#endif
