/* A proof of how good a labelling is: a lower bound on the energy of every labelling.
 *
 * The labelling may come from anywhere: a method of this library, another program, a file. The
 * bound is that of the LP relaxation's dual (dcrf/solver.h), with all roundings taken off, so it is
 * never above the lowest energy; distances between labels only (dcrf/compatibility.h). Where more
 * is proven about single variables (dcrf/proof.h), the certificate says how many labels are right
 * and how many wrong.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_CERTIFY_H
#define DCRF_CERTIFY_H

#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_certify_settings {
    double time_limit_s; /* 0: none */
    double gap;          /* stop when the labelling is proven to this relative gap; 0: never */
    size_t iterations;   /* at most */
    dcrf_progress_callback progress; /* as in dcrf_settings; NULL: none */
    void *progress_user;
    dcrf_cancel_callback cancel; /* likewise */
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
    double best_energy;  /* the lowest energy met on the way, at most that of the labelling */
    int is_constant;     /* the labelling has one label only */
    size_t iterations;
    dcrf_status stop; /* why it stopped */
    double time_s;
    size_t right; /* variables whose label is proven to be that of every optimal labelling, */
    size_t wrong; /* and those whose label is proven to be that of none */
    unsigned char reserved[64];
} dcrf_certify_info;

/* Certify a labelling (one label a variable). */
DCRF_API dcrf_status dcrf_certify(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, const dcrf_certify_settings *settings,
                                  dcrf_certify_info *certificate, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
