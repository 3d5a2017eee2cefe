#include "round/round.h"

#include "core/owned.h"

#include <stdlib.h>
#include <string.h>

/* A row is hit by one draw with probability 1 / labels, so it is missed by all draws with
 * probability exp(-DRAWS_PER_LABEL). Such a row takes its largest entry. */
#define DRAWS_PER_LABEL 16

struct rounding {
    const struct dcrf_marginals *marginals;
    const struct dcrf_thresholds *thresholds;
    double threshold; /* for ordered labels */
    uint16_t *labels;
};

struct dcrf_thresholds {
    size_t alive; /* labels with a positive share */
    size_t count; /* draws */
    uint16_t *label;
    float *threshold;
    struct share *shares;
    const uint16_t *order; /* NULL: none */
    struct dcrf_owned owned;
};

/* The sum of the marginals of a label. */
struct share {
    double total;
    uint16_t label;
};

struct dcrf_thresholds *dcrf_thresholds_new(size_t labels, const uint16_t *order) {
    struct dcrf_thresholds *thresholds = dcrf_allocate_zero(1, sizeof *thresholds);
    if (!thresholds)
        return NULL;
    thresholds->order = order;
    thresholds->label =
        dcrf_own(&thresholds->owned, labels, DRAWS_PER_LABEL * sizeof *thresholds->label);
    thresholds->threshold =
        dcrf_own(&thresholds->owned, labels, DRAWS_PER_LABEL * sizeof *thresholds->threshold);
    thresholds->shares = dcrf_own(&thresholds->owned, labels, sizeof *thresholds->shares);
    if (!thresholds->owned.is_short)
        return thresholds;
    dcrf_thresholds_free(thresholds);
    return NULL;
}

void dcrf_thresholds_free(struct dcrf_thresholds *thresholds) {
    if (!thresholds)
        return;
    dcrf_disown(&thresholds->owned);
    dcrf_release(thresholds);
}

/* Largest shares first, empty ones last. */
static int compare_shares(const void *left, const void *right) {
    const struct share *a = left, *b = right;
    if (a->total != b->total)
        return a->total > b->total ? -1 : 1;
    return a->label < b->label ? -1 : 1;
}

void dcrf_thresholds_observe(struct dcrf_thresholds *thresholds,
                             const struct dcrf_marginals *marginals) {
    struct share *shares = thresholds->shares;
    for (size_t i = 0; i < marginals->labels; i++)
        shares[i] = (struct share){0, (uint16_t)i};
    for (size_t a = 0; a < marginals->variables; a++)
        for (size_t i = 0; i < marginals->labels; i++) {
            const float value = marginals->values[a * marginals->stride + i];
            shares[i].total += value > 0 ? (double)value : 0;
        }
    qsort(shares, marginals->labels, sizeof *shares, compare_shares);
    thresholds->alive = 0;
    while (thresholds->alive < marginals->labels && shares[thresholds->alive].total > 0)
        thresholds->alive++;
}

/* Labels are drawn by the rank of their share, so the draws do not depend on how labels are
 * numbered. */
static void draw(struct dcrf_thresholds *thresholds, dcrf_rng *rng) {
    thresholds->count = thresholds->alive * DRAWS_PER_LABEL;
    for (size_t k = 0; k < thresholds->count; k++) {
        const size_t drawn = (size_t)(dcrf_rng_uniform(rng) * (double)thresholds->alive);
        thresholds->label[k] = thresholds->shares[drawn].label;
        /* 1 - u lies in (0, 1]: an entry of zero is never chosen, an entry of one always. */
        thresholds->threshold[k] = (float)(1 - dcrf_rng_uniform(rng));
    }
}

static void round_threshold(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rounding *rounding = context;
    const struct dcrf_marginals *marginals = rounding->marginals;
    const struct dcrf_thresholds *thresholds = rounding->thresholds;
    for (size_t a = begin; a < end; a++) {
        const float *row = marginals->values + a * marginals->stride;
        size_t k = 0;
        while (k < thresholds->count && row[thresholds->label[k]] < thresholds->threshold[k])
            k++;
        if (k < thresholds->count)
            rounding->labels[a] = thresholds->label[k];
        else
            rounding->labels[a] = dcrf_largest_of(row, marginals->labels);
        if (marginals->label_of)
            rounding->labels[a] = marginals->label_of[rounding->labels[a]];
    }
}

static void round_in_order(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rounding *rounding = context;
    const struct dcrf_marginals *marginals = rounding->marginals;
    const uint16_t *order = rounding->thresholds->order;
    for (size_t a = begin; a < end; a++) {
        const float *row = marginals->values + a * marginals->stride;
        double sum = 0;
        size_t last = 0; /* last label with a positive entry, in case the sum stays below the
                          * threshold */
        for (size_t k = 0; k < marginals->labels && sum < rounding->threshold; k++) {
            sum += (double)row[order[k]];
            last = row[order[k]] > 0 ? k : last;
        }
        rounding->labels[a] = order[last];
    }
}

void dcrf_round_in_order(const struct dcrf_thresholds *thresholds,
                         const struct dcrf_marginals *marginals, dcrf_pool *pool, double threshold,
                         uint16_t *labels) {
    struct rounding rounding = {marginals, thresholds, threshold, labels};
    dcrf_parallel_rows(pool, marginals->variables, round_in_order, &rounding);
}

void dcrf_round_threshold(struct dcrf_thresholds *thresholds,
                          const struct dcrf_marginals *marginals, dcrf_pool *pool, dcrf_rng *rng,
                          uint16_t *labels) {
    struct rounding rounding = {marginals, thresholds, 0, labels};
    if (thresholds->order) {
        dcrf_round_in_order(thresholds, marginals, pool, 1 - dcrf_rng_uniform(rng), labels);
        return;
    }
    draw(thresholds, rng);
    dcrf_parallel_rows(pool, marginals->variables, round_threshold, &rounding);
}
