/* Fuzz target: the certificate check. Valid certificates of small models are damaged as the input
 * says, and their checksums corrected. Whatever is accepted must be true: no bound exceeds the
 * lowest energy, and no optimal label is excluded.
 *
 * Input: the model, then positions (two bytes) and what to do there: add a byte, or store the eight
 * bytes of an interesting number. A long input is hashed first, so that any change to it selects
 * another model and a few other positions. */
#include "core/sha256.h"
#include "target.h"
#include "toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOYS 16
#define MOST_VARIABLES 6

struct made {
    struct toy toy;
    uint8_t *bytes;
    size_t size;
    double optimum;
    uint16_t best[MOST_VARIABLES];
};
static struct made made[TOYS];

static void fuzz_check(bool holds) {
    if (!holds)
        abort();
}

static void make(struct made *m, uint64_t seed) {
    dcrf_settings settings;
    dcrf_proof_settings limits;
    dcrf_solver *solver;
    dcrf_proof *proof;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.proof = seed % 4 != 0 ? DCRF_PROVE_CERTIFICATE : DCRF_PROVE_BY_GAP;
    settings.iterations = 4 + seed % 3 * 20; /* some leave much undecided */
    dcrf_proof_settings_defaults(&limits);
    limits.certificate = 1;
    limits.sweeps = seed % 2 ? 500 : 0;
    m->toy = new_toy(seed, 3 + seed % 4, 2 + seed % 2, seed / 2 % 3, 0.2 + 0.4 * (double)(seed % 3),
                     TOY_POTTS, 1);
    fuzz_check(dcrf_solver_new(&solver, m->toy.plan, m->toy.workspace, &settings, NULL) == DCRF_OK);
    fuzz_check(dcrf_solver_run(solver, NULL) > 0);
    fuzz_check(dcrf_proof_new(&proof, solver, &limits, NULL) == DCRF_OK);
    const uint8_t *bytes = dcrf_proof_certificate(proof, &m->size);
    fuzz_check((m->bytes = malloc(m->size)) != NULL);
    memcpy(m->bytes, bytes, m->size);
    m->optimum = toy_optimum(&m->toy, m->best);
    dcrf_proof_free(&proof);
    dcrf_solver_free(&solver);
}

static void damage(uint8_t *bytes, size_t size, const uint8_t *data, size_t count) {
    static const double numbers[] = {0, -1, 1, 0.5, 1e-300, 1e300, INFINITY, -INFINITY, NAN};
    for (; count >= 4; data += 4, count -= 4) {
        const size_t at = (data[0] + 256 * (size_t)data[1]) % (size - DCRF_SHA256_BYTES);
        if (data[2] % 4 == 0 && at + 8 + DCRF_SHA256_BYTES <= size)
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
    struct made *m = &made[data[0] % TOYS];
    if (!m->bytes)
        make(m, data[0] % TOYS);
    uint8_t *bytes = malloc(m->size);
    if (!bytes)
        return 0;
    memcpy(bytes, m->bytes, m->size);
    damage(bytes, m->size, data + 1, size - 1);
    seal(bytes, m->size);
    const dcrf_status status = dcrf_verify_certificate(
        bytes, m->size, m->toy.model, m->toy.workspace, m->best, NULL, 0, &found, &error);
    fuzz_check(status == DCRF_OK || error.message[0] != 0);
    fuzz_check(status == DCRF_OK || size >= 5); /* undamaged certificates are accepted */
    if (status == DCRF_OK) {
        const double rounding = 1e-12 * (1 + fabs(m->optimum)); /* of the sums */
        fuzz_check(found.lower_bound <= m->optimum + rounding);
        fuzz_check(found.energy >= m->optimum - rounding);
        fuzz_check(found.wrong == 0);
    }
    free(bytes);
    return 0;
}
