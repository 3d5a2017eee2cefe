/* Certificates: a lower bound on the energy of every labelling, and how close a given one comes to
 * it.
 *
 * The labelling may come from anywhere: a method of this library, another program, a file. The
 * bound is the dual of the LP relaxation (dcrf/solver.h) after subtracting a bound on the rounding
 * error, so it never exceeds the lowest energy. Compatibilities must be distances
 * (dcrf/compatibility.h). Where single variables are proven (dcrf/proof.h), the certificate also
 * counts the labels that are right and those that are wrong.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_CERTIFY_H
#define DCRF_CERTIFY_H

#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_certify_settings {
    double time_limit_s;             /* wall time; 0: no limit */
    double gap;                      /* stop at this relative gap or below; 0: never */
    size_t iterations;               /* maximum */
    dcrf_progress_callback progress; /* as in dcrf_settings; NULL: none */
    void *progress_user;
    dcrf_cancel_callback cancel; /* as in dcrf_settings; NULL: none */
    void *cancel_user;
    unsigned char reserved[64];
} dcrf_certify_settings;

#define DCRF_DEFAULT_CERTIFY_TIME_LIMIT_S 10.0
#define DCRF_DEFAULT_CERTIFY_GAP 1e-3
#define DCRF_DEFAULT_CERTIFY_ITERATIONS 100

DCRF_API void dcrf_certify_settings_defaults(dcrf_certify_settings *settings);

typedef struct dcrf_certify_info {
    dcrf_energy energy;  /* of the labelling */
    double lower_bound;  /* on the energy of every labelling */
    double relative_gap; /* dcrf_relative_gap of the two */
    double best_energy;  /* the lowest energy found; never above the labelling's */
    int is_constant;     /* the labelling has only one label */
    size_t iterations;
    dcrf_status stop; /* why it stopped */
    double time_s;
    size_t right; /* variables whose label is proven to be the one in every optimal labelling */
    size_t wrong; /* variables whose label is proven to be in no optimal labelling */
    dcrf_left_out bound_left_out; /* by lower_bound; its energy is that of the labelling */
    unsigned char reserved[32];
} dcrf_certify_info;

/* Certify a labelling: one label per variable. */
DCRF_API dcrf_status dcrf_certify(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, const dcrf_certify_settings *settings,
                                  dcrf_certify_info *certificate, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
