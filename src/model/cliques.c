/* The cliques of a model: from lists, from a map of region numbers, and their costs
 *
 *   C_p = gamma exp(-variance_p / eta),
 *   variance_p = (1 / |p|) sum_{a in p} |colour_a - mean colour of p|^2,
 *
 * after Joy et al., "Efficient Relaxations for Dense CRFs with Sparse Higher Order Potentials". */
#include "core/error.h"
#include "core/owned.h"
#include "model/model.h"
#include "model/view.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dcrf_cliques_clear(struct dcrf_cliques *cliques) {
    dcrf_release(cliques->offsets);
    dcrf_release(cliques->members);
    dcrf_release(cliques->costs);
    *cliques = (struct dcrf_cliques){0};
}

void dcrf_model_clique_of(const dcrf_model *model, uint32_t *clique_of) {
    const struct dcrf_cliques *cliques = &model->cliques;
    for (size_t a = 0; a < model->variables; a++)
        clique_of[a] = DCRF_NO_CLIQUE;
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            clique_of[cliques->members[k]] = (uint32_t)p;
}

static dcrf_status allocate_cliques(struct dcrf_cliques *cliques, size_t count, size_t members,
                                    dcrf_error *error) {
    *cliques = (struct dcrf_cliques){
        .count = count,
        .offsets = count < SIZE_MAX ? dcrf_allocate(count + 1, sizeof *cliques->offsets) : NULL,
        .members = dcrf_allocate(members, sizeof *cliques->members),
        .costs = dcrf_allocate(count, sizeof *cliques->costs)};
    if (cliques->offsets && cliques->members && cliques->costs)
        return DCRF_OK;
    dcrf_cliques_clear(cliques);
    return dcrf_fail_memory(error, "the cliques of a model");
}

static void replace_cliques(dcrf_model *model, const struct dcrf_cliques *cliques) {
    dcrf_cliques_clear(&model->cliques);
    model->cliques = *cliques;
    model->revision++;
}

static bool is_cost(double cost) {
    return cost >= 0 && cost <= (double)FLT_MAX; /* false for NaN */
}

static dcrf_status fail_cost(double cost, const char *what, dcrf_error *error) {
    if (!isfinite(cost))
        return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "%s is %g", what, cost);
    if (cost < 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s is %g; it must not be negative", what,
                         cost);
    return dcrf_fail(error, DCRF_ERROR_SIZE, "%s is %g: too large for a float", what, cost);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static dcrf_status check_offsets_and_costs(size_t count, const size_t *offsets, const double *costs,
                                           dcrf_error *error) {
    for (size_t p = 0; p < count; p++) {
        if (offsets[p + 1] < offsets[p])
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the clique offsets are not ascending: offset %zu is %zu and offset "
                             "%zu is %zu",
                             p, offsets[p], p + 1, offsets[p + 1]);
        if (offsets[p + 1] == offsets[p])
            return dcrf_fail(error, DCRF_ERROR_SIZE, "clique %zu is empty", p);
        if (!is_cost(costs[p])) {
            char what[48];
            snprintf(what, sizeof what, "the cost of clique %zu", p);
            return fail_cost(costs[p], what, error);
        }
    }
    return DCRF_OK;
}

/* owner: one number per variable, its clique plus one; initially zero. Stops no later than at the
 * first surplus member, so that a wrong offset cannot cause reads far out of range. */
static dcrf_status check_members(size_t count, const size_t *offsets, const size_t *members,
                                 size_t variables, uint32_t *owner, dcrf_error *error) {
    for (size_t p = 0; p < count; p++)
        for (size_t i = offsets[p]; i < offsets[p + 1]; i++) {
            const size_t variable = members[i];
            if (variable >= variables)
                return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                 "clique %zu has the member %zu; the model has %zu variables", p,
                                 variable, variables);
            if (owner[variable] == p + 1)
                return dcrf_fail(error, DCRF_ERROR_OVERLAP, "clique %zu has variable %zu twice", p,
                                 variable);
            if (owner[variable] != 0)
                return dcrf_fail(error, DCRF_ERROR_OVERLAP,
                                 "variable %zu is in clique %zu and in clique %zu", variable,
                                 (size_t)owner[variable] - 1, p);
            owner[variable] = (uint32_t)(p + 1);
        }
    return DCRF_OK;
}

dcrf_status dcrf_model_set_cliques(dcrf_model *model, size_t count, const size_t *offsets,
                                   const size_t *members, const double *costs, dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    if (count == 0) {
        dcrf_cliques_clear(&model->cliques);
        model->revision++;
        return DCRF_OK;
    }
    if (!offsets || !members || !costs)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the %s of the cliques are missing",
                         !offsets   ? "offsets"
                         : !members ? "members"
                                    : "costs");
    if (count > model->variables)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "%zu cliques cannot be disjoint over %zu variables", count,
                         model->variables);
    TRY(check_offsets_and_costs(count, offsets, costs, error));
    DCRF_SCOPED uint32_t *owner = dcrf_allocate_zero(model->variables, sizeof *owner);
    if (!owner)
        return dcrf_fail_memory(error, "checking the cliques");
    TRY(check_members(count, offsets, members, model->variables, owner, error));
    struct dcrf_cliques cliques;
    TRY(allocate_cliques(&cliques, count, offsets[count] - offsets[0], error));
    for (size_t p = 0; p <= count; p++)
        cliques.offsets[p] = offsets[p] - offsets[0];
    for (size_t i = 0; i < cliques.offsets[count]; i++)
        cliques.members[i] = (uint32_t)members[offsets[0] + i];
    memcpy(cliques.costs, costs, count * sizeof *costs);
    replace_cliques(model, &cliques);
    return DCRF_OK;
}

