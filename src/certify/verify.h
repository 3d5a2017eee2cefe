/* An independent check of what a run of the LP claims. */
#ifndef DCRF_CERTIFY_VERIFY_H
#define DCRF_CERTIFY_VERIFY_H

#include "filter/plan.h"
#include "solver/lp_record.h"

#include <dcrf/energy.h>

struct dcrf_verdict {
    double energy;      /* of the labelling */
    double lower_bound; /* of the recorded dual point */
    int is_feasible;    /* the recorded weights and values make a feasible dual point */
};

/* Compute the energy of the labels and the bound of the record again, in double. */
dcrf_status dcrf_verify(const dcrf_plan *plan, dcrf_workspace *workspace, const uint16_t *labels,
                        const struct dcrf_lp_record *record, dcrf_clique_form form,
                        struct dcrf_verdict *verdict, dcrf_error *error);

#endif
