/* A certificate: the proof of dcrf/proof.h in a form that others can check.
 * docs/reference/certificate.md describes the bytes. */
#ifndef DCRF_VERIFY_CERTIFICATE_H
#define DCRF_VERIFY_CERTIFICATE_H

#include "core/sha256.h"
#include "filter/plan.h"
#include "model/model.h"

#include <dcrf/experimental.h>
#include <stdbool.h>

/* Nodes of the ordered filter for values between 0 and 1; with one for variables that may have the
 * label and one for those that do not count they fill two vectors of the inner loops. */
#define DCRF_VALUE_NODES 14
/* Values are stored as bytes, in steps of a sixteenth of the distance between nodes, so that a
 * certificate can hold the very values that were used. */
#define DCRF_VALUE_STEPS 16
#define DCRF_VALUE_MOST (DCRF_VALUE_STEPS * (DCRF_VALUE_NODES - 1))

/* Which model a certificate is about. */
struct dcrf_identity_kernel {
    double weight;
    uint32_t normalization;
    uint32_t dimension;
    uint8_t features[DCRF_SHA256_BYTES]; /* of the features before they are scaled */
    uint8_t matrix[DCRF_SHA256_BYTES];   /* of a fast operator; zeros: the formula itself */
    double factor[DCRF_MAX_FEATURES];    /* 1 / sigma */
};

struct dcrf_identity {
    bool is_exact; /* else the fast operators */
    size_t variables, labels, kernel_count, clique_count;
    uint8_t unary[DCRF_SHA256_BYTES];
    uint8_t cliques[DCRF_SHA256_BYTES]; /* members and costs */
    struct dcrf_identity_kernel *kernels;
};

dcrf_status dcrf_identity_of_model(struct dcrf_identity *identity, const dcrf_model *model,
                                   bool is_exact, dcrf_workspace *workspace, dcrf_error *error);
/* Which matrices the operators of a plan are: what they make of two given vectors, in double,
 * rounded to float, so that the order of a sum does not matter. Nothing for exact ones. */
dcrf_status dcrf_identity_take_matrices(struct dcrf_identity *identity, const dcrf_plan *plan,
                                        dcrf_workspace *workspace, dcrf_error *error);
void dcrf_identity_clear(struct dcrf_identity *identity);

/* An error if a certificate is about another number of variables or labels. */
dcrf_status dcrf_identity_compare_sizes(const struct dcrf_identity *certificate, size_t variables,
                                        size_t labels, dcrf_error *error);

/* An error says what of the model is not what the certificate is about. */
dcrf_status dcrf_identity_compare(const struct dcrf_identity *certificate,
                                  const struct dcrf_identity *model, dcrf_error *error);

/* alpha_ab:i = K_ab F(v_ai, v_bi). F is clip((w - v) / (levels epsilon)) to [-1, 1], either itself
 * (nodes = 0) or at `nodes` values from 0 to `levels` and linear between them. */
struct dcrf_certificate_point {
    double weight, epsilon;
    uint32_t nodes, levels;
    size_t plane_count;
    uint16_t *plane;  /* per label: the number of its plane, from 1 on; 0: alpha is zero */
    uint32_t *values; /* planes x variables of the mixture */
};

/* A bound on what is undecided after some rounds: a convex combination of dual points. */
struct dcrf_certificate_mixture {
    size_t after; /* rounds */
    size_t size;  /* variables: those that are undecided then, in their order */
    size_t point_count;
    struct dcrf_certificate_point *points;
    /* labels x variables: how the cost of a clique is divided among its members, in any unit; only
     * where nothing is decided yet. NULL: cliques are not part of the bound. */
    uint32_t *shares;
};

struct dcrf_certificate_content {
    struct dcrf_identity identity;
    double energy, lower_bound; /* as claimed: the energy from above */
    size_t proven;              /* as claimed */
    size_t rounds;
    double *epsilon; /* of every round */
    uint16_t *labels;
    uint16_t *round;    /* when a variable is decided, from 1 on; 0: never */
    size_t plane_count; /* labels that have values */
    uint16_t *plane;    /* per label: the number of its plane, from 1 on; 0: all its values are 0 */
    uint8_t *values;    /* planes x variables */
    size_t mixture_count;
    struct dcrf_certificate_mixture *mixtures; /* by their `after` */
    /* Of a distance between labels: cuts that add up to no more than it. Then there are no rounds,
     * and alpha has cuts in place of labels; the value of a cut is the sum of its labels' values,
     * at most `levels`. */
    bool has_cuts;
    size_t cut_count;
    double *cut_lengths;
    uint8_t *cut_sets; /* cuts x labels: 1 for the labels of the cut */
};

/* What no honest certificate comes near: a round is a pass over all pairs. */
#define DCRF_MOST_ROUNDS 4096
#define DCRF_MOST_MIXTURES 64
#define DCRF_MOST_POINTS 64
#define DCRF_MOST_LEVELS 0xffffff
#define DCRF_MOST_CUTS 4096

static inline uint8_t dcrf_certificate_value(const struct dcrf_certificate_content *content,
                                             size_t variable, size_t label) {
    const size_t plane = content->plane[label];
    return plane == 0 ? 0 : content->values[(plane - 1) * content->identity.variables + variable];
}

void dcrf_certificate_mixture_clear(struct dcrf_certificate_mixture *mixture);
void dcrf_certificate_clear(struct dcrf_certificate_content *content);

/* *bytes is to be freed with dcrf_release. */
dcrf_status dcrf_certificate_encode(const struct dcrf_certificate_content *content, uint8_t **bytes,
                                    size_t *count, dcrf_error *error);

/* Every number is in its range and every array has its size. A certificate about another number of
 * variables or labels is refused before memory is taken for it. */
dcrf_status dcrf_certificate_decode(struct dcrf_certificate_content *content, size_t variables,
                                    size_t labels, const uint8_t *bytes, size_t count,
                                    dcrf_error *error);

#endif
