#include "round/round.h"

#include "core/memory.h"

#include <dcrf/labelling.h>
#include <stdbool.h>
#include <string.h>

#define ROWS_PER_CHUNK 1024

/* A row is hit by one draw with probability 1 / labels, so it is missed by all draws with
 * probability exp(-DRAWS_PER_LABEL). Such a row takes its largest entry. */
#define DRAWS_PER_LABEL 16

struct rounding {
    const struct dcrf_marginals *marginals;
    const struct dcrf_thresholds *thresholds;
    uint16_t *labels;
};

struct dcrf_thresholds {
    size_t label_count; /* of the model */
    size_t count;       /* draws */
    uint16_t *label;
    float *threshold;
    uint16_t *alive; /* labels that some variable can take */
    bool *is_alive;
};

static void round_largest(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rounding *rounding = context;
    const struct dcrf_marginals *marginals = rounding->marginals;
    dcrf_label_by_marginals(marginals->values + begin * marginals->stride, end - begin,
                            marginals->labels, marginals->stride, rounding->labels + begin);
}

void dcrf_round_largest(const struct dcrf_marginals *marginals, dcrf_pool *pool, uint16_t *labels) {
    struct rounding rounding = {marginals, NULL, labels};
    dcrf_parallel_for(pool, marginals->variables, ROWS_PER_CHUNK, round_largest, &rounding);
}

void dcrf_round_inverse(const uint16_t *labels, size_t variables, size_t stride, float *block) {
    memset(block, 0, variables * stride * sizeof *block);
    for (size_t a = 0; a < variables; a++)
        block[a * stride + labels[a]] = 1;
}

struct dcrf_thresholds *dcrf_thresholds_new(size_t labels) {
    struct dcrf_thresholds *thresholds = dcrf_allocate_zero(1, sizeof *thresholds);
    if (!thresholds)
        return NULL;
    thresholds->label_count = labels;
    thresholds->label = dcrf_allocate(labels, DRAWS_PER_LABEL * sizeof *thresholds->label);
    thresholds->threshold = dcrf_allocate(labels, DRAWS_PER_LABEL * sizeof *thresholds->threshold);
    thresholds->alive = dcrf_allocate(labels, sizeof *thresholds->alive);
    thresholds->is_alive = dcrf_allocate(labels, sizeof *thresholds->is_alive);
    if (!thresholds->label || !thresholds->threshold || !thresholds->alive ||
        !thresholds->is_alive) {
        dcrf_thresholds_free(thresholds);
        return NULL;
    }
    return thresholds;
}

void dcrf_thresholds_free(struct dcrf_thresholds *thresholds) {
    if (!thresholds)
        return;
    dcrf_release(thresholds->label);
    dcrf_release(thresholds->threshold);
    dcrf_release(thresholds->alive);
    dcrf_release(thresholds->is_alive);
    dcrf_release(thresholds);
}

static void draw(struct dcrf_thresholds *thresholds, const struct dcrf_marginals *marginals,
                 dcrf_rng *rng) {
    size_t alive = 0;
    memset(thresholds->is_alive, 0, thresholds->label_count * sizeof *thresholds->is_alive);
    for (size_t a = 0; a < marginals->variables; a++)
        for (size_t i = 0; i < marginals->labels; i++)
            thresholds->is_alive[i] |= marginals->values[a * marginals->stride + i] > 0;
    for (size_t i = 0; i < marginals->labels; i++)
        if (thresholds->is_alive[i])
            thresholds->alive[alive++] = (uint16_t)i;
    thresholds->count = alive * DRAWS_PER_LABEL;
    for (size_t k = 0; k < thresholds->count; k++) {
        const size_t drawn = (size_t)(dcrf_rng_uniform(rng) * (double)alive);
        thresholds->label[k] = thresholds->alive[drawn];
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
            dcrf_label_by_marginals(row, 1, marginals->labels, marginals->stride,
                                    rounding->labels + a);
    }
}

void dcrf_round_threshold(struct dcrf_thresholds *thresholds,
                          const struct dcrf_marginals *marginals, dcrf_pool *pool, dcrf_rng *rng,
                          uint16_t *labels) {
    draw(thresholds, marginals, rng);
    struct rounding rounding = {marginals, thresholds, labels};
    dcrf_parallel_for(pool, marginals->variables, ROWS_PER_CHUNK, round_threshold, &rounding);
}
