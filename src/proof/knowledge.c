/* Deciding variables, and dead-end elimination (Desmet, De Maeyer, Hazes, Lasters, "The dead-end
 * elimination theorem and its use in protein side-chain positioning", Nature 356, 1992):
 *
 *   cost_ai - min_j cost_aj > 2 sum_{b undecided, i possible at b} K_ab + C_p [p may agree on i]
 *
 * means that every labelling with label i at a improves when a alone takes the label j, so i occurs
 * there in no optimal labelling. Sums for deciding go through the ordered filter, which has a known
 * accuracy; its table selects the variables that count. */
#include "proof/knowledge.h"

#include "core/error.h"
#include "dsp/dsp.h"

#include <math.h>
#include <string.h>

#define UNIT 0x1p-24 /* unit roundoff of float */
#define SLACK 1e-3   /* covers 1 / (1 - roundings * UNIT) */
#define TINY 1e-25   /* covers values flushed to zero */
#define GRAIN 1024
#define TABLE_NODES (DCRF_VALUE_NODES + 2)

/* Every b occurs in one sum per label, with a factor of at most 2, regardless of the number of
 * calls; a margin is a difference of two labels, and a pair that is left out has a slack of at most
 * 4 K_ab. The sums in double have a few dozen terms; a cost is rounded once per round. Labels so
 * much more expensive than the cheapest that no sum can close the gap are ignored: their margins
 * far exceed their rounding errors. */
static void find_errors(struct dcrf_knowledge *known) {
    const dcrf_model *model = known->model;
    for (size_t a = 0; a < model->variables; a++) {
        double largest = 0, least = INFINITY;
        for (size_t i = 0; i < model->labels; i++)
            least = fmin(least, (double)model->unary[a * model->stride + i]);
        for (size_t i = 0; i < model->labels; i++) {
            const double unary = (double)model->unary[a * model->stride + i];
            if (model->cliques.count > 0 ||
                unary - least <= 0x1p20 * (known->row_sums[a] + fabs(least)))
                largest = fmax(largest, fabs(unary));
        }
        known->error[a] =
            4 * (double)known->roundings * UNIT * (1 + SLACK) * known->row_sums[a] +
            4 * known->left_out[a] +
            (0x1p-44 + 0x1p-51 * (double)known->rounds) * (largest + known->row_sums[a]) + TINY;
    }
}

/* Add the errors of an operator: its roundings, and what it leaves out of the rows of its variables
 * (NULL: all). */
static dcrf_status count_errors(struct dcrf_knowledge *known, const dcrf_operator *op,
                                double weight, const uint32_t *members, dcrf_error *error) {
    const size_t own = op->methods->ordered_roundings(op, TABLE_NODES, false);
    known->roundings = own > known->roundings ? own : known->roundings;
    if (!op->methods->left_out)
        return DCRF_OK;
    const dcrf_status status =
        op->methods->left_out(op, known->workspace, false, known->indicated, error);
    for (size_t k = 0; k < op->variables && status == DCRF_OK; k++)
        known->left_out[members ? members[k] : k] += weight * known->indicated[k];
    return status;
}

/* The row sums in double, rounded up, and the accuracy of the filters. */
static dcrf_status sum_rows(struct dcrf_knowledge *known, dcrf_error *error) {
    const size_t n = known->model->variables;
    for (size_t m = 0; m < known->plan->kernel_count; m++) {
        const dcrf_operator *op = known->plan->kernels[m].op;
        const double weight = known->model->kernels[m].weight;
        if (weight == 0)
            continue;
        for (size_t a = 0; a < n; a++)
            known->indicator[a] = 1;
        TRY(op->methods->apply_double(op, known->workspace, known->indicator, known->indicated, 1,
                                      error));
        for (size_t a = 0; a < n; a++)
            known->row_sums[a] += weight * known->indicated[a] * (1 + 0x1p-32);
        TRY(count_errors(known, op, weight, NULL, error));
    }
    find_errors(known);
    return DCRF_OK;
}