/* ---- maps ----------------------------------------------------------------------------------- */

/* A variable and the region it is in. */
struct place {
    int32_t region;
    uint32_t variable;
};

static int compare_places(const void *left_pointer, const void *right_pointer) {
    const struct place *left = left_pointer, *right = right_pointer;
    if (left->region != right->region)
        return left->region < right->region ? -1 : 1;
    return left->variable < right->variable ? -1 : left->variable > right->variable;
}

/* The places of all variables that are in a region, sorted by region and then by variable. Returns
 * their number. */
static size_t sort_places(const int32_t *regions, size_t variables, struct place *places) {
    size_t count = 0;
    for (size_t a = 0; a < variables; a++)
        if (regions[a] >= 0)
            places[count++] = (struct place){regions[a], (uint32_t)a};
    qsort(places, count, sizeof *places, compare_places);
    return count;
}

static dcrf_status cliques_from_places(struct dcrf_cliques *cliques, const struct place *places,
                                       size_t members, double cost, dcrf_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < members; i++)
        count += i == 0 || places[i].region != places[i - 1].region;
    TRY(allocate_cliques(cliques, count, members, error));
    size_t p = 0;
    for (size_t i = 0; i < members; i++) {
        if (i == 0 || places[i].region != places[i - 1].region) {
            cliques->offsets[p] = i;
            cliques->costs[p++] = cost;
        }
        cliques->members[i] = places[i].variable;
    }
    cliques->offsets[count] = members;
    return DCRF_OK;
}

dcrf_status dcrf_model_set_clique_map(dcrf_model *model, const dcrf_view *map, double cost,
                                      dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    if (!is_cost(cost))
        return fail_cost(cost, "the cost of the cliques", error);
    DCRF_SCOPED int32_t *regions = dcrf_allocate(model->variables, sizeof *regions);
    DCRF_SCOPED struct place *places = dcrf_allocate(model->variables, sizeof *places);
    struct dcrf_cliques cliques;
    if (!regions || !places)
        return dcrf_fail_memory(error, "reading a clique map");
    TRY(dcrf_view_copy_integers(map, &model->grid, "the clique map", regions, error));
    const size_t members = sort_places(regions, model->variables, places);
    TRY(cliques_from_places(&cliques, places, members, cost, error));
    replace_cliques(model, &cliques);
    return DCRF_OK;
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* Two passes, so that nothing cancels in the variance of bright but uniform colours. */
static double colour_variance(const uint32_t *members, size_t count, const float *colours,
                              size_t channels) {
    double variance = 0;
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < count; i++)
            sum += (double)colours[members[i] * channels + c];
        const double mean = sum / (double)count;
        for (size_t i = 0; i < count; i++) {
            const double difference = (double)colours[members[i] * channels + c] - mean;
            squares += difference * difference;
        }
        variance += squares / (double)count;
    }
    return variance;
}

dcrf_status dcrf_model_set_clique_costs(dcrf_model *model, const dcrf_view *image, double gamma,
                                        double eta, dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    size_t row_bytes;
    if (!isfinite(gamma) || !isfinite(eta))
        return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                         "the clique costs have gamma = %g and eta = %g", gamma, eta);
    if (!is_cost(gamma))
        return fail_cost(gamma, "the gamma of the clique costs", error);
    if (eta <= 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the eta of the clique costs is %g; it must be positive", eta);
    if (!image)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the image of the clique costs is missing");
    const size_t channels = image->channels;
    if (!dcrf_multiply(channels, sizeof(float), &row_bytes))
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the image of the clique costs has %zu channels, too many to address",
                         channels);
    DCRF_SCOPED float *colours = dcrf_allocate(model->variables, row_bytes);
    if (!colours)
        return dcrf_fail_memory(error, "the colours of the cliques");
    TRY(dcrf_view_copy(image, &model->grid, "the image of the clique costs", NULL, colours,
                       channels, error));
    struct dcrf_cliques *cliques = &model->cliques;
    for (size_t p = 0; p < cliques->count; p++) {
        const size_t begin = cliques->offsets[p], size = cliques->offsets[p + 1] - begin;
        const double variance = colour_variance(cliques->members + begin, size, colours, channels);
        cliques->costs[p] = gamma * exp(-variance / eta);
    }
    model->revision++;
    return DCRF_OK;
}

double dcrf_model_clique_cost(const dcrf_model *model, size_t clique) {
    return model && clique < model->cliques.count ? model->cliques.costs[clique] : NAN;
}

size_t dcrf_model_clique_size(const dcrf_model *model, size_t clique) {
    if (!model)
        return 0;
    const struct dcrf_cliques *cliques = &model->cliques;
    return clique < cliques->count ? cliques->offsets[clique + 1] - cliques->offsets[clique] : 0;
}
