/* The energies of a labelling and what is proven about it, as JSON. */
#ifndef DCRF_CLI_REPORT_ENERGIES_JSON_H
#define DCRF_CLI_REPORT_ENERGIES_JSON_H

#include "io/json.h"

#include <dcrf/compatibility.h>
#include <dcrf/energy.h>

/* What is proven about a labelling; NaN if there is no bound. */
typedef struct proof {
    double lower_bound;
    double relative_gap;
    dcrf_left_out left_out; /* by the bound */
} proof;

/* The keys of energies and certificate that all results share. NULL if out of memory. */
json_t *energies_to_json(const dcrf_energy *energy, const proof *proven);

#endif