dcrf_status dcrf_knowledge_init(struct dcrf_knowledge *known, const dcrf_plan *plan,
                                dcrf_workspace *workspace, const uint16_t *labels,
                                dcrf_error *error) {
    const dcrf_model *model = plan->model;
    const size_t n = model->variables;
    *known = (struct dcrf_knowledge){
        .plan = plan, .model = model, .workspace = workspace, .undecided = n, .member_count = n};
    TRY(dcrf_model_find_distance(model, "a proof for single variables", &known->distance, error));
    struct dcrf_owned *work = &known->work;
    known->labels = dcrf_own(&known->result, n, sizeof *known->labels);
    known->possible = dcrf_own(&known->result, n, model->labels);
    known->round = dcrf_own_zero(work, n, sizeof *known->round);
    known->cost = dcrf_own(work, n, model->labels * sizeof *known->cost);
    known->row_sums = dcrf_own_zero(work, n, sizeof *known->row_sums);
    known->left_out = dcrf_own_zero(work, n, sizeof *known->left_out);
    known->error = dcrf_own(work, n, sizeof *known->error);
    known->bin = dcrf_own(work, n, sizeof *known->bin);
    known->fraction = dcrf_own_zero(work, n, sizeof *known->fraction);
    known->filtered = dcrf_own(work, n, sizeof *known->filtered);
    known->indicator = dcrf_own(work, n, sizeof *known->indicator);
    known->indicated = dcrf_own(work, n, sizeof *known->indicated);
    known->sum = dcrf_own(work, n, sizeof *known->sum);
    known->table =
        dcrf_own_zero(work, TABLE_NODES, dcrf_bin_row(TABLE_NODES) * sizeof *known->table);
    const dcrf_status status = work->is_short || known->result.is_short
                                   ? dcrf_fail_memory(error, "a proof")
                                   : sum_rows(known, error);
    if (status < 0) {
        dcrf_knowledge_clear(known);
        return status;
    }
    memcpy(known->labels, labels, n * sizeof *labels);
    memset(known->possible, 1, n * model->labels);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < model->labels; i++)
            known->cost[a * model->labels + i] = (double)model->unary[a * model->stride + i];
    return DCRF_OK;
}

static void drop_parts(struct dcrf_knowledge *known) {
    for (size_t m = 0; known->parts && m < known->plan->kernel_count; m++)
        dcrf_operator_free(&known->parts[m]);
    dcrf_release(known->parts);
    known->parts = NULL;
}

void dcrf_knowledge_keep_result(struct dcrf_knowledge *known) {
    drop_parts(known);
    dcrf_disown(&known->work);
    *known = (struct dcrf_knowledge){
        .labels = known->labels, .possible = known->possible, .result = known->result};
}

void dcrf_knowledge_clear(struct dcrf_knowledge *known) {
    dcrf_knowledge_keep_result(known);
    dcrf_disown(&known->result);
    *known = (struct dcrf_knowledge){0};
}

/* ---- sums over kernels ---------------------------------------------------------------------- */

static const dcrf_operator *operator_of(const struct dcrf_knowledge *known, size_t kernel) {
    return known->parts ? known->parts[kernel] : known->plan->kernels[kernel].op;
}

struct weighted {
    struct dcrf_knowledge *known;
    double weight;
};

static void add_filtered(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct weighted *w = context;
    const uint32_t *members = w->known->parts ? w->known->members : NULL;
    for (size_t k = begin; k < end; k++)
        w->known->sum[members ? members[k] : k] += w->weight * (double)w->known->filtered[k];
}

