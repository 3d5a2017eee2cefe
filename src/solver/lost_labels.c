/* Under weights that drown the unaries mean field and all moves can lose a label that a whole
 * region of the image should have: two regions have it, one of them wrongly, and only both can
 * change at once. Say l_a is the label of a's smallest unary; of its neighbours' weight the part
 *
 *   share_ai = sum_b K_ab [l_b = i] / sum_b K_ab
 *
 * wants label i. Regions of one colour have one share, nearly, and a threshold parts them. */
#include "solver/lost_labels.h"

#include "core/error.h"
#include "core/memory.h"
#include "energy/coupling.h"

#include <string.h>

/* A label is lost that has so large a part of the smallest unaries and so small a part of these in
 * the labelling. */
#define LARGE 0.05
#define SMALL 0.5
static const float thresholds[] = {0.5f, 0.7f, 0.8f, 0.9f, 0.95f, 0.98f};

struct search {
    const dcrf_model *model;
    uint16_t *wanted;    /* l */
    float *in, *out;     /* rows of the model's stride */
    size_t *size, *kept; /* of each label: variables that want it, and that have it */
};

static bool is_lost(const struct search *s, size_t label) {
    return (double)s->size[label] >= LARGE * (double)s->model->variables &&
           (double)s->kept[label] < SMALL * (double)s->size[label];
}

static bool count_labels(const struct search *s, const uint16_t *labels) {
    bool is_any_lost = false;
    for (size_t a = 0; a < s->model->variables; a++) {
        s->size[s->wanted[a]]++;
        s->kept[s->wanted[a]] += labels[a] == s->wanted[a];
    }
    for (size_t i = 0; i < s->model->labels; i++)
        is_any_lost |= is_lost(s, i);
    return is_any_lost;
}

static dcrf_status find_shares(const struct search *s, const struct dcrf_coupling *coupling,
                               dcrf_error *error) {
    const size_t stride = s->model->stride;
    memset(s->in, 0, s->model->variables * stride * sizeof *s->in);
    for (size_t a = 0; a < s->model->variables; a++)
        s->in[a * stride + s->wanted[a]] = 1;
    const dcrf_status status =
        dcrf_coupling_sum(coupling, 0, s->in, s->out, s->model->labels, stride, error);
    for (size_t a = 0; a < s->model->variables && status == DCRF_OK; a++) {
        float *row = s->out + a * stride, sum = 0;
        for (size_t i = 0; i < s->model->labels; i++)
            sum += row[i];
        for (size_t i = 0; i < s->model->labels; i++)
            row[i] = sum > 0 ? row[i] / sum : 0;
    }
    return status;
}

static dcrf_status give_back(dcrf_solver *solver, const struct search *s, bool *is_better,
                             dcrf_error *error) {
    const size_t n = s->model->variables;
    for (size_t i = 0; i < s->model->labels; i++)
        for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds && is_lost(s, i); t++) {
            if (dcrf_stop_is_due(&solver->stop))
                return DCRF_OK;
            const double before = solver->info.energy.total;
            memcpy(solver->candidate, solver->best, n * sizeof *solver->best);
            for (size_t a = 0; a < n; a++)
                if (s->out[a * s->model->stride + i] > thresholds[t])
                    solver->candidate[a] = (uint16_t)i;
            dcrf_energy energy;
            const dcrf_status status =
                dcrf_solver_consider(solver, solver->candidate, &energy, error);
            if (status < 0)
                return status;
            *is_better |= energy.total < before;
        }
    return DCRF_OK;
}

dcrf_status dcrf_try_lost_labels(dcrf_solver *solver, bool *is_better, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    const size_t n = model->variables;
    struct dcrf_coupling *coupling = NULL;
    struct search s = {.model = model,
                       .wanted = dcrf_allocate(n, sizeof *s.wanted),
                       .size = dcrf_allocate_zero(model->labels, sizeof *s.size),
                       .kept = dcrf_allocate_zero(model->labels, sizeof *s.kept)};
    dcrf_status status =
        s.wanted && s.size && s.kept ? DCRF_OK : dcrf_fail_memory(error, "the lost labels");
    *is_better = false;
    if (status == DCRF_OK)
        dcrf_label_by_unary(model, s.wanted);
    if (status == DCRF_OK && count_labels(&s, solver->best)) {
        s.in = dcrf_allocate(n, model->stride * sizeof *s.in);
        s.out = dcrf_allocate(n, model->stride * sizeof *s.out);
        status = s.in && s.out ? dcrf_coupling_new(&coupling, solver->problem.plan,
                                                   solver->problem.workspace, error)
                               : dcrf_fail_memory(error, "the lost labels");
        if (status == DCRF_OK)
            status = find_shares(&s, coupling, error);
        if (status == DCRF_OK)
            status = give_back(solver, &s, is_better, error);
    }
    dcrf_coupling_free(&coupling);
    dcrf_release(s.wanted);
    dcrf_release(s.in);
    dcrf_release(s.out);
    dcrf_release(s.size);
    dcrf_release(s.kept);
    return status;
}
