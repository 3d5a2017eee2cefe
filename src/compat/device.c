/* The compatible mean field on a device.
 *
 * The device has the kernels' lattices as operators of its own, and an object with the unary
 * energies, the compatibilities and Q, which is made when it is first needed and kept until
 * something changes. Inference is one call of the seam: nothing but its result comes back. Who
 * finds the object in use by another thread makes one more.
 *
 * A kernel that the device cannot have brings the whole model back here; for that a kernel there
 * keeps its features. */
#include "compat/densecrf.h"

#include "core/error.h"
#include "core/memory.h"

#include <stdatomic.h>
#include <string.h>

void dcrf_densecrf_choose_device(dcrf_densecrf *crf, const dcrf_workspace *workspace) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    crf->is_there = device && crf->labels <= DCRF_BACKEND_MOST_LABELS;
    if (crf->is_there)
        crf->device = *device;
}

void dcrf_densecrf_forget(dcrf_densecrf *crf) {
    dcrf_backend_compat *there = atomic_exchange(&crf->idle, NULL);
    if (there)
        crf->device.backend->compat.free(there);
}

/* ---- kernels -------------------------------------------------------------------------------- */

dcrf_status dcrf_densecrf_build_there(const dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                                      struct dcrf_features *features,
                                      dcrf_densecrf_normalization normalization,
                                      dcrf_error *error) {
    const dcrf_status status = crf->device.backend->compat.operator_new(
        &term->op, crf->device.opened, features, dcrf_densecrf_has_origin(crf), normalization,
        error);
    if (status < 0)
        return status;
    term->features = *features;
    term->normalization = normalization;
    features->channel = NULL; /* the term has it now */
    return DCRF_OK;
}

dcrf_status dcrf_densecrf_come_back(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                    dcrf_error *error) {
    struct dcrf_densecrf_term *made = dcrf_allocate_zero(crf->term_count + 1, sizeof *made);
    if (!made)
        return dcrf_fail_memory(error, "a kernel");
    dcrf_status status = DCRF_OK;
    for (size_t m = 0; m < crf->term_count && status == DCRF_OK; m++)
        status = dcrf_densecrf_build(crf, &made[m], workspace, &crf->terms[m].features,
                                     crf->terms[m].normalization, error);
    if (status == DCRF_OK)
        dcrf_densecrf_forget(crf);
    for (size_t m = 0; m < crf->term_count; m++) {
        struct dcrf_densecrf_term *term = &crf->terms[m];
        if (status == DCRF_OK) { /* each has the other's operator now */
            dcrf_operator *there = term->op;
            term->op = made[m].op;
            made[m].op = there;
            term->gain = made[m].gain;
            term->row_sum = made[m].row_sum;
            dcrf_features_clear(&term->features);
        }
        dcrf_operator_free(&made[m].op);
    }
    if (status == DCRF_OK)
        crf->is_there = false;
    dcrf_release(made);
    return status;
}

/* ---- the object ----------------------------------------------------------------------------- */

/* Kernels as groups of the seam, whose field is the message: one of all scalars, with the matrix I
 * where it is not alone, and one for each other kernel. */
struct groups {
    size_t count;
    struct dcrf_backend_group *group;
    dcrf_operator **operators;
    float *weights;
    float *matrices;
};

static void groups_clear(struct groups *groups) {
    dcrf_release(groups->group);
    dcrf_release(groups->operators);
    dcrf_release(groups->weights);
    dcrf_release(groups->matrices);
}

static void fill_matrix(const struct dcrf_densecrf_term *term, size_t labels, float *matrix) {
    for (size_t k = 0; k < labels * labels; k++) {
        const bool is_own = k / labels == k % labels;
        if (term->compatibility == DCRF_COMPATIBILITY_MATRIX)
            matrix[k] = term->mu[k];
        else if (term->compatibility == DCRF_COMPATIBILITY_VECTOR)
            matrix[k] = is_own ? term->mu[k % labels] : 0;
        else
            matrix[k] = is_own;
    }
}

static bool is_scalar(const struct dcrf_densecrf_term *term) {
    return term->compatibility == DCRF_COMPATIBILITY_POTTS;
}

