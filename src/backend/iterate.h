/* The marginals of mean field or QP in a backend's memory (backend/backend.h). The host reads them
 * in place, or from a copy that is made on demand. */
#ifndef DCRF_BACKEND_ITERATE_H
#define DCRF_BACKEND_ITERATE_H

#include "backend/backend.h"
#include "energy/coupling.h"

struct dcrf_iterate {
    const struct dcrf_coupling *coupling;
    const struct dcrf_backend_iterate_methods *methods;
    dcrf_backend_iterate *iterate;
    float *copy;      /* NULL if the host can read the marginals themselves */
    bool is_copy_old; /* the marginals have changed since the copy was made */
};

/* The coupling must outlive the marginals. On failure nothing stays allocated. */
dcrf_status dcrf_iterate_init(struct dcrf_iterate *iterate, const struct dcrf_coupling *coupling,
                              enum dcrf_backend_use use, dcrf_error *error);
void dcrf_iterate_clear(struct dcrf_iterate *iterate);

/* ---- methods -------------------------------------------------------------------------------- */

/* What a method does with its state (method/method.h), if the state begins with a struct
 * dcrf_iterate. `new` fills the rest of its `bytes` with zeros. */
dcrf_status dcrf_iterate_new(void **state, size_t bytes, const struct dcrf_coupling *coupling,
                             enum dcrf_backend_use use, dcrf_error *error);
void dcrf_iterate_free(void *state);

/* Bring the copy up to date; and view the marginals as of the last fetch. */
dcrf_status dcrf_iterate_fetch(void *state, dcrf_error *error);
const float *dcrf_iterate_view(const void *state);

/* The labels with the largest marginals. */
dcrf_status dcrf_iterate_labels(void *state, uint16_t *labels, dcrf_error *error);

#endif
