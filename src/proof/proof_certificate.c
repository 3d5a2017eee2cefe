/* What the certificate of a proof holds: the LP's dual point, the groups by round, the values that
 * prove them, and the bound of the rest (docs/reference/certificate.md). It claims only what a
 * check will confirm. */
#include "core/error.h"
#include "energy/columns.h"
#include "proof/kept.h"
#include "proof/proof_run.h"
#include "verify/check.h"

#include <math.h>
#include <string.h>

/* Bound on the difference between two sums in double with different orders of addition
 * (check_sums.c). */
static double allowance(const struct dcrf_proof_run *run) {
    const dcrf_model *model = run->known->model;
    const double n = (double)model->variables;
    double rows = 0, weights = 0, unaries = 0;
    for (size_t a = 0; a < model->variables; a++) {
        rows += run->known->row_sums[a];
        unaries += fabs((double)model->unary[a * model->stride + run->known->labels[a]]);
    }
    for (size_t m = 0; m < model->kernel_count; m++)
        weights += fabs(model->kernels[m].weight);
    return run->scale *
               (16 * ((3 * n + 2000) * 0x1p-52 + 1e-12) * rows + 16 * n * n * 5e-18 * weights) +
           0x1p-46 * unaries;
}

/* The cuts that represent the model's distance in the LP. */
static dcrf_status take_cuts(const struct dcrf_proof_run *run,
                             struct dcrf_certificate_content *content, dcrf_error *error) {
    if (!run->known->distance)
        return DCRF_OK;
    const struct dcrf_cuts *cuts = run->lp->space.columns->groups[0].cuts;
    content->has_cuts = true;
    content->cut_count = cuts->count;
    content->cut_lengths = dcrf_own(&content->owned, cuts->count, sizeof *content->cut_lengths);
    content->cut_sets = dcrf_own(&content->owned, cuts->count, cuts->labels);
    if (content->owned.is_short)
        return dcrf_fail_memory(error, "a certificate");
    memcpy(content->cut_lengths, cuts->lengths, cuts->count * sizeof *cuts->lengths);
    dcrf_cuts_sets(cuts, content->cut_sets);
    return DCRF_OK;
}

/* If there is no time for this, the certificate omits the dual point. */
dcrf_status dcrf_proof_exclude_by_kept(struct dcrf_proof_run *run, double energy,
                                       dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    TRY(dcrf_kept_mixture(run->lp, run->is_exact, &run->kept, error));
    struct dcrf_certificate_content content = {
        .identity = {.is_exact = run->is_exact}, .labels = known->labels, .mixtures = &run->kept};
    double excess = INFINITY;
    const dcrf_plan *plan = run->is_exact ? NULL : known->plan;
    const size_t cells = known->model->variables * known->model->labels;
    DCRF_SCOPED uint8_t *possible = dcrf_allocate(cells, 1);
    if (!possible)
        return dcrf_fail_memory(error, "a proof");
    DCRF_WATCH(known->workspace, &run->stop->interrupt);
    dcrf_status status = take_cuts(run, &content, error);
    if (status == DCRF_OK) {
        run->scale = dcrf_check_cuts_scale(&content, known->distance, known->model->labels);
        status = dcrf_check_first(&content, known->model, plan, known->workspace, &excess, possible,
                                  error);
    }
    dcrf_disown(&content.owned);
    if (status == DCRF_ERROR_INTERRUPTED) {
        run->kept.size = 0; /* not checked, so not claimed */
        return DCRF_OK;
    }
    for (size_t k = 0; k < cells && status == DCRF_OK; k++)
        known->possible[k] &= possible[k];
    run->kept_bound = energy - excess - 2 * allowance(run);
    return status < 0 || known->distance ? status : dcrf_knowledge_decide(known, NULL, error);
}

/* The sum of the lowest unaries, which is independent of the errors of the pairs: at most what
 * check_bound.c computes, and at most a plain sum in double with an error of n 2^-52 times the
 * magnitudes. */
static double claimed_floor(const struct dcrf_proof_run *run) {
    const dcrf_model *model = run->known->model;
    double magnitude = 0;
    for (size_t a = 0; a < model->variables; a++) {
        const float *row = model->unary + a * model->stride;
        float least = row[0];
        for (size_t i = 1; i < model->labels; i++)
            least = fminf(least, row[i]);
        magnitude += fabs((double)least);
    }
    return run->solver->info.unary_floor - run->solver->unary_floor_error -
           ((double)model->variables + 8) * 0x1p-51 * magnitude;
}

/* The bound after subtracting the errors that a check in double allows for. */
void dcrf_proof_claim(const struct dcrf_proof_run *run, double error_of, double excess,
                      bool is_only_one, struct dcrf_conclusion *claimed) {
    const double floor = run->solver->info.unary_floor, allowed = allowance(run);
    const double energy = claimed->energy.total, bound = energy - excess - 2 * error_of - allowed;
    claimed->lower_bound = fmax(bound, fmax(run->kept_bound, claimed_floor(run)));
    claimed->relative_gap =
        is_only_one ? 0 : dcrf_relative_gap(energy, claimed->lower_bound, floor);
}

