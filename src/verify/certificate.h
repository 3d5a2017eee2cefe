/* A certificate: the proof of dcrf/proof.h in a form that can be checked independently.
 * docs/reference/certificate.md describes the bytes. */
#ifndef DCRF_VERIFY_CERTIFICATE_H
#define DCRF_VERIFY_CERTIFICATE_H

#include "core/owned.h"
#include "core/sha256.h"
#include "filter/plan.h"
#include "model/model.h"

#include <dcrf/grid.h>
#include <stdbool.h>

/* Nodes of the ordered filter for values between 0 and 1. With one node for variables that may have
 * the label and one for those that do not count, they fill two vectors of the inner loops. */
#define DCRF_VALUE_NODES 14
/* Values are stored as bytes, in steps of a sixteenth of the distance between nodes, so that a
 * certificate holds exactly the values that were used. */
#define DCRF_VALUE_STEPS 16
#define DCRF_VALUE_MOST (DCRF_VALUE_STEPS * (DCRF_VALUE_NODES - 1))

/* Identifies the model that a certificate is about. */
struct dcrf_identity_kernel {
    double weight;
    uint32_t normalization;
    uint32_t dimension;
    uint8_t features[DCRF_SHA256_BYTES]; /* of the unscaled features */
    uint8_t matrix[DCRF_SHA256_BYTES];   /* of a fast operator; zeros: the exact formula */
    double factor[DCRF_MAX_FEATURES];    /* 1 / sigma */
};

struct dcrf_identity {
    bool is_exact; /* exact operators, not the fast ones */
    size_t variables, labels, kernel_count, clique_count;
    uint8_t unary[DCRF_SHA256_BYTES];
    uint8_t cliques[DCRF_SHA256_BYTES]; /* members and costs */
    struct dcrf_identity_kernel *kernels;
};

dcrf_status dcrf_identity_of_model(struct dcrf_identity *identity, const dcrf_model *model,
                                   bool is_exact, dcrf_workspace *workspace, dcrf_error *error);
/* Hash the operators' matrices: the hash covers their products with two fixed vectors, computed in
 * double and rounded to float so that the order of summation does not matter. Not for exact
 * operators. */
dcrf_status dcrf_identity_take_matrices(struct dcrf_identity *identity, const dcrf_plan *plan,
                                        dcrf_workspace *workspace, dcrf_error *error);
void dcrf_identity_clear(struct dcrf_identity *identity);

/* Fails if the certificate is about another number of variables or labels. */
dcrf_status dcrf_identity_compare_sizes(const struct dcrf_identity *certificate, size_t variables,
                                        size_t labels, dcrf_error *error);

/* Fails if the model is not the certificate's; the error says what differs. */
dcrf_status dcrf_identity_compare(const struct dcrf_identity *certificate,
                                  const struct dcrf_identity *model, dcrf_error *error);

/* alpha_ab:i = K_ab F(v_ai, v_bi). F is clip((w - v) / (levels epsilon)) to [-1, 1], either exactly
 * (nodes = 0) or interpolated linearly between `nodes` values from 0 to `levels`. */
struct dcrf_certificate_point {
    double weight, epsilon;
    uint32_t nodes, levels;
    size_t plane_count;
    uint16_t *plane;  /* per label: its plane, counted from 1; 0: alpha is zero */
    uint32_t *values; /* planes x variables of the mixture */
};

/* A bound on the problem left undecided after some rounds: a convex combination of dual points. */
struct dcrf_certificate_mixture {
    size_t after; /* rounds */
    size_t size;  /* variables then undecided, in increasing order */
    size_t point_count;
    struct dcrf_certificate_point *points;
    /* labels x variables: how the cost of a clique is divided among its members, in arbitrary
     * units; only before anything is decided. NULL: cliques are not part of the bound. */
    uint32_t *shares;
    struct dcrf_owned owned;
};

struct dcrf_certificate_content {
    struct dcrf_identity identity;
    double energy, lower_bound; /* as claimed; the energy is rounded up */
    size_t proven;              /* as claimed */
    size_t rounds;
    double *epsilon; /* per round */
    uint16_t *labels;
    uint16_t *round;    /* round in which a variable is decided, from 1; 0: never */
    size_t plane_count; /* labels with values */
    uint16_t *plane;    /* per label: its plane, counted from 1; 0: all its values are 0 */
    uint8_t *values;    /* planes x variables */
    size_t mixture_count;
    struct dcrf_certificate_mixture *mixtures; /* in ascending order of `after` */
    /* For a distance between labels: cuts whose lengths sum to at most that distance. There are
     * then no rounds, and alpha is per cut rather than per label; the value of a cut is the sum of
     * its labels' values, at most `levels`. */
    bool has_cuts;
    size_t cut_count;
    double *cut_lengths;
    uint8_t *cut_sets;       /* cuts x labels: 1 for labels in the cut */
    struct dcrf_owned owned; /* its own arrays; the mixtures have theirs */
};

/* The first bytes, and the number after them. */
#define DCRF_CERTIFICATE_MAGIC "DCRFCERT"
#define DCRF_CERTIFICATE_MAGIC_BYTES 8
#define DCRF_CERTIFICATE_VERSION 2
#define DCRF_CERTIFICATE_VERSION_WITH_CUTS 3

/* Limits that no genuine certificate reaches. Each round costs a pass over all pairs, and a point
 * of a few bytes takes four bytes per label and variable. Points are those of all mixtures
 * together; the shares of a mixture count as one. */
#define DCRF_MOST_ROUNDS 4096
#define DCRF_MOST_POINTS 32
#define DCRF_MOST_LEVELS 0xffffff
#define DCRF_MOST_CUTS 4096

static inline uint8_t dcrf_certificate_value(const struct dcrf_certificate_content *content,
                                             size_t variable, size_t label) {
    const size_t plane = content->plane[label];
    return plane == 0 ? 0 : content->values[(plane - 1) * content->identity.variables + variable];
}

void dcrf_certificate_mixture_clear(struct dcrf_certificate_mixture *mixture);
void dcrf_certificate_clear(struct dcrf_certificate_content *content);

/* The checksum at the end of a certificate. */
void dcrf_certificate_hash(const uint8_t *bytes, size_t count, uint8_t *digest);

/* Free *bytes with dcrf_release. */
dcrf_status dcrf_certificate_encode(const struct dcrf_certificate_content *content, uint8_t **bytes,
                                    size_t *count, dcrf_error *error);

/* Checks the range of every number and the size of every array. A certificate about another number
 * of variables or labels, or with more than the limits allow, is rejected before memory is
 * allocated for it. The workspace has the time limit; NULL: there is none. */
dcrf_status dcrf_certificate_decode(struct dcrf_certificate_content *content, size_t variables,
                                    size_t labels, const uint8_t *bytes, size_t count,
                                    dcrf_workspace *workspace, dcrf_error *error);

#endif
