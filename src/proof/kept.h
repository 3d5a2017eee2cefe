/* The LP's dual point in the form stored in a certificate. */
#ifndef DCRF_PROOF_KEPT_H
#define DCRF_PROOF_KEPT_H

#include "verify/certificate.h"

struct dcrf_lp;

/* A mixture of the parts that the LP has kept, or its last y if it has kept none. Freed with the
 * certificate that takes it. */
dcrf_status dcrf_kept_mixture(const struct dcrf_lp *lp, bool is_exact,
                              struct dcrf_certificate_mixture *mixture, dcrf_error *error);

#endif
