/* A certificate: the proof of dcrf/proof.h in a form that others can check. docs/certificate.md
 * describes the bytes. */
#ifndef DCRF_CERTIFY_CERTIFICATE_H
#define DCRF_CERTIFY_CERTIFICATE_H

#include "core/sha256.h"
#include "model/model.h"

#include <dcrf/operator.h>
#include <stdbool.h>

/* Which model a certificate is about. */
struct dcrf_identity_kernel {
    double weight;
    uint32_t normalization;
    uint32_t dimension;
    uint8_t features[DCRF_SHA256_BYTES]; /* of the features before they are scaled */
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
                                   bool is_exact, dcrf_error *error);
void dcrf_identity_clear(struct dcrf_identity *identity);

/* An error says what of the model is not what the certificate is about. */
dcrf_status dcrf_identity_compare(const struct dcrf_identity *certificate,
                                  const struct dcrf_identity *model, dcrf_error *error);

struct dcrf_certificate_content {
    struct dcrf_identity identity;
    double energy, lower_bound; /* as claimed */
    size_t proven;              /* as claimed */
    size_t rounds;
    double *epsilon; /* rounds + 1: of every round, and of the rest */
    uint16_t *labels;
    uint16_t *round;    /* when a variable is decided, from 1 on; 0: never */
    size_t plane_count; /* labels that have values */
    uint16_t *plane;    /* per label: the number of its plane, from 1 on; 0: all its values are 0 */
    uint8_t *values;    /* planes x variables */
};

static inline uint8_t dcrf_certificate_value(const struct dcrf_certificate_content *content,
                                             size_t variable, size_t label) {
    const size_t plane = content->plane[label];
    return plane == 0 ? 0 : content->values[(plane - 1) * content->identity.variables + variable];
}

void dcrf_certificate_clear(struct dcrf_certificate_content *content);

/* *bytes is to be freed with dcrf_release. */
dcrf_status dcrf_certificate_encode(const struct dcrf_certificate_content *content, uint8_t **bytes,
                                    size_t *count, dcrf_error *error);

/* Every number is in its range and every array has its size. */
dcrf_status dcrf_certificate_decode(struct dcrf_certificate_content *content, const uint8_t *bytes,
                                    size_t count, dcrf_error *error);

#endif