dcrf_status dcrf_knowledge_sum(struct dcrf_knowledge *known, size_t bins, const float *table,
                               dcrf_error *error) {
    const size_t n = known->model->variables;
    memset(known->sum, 0, n * sizeof *known->sum);
    for (size_t k = 0; k < known->member_count && known->parts; k++) {
        known->packed_bin[k] = known->bin[known->members[k]];
        known->packed_fraction[k] = known->fraction[known->members[k]];
    }
    for (size_t m = 0; m < known->plan->kernel_count; m++) {
        const dcrf_operator *op = operator_of(known, m);
        struct weighted weighted = {known, known->model->kernels[m].weight};
        if (weighted.weight == 0)
            continue;
        const struct dcrf_ordered channel = {.bins = bins,
                                             .table = table,
                                             .bin = known->parts ? known->packed_bin : known->bin,
                                             .fraction = known->parts ? known->packed_fraction
                                                                      : known->fraction,
                                             .out = known->filtered};
        TRY(op->methods->ordered(op, known->workspace, &channel, error));
        dcrf_parallel_for(dcrf_workspace_pool(known->workspace), known->member_count, GRAIN,
                          add_filtered, &weighted);
    }
    return DCRF_OK;
}

/* The variable at index k of the operators. */
static size_t member(const struct dcrf_knowledge *known, size_t k) {
    return known->parts ? known->members[k] : k;
}

/* sum = sum_m w_m K_m in, blocks of members x channels; `out` is scratch memory. */
static dcrf_status sum_double(struct dcrf_knowledge *known, const double *in, double *out,
                              double *sum, size_t channels, dcrf_error *error) {
    const size_t count = known->member_count * channels;
    memset(sum, 0, count * sizeof *sum);
    for (size_t m = 0; m < known->plan->kernel_count; m++) {
        const dcrf_operator *op = operator_of(known, m);
        const double weight = known->model->kernels[m].weight;
        if (weight == 0)
            continue;
        TRY(op->methods->apply_double(op, known->workspace, in, out, channels, error));
        for (size_t e = 0; e < count; e++)
            sum[e] += weight * out[e];
    }
    return DCRF_OK;
}

dcrf_status dcrf_knowledge_sum_undecided(struct dcrf_knowledge *known, dcrf_error *error) {
    for (size_t k = 0; k < known->member_count; k++)
        known->indicator[k] = known->round[member(known, k)] == 0;
    TRY(sum_double(known, known->indicator, known->indicated, known->sum, 1, error));
    memset(known->indicated, 0, known->model->variables * sizeof *known->indicated);
    for (size_t k = 0; k < known->member_count; k++)
        known->indicated[member(known, k)] = known->sum[k];
    return DCRF_OK;
}

dcrf_status dcrf_knowledge_columns(struct dcrf_knowledge *known, const uint32_t *rest, size_t size,
                                   size_t first, size_t count, double *columns, dcrf_error *error) {
    const size_t numbers = known->member_count * count;
    DCRF_SCOPED double *in = dcrf_allocate_zero(known->member_count, 3 * count * sizeof *in);
    /* The index of each among the members. */
    DCRF_SCOPED uint32_t *place = dcrf_allocate(size, sizeof *place);
    if (!in || !place)
        return dcrf_fail_memory(error, "a proof");
    double *sum = in + 2 * numbers;
    for (size_t k = 0, at = 0; k < size; k++, at++) {
        while (known->parts && known->members[at] != rest[k])
            at++;
        place[k] = known->parts ? (uint32_t)at : rest[k];
    }
    for (size_t c = 0; c < count; c++)
        in[place[first + c] * count + c] = 1;
    TRY(sum_double(known, in, in + numbers, sum, count, error));
    for (size_t k = 0; k < size; k++)
        memcpy(columns + k * count, sum + place[k] * count, count * sizeof *columns);
    return DCRF_OK;
}

/* ---- smaller operators ---------------------------------------------------------------------- */

static bool can_shrink(const struct dcrf_knowledge *known) {
    for (size_t m = 0; m < known->plan->kernel_count; m++)
        if (!known->plan->kernels[m].op->methods->part)
            return false;
    return known->undecided > 0 && 2 * known->undecided <= known->member_count;
}

