/* The LP's dual point as a certificate holds it. */
#ifndef DCRF_PROOF_KEPT_H
#define DCRF_PROOF_KEPT_H

#include "verify/certificate.h"

struct dcrf_lp;

/* A mixture of what the LP has kept; of its last y where it has kept nothing. To be freed as part
 * of a certificate. */
dcrf_status dcrf_kept_mixture(const struct dcrf_lp *lp, bool is_exact,
                              struct dcrf_certificate_mixture *mixture, dcrf_error *error);

#endif