/* Number the planes of the labels that have a nonzero value at some variable (of_rest: at some
 * undecided one), from 1; 0: no plane. Returns how many. */
static size_t find_planes(const struct dcrf_proof_run *run, bool of_rest, uint16_t *plane) {
    const size_t n = run->known->model->variables, labels = run->known->model->labels;
    size_t count = 0;
    for (size_t i = 0; i < labels; i++) {
        size_t a = 0;
        while (a < n &&
               ((of_rest && run->known->round[a] != 0) || run->groups.value[a * labels + i] == 0))
            a++;
        plane[i] = a < n ? (uint16_t)++count : 0;
    }
    return count;
}

/* The values, one plane per label with nonzero values. */
static bool pack_values(const struct dcrf_proof_run *run,
                        struct dcrf_certificate_content *content) {
    const size_t n = run->known->model->variables, labels = run->known->model->labels;
    content->plane = dcrf_own_zero(&content->owned, labels, sizeof *content->plane);
    if (!content->plane)
        return false;
    if (!run->known->distance)
        content->plane_count = find_planes(run, false, content->plane);
    content->values = dcrf_own(&content->owned, content->plane_count, n);
    for (size_t i = 0; i < labels && content->values; i++)
        for (size_t a = 0; a < n && content->plane[i] > 0; a++)
            content->values[(content->plane[i] - (size_t)1) * n + a] =
                run->groups.value[a * labels + i];
    return content->values != NULL;
}

/* The bound of the rest comes from a single dual point with the values of the undecided
 * variables. */
static bool pack_rest(const struct dcrf_proof_run *run, struct dcrf_certificate_content *content) {
    const struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    if (known->undecided == 0 || known->distance)
        return true;
    struct dcrf_certificate_mixture *rest = &content->mixtures[content->mixture_count++];
    rest->after = known->rounds;
    rest->size = known->undecided;
    rest->points = dcrf_own_zero(&rest->owned, 1, sizeof *rest->points);
    if (!rest->points)
        return false;
    rest->point_count = 1;
    struct dcrf_certificate_point *point = rest->points;
    point->weight = 1;
    point->epsilon = run->groups.epsilon;
    point->nodes = DCRF_VALUE_NODES;
    point->levels = DCRF_VALUE_MOST;
    point->plane = dcrf_own_zero(&rest->owned, labels, sizeof *point->plane);
    if (!point->plane)
        return false;
    point->plane_count = find_planes(run, true, point->plane);
    point->values = dcrf_own(&rest->owned, point->plane_count, rest->size * sizeof *point->values);
    for (size_t i = 0; i < labels && point->values; i++) {
        if (point->plane[i] == 0)
            continue;
        uint32_t *values = point->values + (point->plane[i] - (size_t)1) * rest->size;
        for (size_t a = 0; a < n; a++)
            if (known->round[a] == 0)
                *values++ = run->groups.value[a * labels + i];
    }
    return point->values != NULL;
}

static struct dcrf_certificate_mixture take_kept(struct dcrf_proof_run *run) {
    const struct dcrf_certificate_mixture kept = run->kept;
    run->kept = (struct dcrf_certificate_mixture){0};
    return kept;
}

dcrf_status dcrf_proof_encode(struct dcrf_proof_run *run, const struct dcrf_conclusion *claimed,
                              uint8_t **bytes, size_t *size, dcrf_error *error) {
    const struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables;
    DCRF_AT_END(dcrf_certificate_clear)
    struct dcrf_certificate_content content = {.energy = claimed->energy.total,
                                               .lower_bound = claimed->lower_bound,
                                               .proven = claimed->proven,
                                               .rounds = known->rounds};
    TRY(dcrf_identity_of_model(&content.identity, known->model, run->is_exact, known->workspace,
                               error));
    TRY(take_cuts(run, &content, error));
    if (!content.identity.is_exact)
        TRY(dcrf_identity_take_matrices(&content.identity, known->plan, known->workspace, error));
    content.epsilon = dcrf_own(&content.owned, known->rounds, sizeof *content.epsilon);
    content.mixtures = dcrf_own_zero(&content.owned, 2, sizeof *content.mixtures);
    if (content.mixtures && run->kept.size > 0)
        content.mixtures[content.mixture_count++] = take_kept(run);
    content.labels = dcrf_own(&content.owned, n, sizeof *content.labels);
    content.round = dcrf_own(&content.owned, n, sizeof *content.round);
    if (content.owned.is_short || !pack_values(run, &content) || !pack_rest(run, &content))
        return dcrf_fail_memory(error, "a certificate");
    for (size_t r = 0; r < known->rounds; r++)
        content.epsilon[r] =
            r < run->first_rounds ? DCRF_PROOF_FIRST_EPSILON : DCRF_PROOF_REST_EPSILON;
    memcpy(content.labels, known->labels, n * sizeof *content.labels);
    memcpy(content.round, known->round, n * sizeof *content.round);
    return dcrf_certificate_encode(&content, bytes, size, error);
}