static dcrf_status allocate_packed(struct dcrf_knowledge *known, dcrf_error *error) {
    const size_t n = known->model->variables;
    if (known->packed_fraction)
        return DCRF_OK;
    known->members = dcrf_own(&known->work, n, sizeof *known->members);
    known->packed_bin = dcrf_own(&known->work, n, sizeof *known->packed_bin);
    known->packed_fraction = dcrf_own(&known->work, n, sizeof *known->packed_fraction);
    return known->work.is_short ? dcrf_fail_memory(error, "a proof") : DCRF_OK;
}

/* Restrict the operators to the undecided variables. */
static dcrf_status shrink(struct dcrf_knowledge *known, dcrf_error *error) {
    const size_t n = known->model->variables, kernels = known->plan->kernel_count;
    TRY(allocate_packed(known, error));
    drop_parts(known);
    known->parts = dcrf_allocate_zero(kernels, sizeof *known->parts);
    if (!known->parts)
        return dcrf_fail_memory(error, "a proof");
    known->member_count = 0;
    for (size_t a = 0; a < n; a++) {
        known->bin[a] = known->round[a] == 0;
        if (known->round[a] == 0)
            known->members[known->member_count++] = (uint32_t)a;
    }
    for (size_t m = 0; m < kernels; m++) {
        const dcrf_operator *whole = known->plan->kernels[m].op;
        const double weight = known->model->kernels[m].weight;
        if (weight == 0)
            continue;
        TRY(whole->methods->part(whole, known->bin, known->workspace, &known->parts[m], error));
        TRY(count_errors(known, known->parts[m], weight, known->members, error));
    }
    find_errors(known);
    return DCRF_OK;
}

/* ---- deciding ------------------------------------------------------------------------------- */

/* If only one possible label is left, make it the label of x; returns whether it was. */
static bool take_single(struct dcrf_knowledge *known, size_t a) {
    const uint8_t *possible = known->possible + a * known->model->labels;
    size_t count = 0, label = 0;
    for (size_t i = 0; i < known->model->labels; i++)
        if (possible[i]) {
            count++;
            label = i;
        }
    if (count == 1)
        known->labels[a] = (uint16_t)label;
    return count == 1;
}

dcrf_status dcrf_knowledge_decide(struct dcrf_knowledge *known, const uint8_t *marked,
                                  dcrf_error *error) {
    /* At node 0, the sum counts the variables at node 1. */
    float table[2 * DCRF_LANES] = {0, 1};
    table[DCRF_LANES] = -1;
    const size_t n = known->model->variables, labels = known->model->labels;
    const size_t before = known->undecided;
    for (size_t a = 0; a < n; a++)
        if (known->round[a] == 0 && ((marked && marked[a]) || take_single(known, a))) {
            known->round[a] = (uint16_t)(known->rounds + 1);
            memset(known->possible + a * labels, 0, labels);
            known->possible[a * labels + known->labels[a]] = 1;
            known->undecided--;
        }
    if (known->undecided == before)
        return DCRF_OK;
    known->rounds++;
    find_errors(known);
    memset(known->fraction, 0, n * sizeof *known->fraction);
    for (size_t i = 0; i < labels && known->undecided > 0; i++) {
        size_t counted = 0;
        for (size_t a = 0; a < n; a++) {
            known->bin[a] = known->round[a] == known->rounds && known->labels[a] == i;
            counted += known->bin[a];
        }
        if (counted == 0)
            continue;
        TRY(dcrf_knowledge_sum(known, 2, table, error));
        for (size_t a = 0; a < n; a++)
            known->cost[a * labels + i] -= 2 * known->sum[a];
    }
    return can_shrink(known) ? shrink(known, error) : DCRF_OK;
}

/* ---- dead ends ------------------------------------------------------------------------------ */

