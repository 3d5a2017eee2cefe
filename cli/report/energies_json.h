/* The energies of a labelling and what is proven of it, as JSON. */
#ifndef DCRF_CLI_REPORT_ENERGIES_JSON_H
#define DCRF_CLI_REPORT_ENERGIES_JSON_H

#include "io/json.h"

#include <dcrf/energy.h>

/* What is proven of a labelling; NaN where there is no bound. */
typedef struct proof {
    double lower_bound;
    double relative_gap;
} proof;

/* The keys of energies and certificate that all results share. NULL when memory is out. */
json_t *energies_to_json(const dcrf_energy *energy, const proof *proven);

#endif
