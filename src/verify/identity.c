/* Identifies the model that a certificate is about: sizes, hashes of the data, and the settings. */
#include "core/error.h"
#include "core/owned.h"
#include "verify/certificate.h"

#include <string.h>

/* Variables hashed between checks for an interrupt. */
#define HASHED_TOGETHER 4096

static dcrf_status go_on(dcrf_workspace *workspace, size_t variable, dcrf_error *error) {
    return variable % HASHED_TOGETHER == 0
               ? dcrf_go_on(workspace, "hashing the data of a certificate", error)
               : DCRF_OK;
}

static dcrf_status hash_unary(const dcrf_model *model, dcrf_workspace *workspace, uint8_t *digest,
                              dcrf_error *error) {
    struct dcrf_sha256 hash;
    dcrf_status status = DCRF_OK;
    dcrf_sha256_begin(&hash);
    for (size_t a = 0; a < model->variables && (status = go_on(workspace, a, error)) == DCRF_OK;
         a++)
        for (size_t i = 0; i < model->labels; i++)
            dcrf_sha256_add_f32(&hash, model->unary[a * model->stride + i]);
    dcrf_sha256_end(&hash, digest);
    return status;
}

static void hash_cliques(const struct dcrf_cliques *cliques, uint8_t *digest) {
    struct dcrf_sha256 hash;
    dcrf_sha256_begin(&hash);
    for (size_t p = 0; p < cliques->count; p++) {
        dcrf_sha256_add_f64(&hash, cliques->costs[p]);
        dcrf_sha256_add_u64(&hash, cliques->offsets[p + 1] - cliques->offsets[p]);
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            dcrf_sha256_add_u64(&hash, cliques->members[k]);
    }
    dcrf_sha256_end(&hash, digest);
}

static dcrf_status identify_kernel(struct dcrf_identity_kernel *identity,
                                   const struct dcrf_model_kernel *kernel,
                                   dcrf_workspace *workspace, dcrf_error *error) {
    struct dcrf_sha256 hash;
    dcrf_status status = DCRF_OK;
    identity->weight = kernel->weight;
    identity->normalization = (uint32_t)kernel->normalization;
    identity->dimension = (uint32_t)kernel->features.dimension;
    dcrf_sha256_begin(&hash);
    for (size_t a = 0;
         a < kernel->features.variables && (status = go_on(workspace, a, error)) == DCRF_OK; a++)
        for (size_t i = 0; i < kernel->features.dimension; i++)
            dcrf_sha256_add_f64(&hash, dcrf_features_value(&kernel->features, a, i));
    dcrf_sha256_end(&hash, identity->features);
    for (size_t i = 0; i < kernel->features.dimension; i++)
        identity->factor[i] = dcrf_features_factor(&kernel->features, i);
    return status;
}

dcrf_status dcrf_identity_of_model(struct dcrf_identity *identity, const dcrf_model *model,
                                   bool is_exact, dcrf_workspace *workspace, dcrf_error *error) {
    *identity = (struct dcrf_identity){.is_exact = is_exact,
                                       .variables = model->variables,
                                       .labels = model->labels,
                                       .kernel_count = model->kernel_count,
                                       .clique_count = model->cliques.count};
    identity->kernels = dcrf_allocate_zero(model->kernel_count, sizeof *identity->kernels);
    if (!identity->kernels)
        return dcrf_fail_memory(error, "a certificate");
    dcrf_status status = hash_unary(model, workspace, identity->unary, error);
    hash_cliques(&model->cliques, identity->cliques);
    for (size_t m = 0; m < model->kernel_count && status == DCRF_OK; m++)
        status = identify_kernel(&identity->kernels[m], &model->kernels[m], workspace, error);
    if (status < 0)
        dcrf_identity_clear(identity);
    return status;
}

/* Pseudorandom integers from 1 to 2^16. */
static double probe(uint64_t variable, uint64_t channel) {
    uint64_t x = (2 * variable + channel + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return (double)(x >> 48) + 1;
}

#define PROBES 2

dcrf_status dcrf_identity_take_matrices(struct dcrf_identity *identity, const dcrf_plan *plan,
                                        dcrf_workspace *workspace, dcrf_error *error) {
    const size_t count = PROBES * plan->model->variables;
    DCRF_SCOPED double *in = dcrf_allocate(2 * count, sizeof *in);
    if (!in)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t k = 0; k < count; k++)
        in[k] = probe(k / PROBES, k % PROBES);
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const dcrf_operator *op = plan->kernels[m].op;
        struct dcrf_sha256 hash;
        TRY(op->methods->apply_double(op, workspace, in, in + count, PROBES, error));
        dcrf_sha256_begin(&hash);
        for (size_t k = 0; k < count; k++) {
            TRY(go_on(workspace, k, error));
            dcrf_sha256_add_f32(&hash, (float)in[count + k]);
        }
        dcrf_sha256_end(&hash, identity->kernels[m].matrix);
    }
    return DCRF_OK;
}

void dcrf_identity_clear(struct dcrf_identity *identity) {
    dcrf_release(identity->kernels);
    *identity = (struct dcrf_identity){0};
}

static dcrf_status differ(const char *what, dcrf_error *error) {
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the certificate is about another problem: %s",
                     what);
}

dcrf_status dcrf_identity_compare_sizes(const struct dcrf_identity *certificate, size_t variables,
                                        size_t labels, dcrf_error *error) {
    if (certificate->variables == variables && certificate->labels == labels)
        return DCRF_OK;
    return dcrf_fail(error, DCRF_ERROR_SIZE,
                     "the certificate is about another problem: it has %llu variables and "
                     "%llu labels, this one %llu and %llu",
                     (unsigned long long)certificate->variables,
                     (unsigned long long)certificate->labels, (unsigned long long)variables,
                     (unsigned long long)labels);
}

dcrf_status dcrf_identity_compare(const struct dcrf_identity *certificate,
                                  const struct dcrf_identity *model, dcrf_error *error) {
    TRY(dcrf_identity_compare_sizes(certificate, model->variables, model->labels, error));
    if (memcmp(certificate->unary, model->unary, DCRF_SHA256_BYTES) != 0)
        return differ("the unary energies differ", error);
    if (certificate->kernel_count != model->kernel_count)
        return differ("the number of kernels differs", error);
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_identity_kernel *one = &certificate->kernels[m];
        const struct dcrf_identity_kernel *other = &model->kernels[m];
        if (one->dimension != other->dimension ||
            memcmp(one->features, other->features, DCRF_SHA256_BYTES) != 0)
            return differ("the image differs (or the features of a kernel)", error);
        if (one->weight != other->weight || one->normalization != other->normalization ||
            memcmp(one->factor, other->factor, one->dimension * sizeof *one->factor) != 0)
            return differ("a kernel's weight, sigma or normalization differs", error);
    }
    if (certificate->clique_count != model->clique_count ||
        memcmp(certificate->cliques, model->cliques, DCRF_SHA256_BYTES) != 0)
        return differ("the cliques differ", error);
    for (size_t m = 0; m < model->kernel_count; m++)
        if (memcmp(certificate->kernels[m].matrix, model->kernels[m].matrix, DCRF_SHA256_BYTES))
            return differ("the lattice that is built here is not the one that it is about (another "
                          "version of the library, or another processor?)",
                          error);
    return DCRF_OK;
}
