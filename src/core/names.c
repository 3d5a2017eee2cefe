/* Names of the values of public enums, and back. */
#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <string.h>

static const char *name_of(const char *const *names, size_t count, size_t value) {
    return value < count ? names[value] : NULL;
}

/* The value with this name among `count`, or `count` if there is none. */
static size_t value_of(const char *const *names, size_t count, const char *name) {
    size_t value = 0;
    while (value < count && (!name || strcmp(names[value], name) != 0))
        value++;
    return value;
}

/* Define dcrf_X_name and dcrf_X_from_name; the names are in the order of the values. */
#define NAMES(type, ...)                                                                           \
    static const char *const type##_names[] = {__VA_ARGS__};                                       \
    const char *type##_name(type value) {                                                          \
        return name_of(type##_names, sizeof type##_names / sizeof type##_names[0], (size_t)value); \
    }                                                                                              \
    int type##_from_name(const char *name, type *value) {                                          \
        const size_t count = sizeof type##_names / sizeof type##_names[0];                         \
        const size_t found = value_of(type##_names, count, name);                                  \
        if (found == count || !value)                                                              \
            return 0;                                                                              \
        *value = (type)found;                                                                      \
        return 1;                                                                                  \
    }

NAMES(dcrf_candidate_kind, "unary", "constant", "flow", "mean field", "annealing", "fast")
NAMES(dcrf_clique_form, "min", "spread")
NAMES(dcrf_compatibility, "potts", "vector", "matrix")
NAMES(dcrf_cpu, "c", "neon", "avx2", "avx512", "simd128")
NAMES(dcrf_densecrf_normalization, "none", "before", "after", "symmetric")
NAMES(dcrf_direction, "symmetric", "forward", "adjoint")
NAMES(dcrf_kernel_kind, "spatial", "bilateral", "features")
NAMES(dcrf_lp_schedule, "huber", "proximal", "paper")
NAMES(dcrf_mask_kind, "labels", "hard", "soft", "trimap")
NAMES(dcrf_method, "mf", "qp", "lp")
NAMES(dcrf_normalization, "none", "symmetric")
NAMES(dcrf_operator_kind, "fast", "exact", "grid", "lattice")
NAMES(dcrf_proving, "gap", "variables", "certificate")
NAMES(dcrf_scribbles_stage, "colours", "distances", "mean field")
NAMES(dcrf_stage, "candidates", "fast", "solve", "finish", "proof")
NAMES(dcrf_superpixel_method, "meanshift", "slic")
NAMES(dcrf_type, "u8", "u16", "i16", "i32", "f32", "f64", "f16", "bf16")
NAMES(dcrf_unary_kind, "auto", "energies", "probabilities", "logits")
