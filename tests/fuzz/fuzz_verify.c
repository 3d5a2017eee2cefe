/* Fuzz target: the certificate check. Valid certificates of small models are damaged as the input
 * says, and their checksums corrected. Whatever is accepted must be true: no bound exceeds the
 * lowest energy, no optimal label is excluded, and energies are at most too low by the errors of
 * sums that the check allows for (docs/reference/certificate.md). Half of the models are Potts with
 * the exact operator, and are compared with the formula; the others have distances of all kinds and
 * either operator.
 *
 * Input: the model, then positions (two bytes; most count from the end of what identifies the
 * model, because a change before it is always refused) and what to do there: add a byte, or store
 * the eight bytes of an interesting number. A long input is hashed first, so that any change to it
 * selects another model and a few other positions. */
#include "core/sha256.h"
#include "metric_toy.h"
#include "model/model.h"
#include "solver/solver.h"
#include "target.h"
#include "toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOYS 16 /* of either kind */

/* Kept to the end. */
struct made {
    struct toy potts;
    struct metric_toy metric;
    dcrf_model *model; /* of one of the two */
    dcrf_workspace *workspace;
    uint8_t *bytes;
    size_t size, body; /* where the body begins */
    double optimum;
    uint16_t best[METRIC_TOY_VARIABLES];
};
static struct made made[2 * TOYS];

static void fuzz_check(bool holds) {
    if (!holds)
        abort();
}

static void certify(struct made *m, const dcrf_plan *plan, uint64_t seed) {
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.proof = DCRF_PROVE_CERTIFICATE;
    settings.iterations = 4 + seed % 3 * 20; /* some leave much undecided */
    fuzz_check(dcrf_solver_new(&solver, plan, m->workspace, &settings, NULL) == DCRF_OK);
    if (seed % 2 == 0)
        solver->most_sweeps = 0;
    fuzz_check(dcrf_solver_run(solver, NULL) > 0);
    const uint8_t *bytes = dcrf_proof_certificate(dcrf_solver_proof(solver), &m->size);
    fuzz_check((m->bytes = malloc(m->size)) != NULL);
    memcpy(m->bytes, bytes, m->size);
    m->body = 88 + 2 * DCRF_SHA256_BYTES;
    for (size_t k = 0; k < m->model->kernel_count; k++)
        m->body +=
            16 + 2 * DCRF_SHA256_BYTES + sizeof(double) * m->model->kernels[k].features.dimension;
    dcrf_solver_free(&solver);
}

static void make_potts(struct made *m, uint64_t seed) {
    m->potts = new_toy(seed, 3 + seed % 4, 2 + seed % 2, seed / 2 % 3,
                       0.2 + 0.4 * (double)(seed % 3), TOY_POTTS, 1);
    m->model = m->potts.model;
    m->workspace = m->potts.workspace;
    m->optimum = toy_optimum(&m->potts, m->best);
    certify(m, m->potts.plan, seed);
}

static void make_metric(struct made *m, uint64_t seed) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    m->metric = metric_toy_make(seed, METRIC_TOY_SAME, seed % 5 == 0, &rng);
    m->model = m->metric.model;
    m->workspace = m->metric.workspace;
    m->optimum = (double)metric_toy_optimum(&m->metric, m->best);
    certify(m, m->metric.plan, seed);
}

static void damage(const struct made *m, uint8_t *bytes, const uint8_t *data, size_t count) {
    static const double numbers[] = {0, -1, 1, 0.5, 1e-300, 1e300, INFINITY, -INFINITY, NAN};
    for (; count >= 4; data += 4, count -= 4) {
        const size_t first = data[2] < 64 ? 0 : m->body, end = m->size - DCRF_SHA256_BYTES;
        const size_t at = first + (data[0] + 256 * (size_t)data[1]) % (end - first);
        if (data[2] % 4 == 0 && at + 8 <= end)
            memcpy(bytes + at, &numbers[data[3] % (sizeof numbers / sizeof *numbers)], 8);
        else
            bytes[at] = (uint8_t)(bytes[at] + data[3]);
    }
}

static void seal(uint8_t *bytes, size_t size) {
    struct dcrf_sha256 hash;
    dcrf_sha256_begin(&hash);
    dcrf_sha256_add(&hash, bytes, size - DCRF_SHA256_BYTES);
    dcrf_sha256_end(&hash, bytes + size - DCRF_SHA256_BYTES);
}

#define LONG_INPUT 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t digest[DCRF_SHA256_BYTES];
    if (size > LONG_INPUT) {
        struct dcrf_sha256 hash;
        dcrf_sha256_begin(&hash);
        dcrf_sha256_add(&hash, data, size);
        dcrf_sha256_end(&hash, digest);
        data = digest;
        size = 1 + 4 * (size_t)(1 + digest[DCRF_SHA256_BYTES - 1] % 3);
    }
    dcrf_verification found;
    dcrf_error error = {0};
    if (size == 0)
        return 0;
    const size_t number = data[0] % (2 * TOYS);
    struct made *m = &made[number];
    if (!m->bytes)
        (number < TOYS ? make_potts : make_metric)(m, number);
    uint8_t *bytes = malloc(m->size);
    if (!bytes)
        return 0;
    memcpy(bytes, m->bytes, m->size);
    damage(m, bytes, data + 1, size - 1);
    seal(bytes, m->size);
    const dcrf_status status = dcrf_verify_certificate(bytes, m->size, m->model, m->workspace,
                                                       m->best, NULL, 0, &found, &error);
    fuzz_check(status == DCRF_OK || error.message[0] != 0);
    fuzz_check(status == DCRF_OK || size >= 5); /* undamaged certificates are accepted */
    if (status == DCRF_OK) {
        const double rounding = 1e-12 * (1 + fabs(m->optimum)); /* of the sums */
        fuzz_check(found.lower_bound <= m->optimum + rounding);
        fuzz_check(found.energy >= m->optimum - (number < TOYS ? 1e-9 : 1e-6));
        fuzz_check(found.wrong == 0);
    }
    free(bytes);
    return 0;
}