int dcrf_knowledge_may_agree(const struct dcrf_knowledge *known, size_t clique, size_t label) {
    const struct dcrf_cliques *cliques = &known->model->cliques;
    for (size_t k = cliques->offsets[clique]; k < cliques->offsets[clique + 1]; k++)
        if (!known->possible[cliques->members[k] * known->model->labels + label])
            return 0;
    return 1;
}

/* Add the costs of the cliques that may agree on the label. known->sum then bounds from above what
 * giving up the label can cost in pairs and cliques. */
static void add_clique_costs(struct dcrf_knowledge *known, size_t label) {
    const struct dcrf_cliques *cliques = &known->model->cliques;
    for (size_t p = 0; p < cliques->count; p++) {
        if (!dcrf_knowledge_may_agree(known, p, label))
            continue;
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            known->sum[cliques->members[k]] += cliques->costs[p];
    }
}

/* ---- dead ends ------------------------------------------------------------------------------ */

/* Labels that are summed together: evaluating the kernels takes most of the time. */
#define CHANNELS 8

struct dead_ends {
    struct dcrf_knowledge *known;
    size_t label[CHANNELS];
    size_t channels;
    double *in, *out, *sum; /* members x channels */
};

/* Choose the next labels, from `next` on, that are possible at some undecided variable. */
static size_t choose_labels(struct dead_ends *ends, size_t next) {
    const struct dcrf_knowledge *known = ends->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    for (ends->channels = 0; next < labels && ends->channels < CHANNELS; next++)
        for (size_t a = 0; a < n; a++)
            if (known->round[a] == 0 && known->possible[a * labels + next]) {
                ends->label[ends->channels++] = next;
                break;
            }
    return next;
}

/* sum = sum_{b undecided, label possible at b} K_ab, in double, including b = a. */
static dcrf_status sum_possible(struct dead_ends *ends, dcrf_error *error) {
    const struct dcrf_knowledge *known = ends->known;
    const size_t labels = known->model->labels, channels = ends->channels;
    for (size_t k = 0; k < known->member_count; k++)
        for (size_t c = 0; c < channels; c++) {
            const size_t a = member(known, k);
            ends->in[k * channels + c] =
                known->round[a] == 0 && known->possible[a * labels + ends->label[c]];
        }
    return sum_double(ends->known, ends->in, ends->out, ends->sum, channels, error);
}

static void exclude(struct dead_ends *ends, size_t channel) {
    struct dcrf_knowledge *known = ends->known;
    const size_t labels = known->model->labels, i = ends->label[channel];
    for (size_t k = 0; k < known->member_count; k++)
        known->sum[member(known, k)] = 2 * ends->sum[k * ends->channels + channel];
    add_clique_costs(known, i);
    for (size_t k = 0; k < known->member_count; k++) {
        const size_t a = member(known, k);
        if (known->round[a] != 0 || !known->possible[a * labels + i])
            continue;
        double lowest = INFINITY;
        for (size_t j = 0; j < labels; j++)
            lowest = fmin(lowest, known->cost[a * labels + j]);
        if (known->cost[a * labels + i] - lowest - known->sum[a] > known->error[a])
            known->possible[a * labels + i] = 0;
    }
}

dcrf_status dcrf_knowledge_eliminate(struct dcrf_knowledge *known,
                                     const struct dcrf_interrupt *interrupt, dcrf_error *error) {
    struct dead_ends ends = {.known = known};
    DCRF_SCOPED double *memory = dcrf_allocate(known->member_count, 3 * CHANNELS * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "a proof");
    ends.in = memory;
    ends.out = ends.in + known->member_count * CHANNELS;
    ends.sum = ends.out + known->member_count * CHANNELS;
    for (size_t next = choose_labels(&ends, 0);
         ends.channels > 0 && !dcrf_is_interrupted(interrupt); next = choose_labels(&ends, next)) {
        TRY(sum_possible(&ends, error));
        for (size_t c = 0; c < ends.channels; c++)
            exclude(&ends, c);
    }
    return DCRF_OK;
}