static bool groups_fill(struct groups *groups, const dcrf_densecrf *crf) {
    const size_t terms = crf->term_count, matrix = crf->labels * crf->labels;
    size_t scalars = 0, used = 0;
    for (size_t m = 0; m < terms; m++)
        scalars += is_scalar(&crf->terms[m]);
    groups->group = dcrf_allocate_zero(terms, sizeof *groups->group);
    groups->operators = dcrf_allocate(terms, sizeof *groups->operators);
    groups->weights = dcrf_allocate(terms, sizeof *groups->weights);
    if (!groups->group || !groups->operators || !groups->weights)
        return false;
    if (scalars < terms) {
        groups->matrices = dcrf_allocate(terms, matrix * sizeof *groups->matrices);
        if (!groups->matrices)
            return false;
    }
    for (size_t pass = 0; pass < 2; pass++) /* the scalars first */
        for (size_t m = 0; m < terms; m++) {
            const struct dcrf_densecrf_term *term = &crf->terms[m];
            if (is_scalar(term) != (pass == 0))
                continue;
            groups->operators[used] = term->op;
            groups->weights[used] = is_scalar(term) ? term->mu[0] : 1;
            if (pass == 1 || used == 0) {
                struct dcrf_backend_group *group = &groups->group[groups->count];
                group->operators = groups->operators + used;
                group->weights = groups->weights + used;
                if (groups->matrices) {
                    fill_matrix(term, crf->labels, groups->matrices + groups->count * matrix);
                    group->compatibility = groups->matrices + groups->count * matrix;
                }
                groups->count++;
            }
            groups->group[groups->count - 1].kernel_count++;
            used++;
        }
    return true;
}

static dcrf_status make(dcrf_backend_compat **out, const dcrf_densecrf *crf, dcrf_error *error) {
    struct groups groups = {0};
    dcrf_status status;
    if (groups_fill(&groups, crf)) {
        const struct dcrf_backend_compat_model model = {.variables = crf->variables,
                                                        .labels = crf->labels,
                                                        .unary = crf->unary,
                                                        .lanes = DCRF_LANES,
                                                        .order = crf->order,
                                                        .group_count = groups.count,
                                                        .groups = groups.group};
        status = crf->device.backend->compat.make(out, crf->device.opened, &model, error);
    } else {
        status = dcrf_fail_memory(error, "mean field");
    }
    groups_clear(&groups);
    return status;
}

/* The one that is kept, or a new one; to be given back. */
static dcrf_status take(dcrf_backend_compat **there, const dcrf_densecrf *crf, dcrf_error *error) {
    *there = atomic_exchange(&((dcrf_densecrf *)(uintptr_t)crf)->idle, NULL);
    return *there ? DCRF_OK : make(there, crf, error);
}

static void give_back(const dcrf_densecrf *crf, dcrf_backend_compat *there) {
    dcrf_backend_compat *other = atomic_exchange(&((dcrf_densecrf *)(uintptr_t)crf)->idle, there);
    if (other)
        crf->device.backend->compat.free(other);
}

/* ---- what is done with it ------------------------------------------------------------------- */

struct telling {
    dcrf_progress_callback progress;
    void *user;
    double start_s;
};

static int tell(void *user, size_t updates) {
    const struct telling *telling = user;
    const dcrf_moment moment = dcrf_densecrf_moment(telling->start_s, updates);
    return telling->progress(telling->user, &moment);
}

dcrf_status dcrf_densecrf_run_there(const dcrf_densecrf *crf, const float *from, size_t updates,
                                    float *q, dcrf_progress_callback progress, void *progress_user,
                                    dcrf_error *error) {
    struct telling telling = {progress, progress_user, dcrf_time_s()};
    const struct dcrf_backend_compat_run run = {.from = from,
                                                .updates = updates,
                                                .to = q,
                                                .after = progress ? tell : NULL,
                                                .user = &telling};
    dcrf_backend_compat *there;
    dcrf_status status = take(&there, crf, error);
    if (status < 0)
        return status;
    status = crf->device.backend->compat.run(there, &run, error);
    give_back(crf, there);
    return status;
}

dcrf_status dcrf_densecrf_divergence_there(const dcrf_densecrf *crf, const float *q,
                                           double *divergence, dcrf_error *error) {
    dcrf_backend_compat *there;
    dcrf_status status = take(&there, crf, error);
    if (status < 0)
        return status;
    status = crf->device.backend->compat.divergence(there, q, divergence, error);
    give_back(crf, there);
    return status;
}
