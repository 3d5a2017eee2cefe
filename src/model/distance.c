/* Distances between labels, as users give them, become cuts and a matrix (dcrf/compatibility.h).
 *
 * Truncated linear: min(|i - j|, T) is the sum of the windows of T consecutive labels, including
 * those that extend past the ends, each of length 1/2: T - |i - j| of the T windows that hold i
 * hold j as well. A fractional T is the mixture of the two integers around it. */
#include <dcrf/compatibility.h>

#include "core/error.h"
#include "core/owned.h"
#include "model/cuts.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(DCRF_MAX_DISTANCE_LABELS == DCRF_CUTS_MOST_LABELS, "what is said is what holds");

/* ---- taking --------------------------------------------------------------------------------- */

static dcrf_status check(const dcrf_model *model, size_t kernel, dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    if (model->labels > DCRF_MAX_DISTANCE_LABELS)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "distances between labels are for %d labels at most; the model has %zu",
                         DCRF_MAX_DISTANCE_LABELS, model->labels);
    return dcrf_model_check_kernel(model, kernel, error);
}

static float round_up(double value) {
    const float nearest = (float)value;
    return (double)nearest < value ? nextafterf(nearest, INFINITY) : nearest;
}

static dcrf_status fill_matrix(const struct dcrf_cuts *cuts, float *matrix, dcrf_error *error) {
    const size_t cells = cuts->labels * cuts->labels;
    DCRF_SCOPED double *distances = dcrf_allocate(cells, sizeof *distances);
    if (!distances)
        return dcrf_fail_memory(error, "a distance between labels");
    TRY(dcrf_cuts_distances(cuts, distances, error));
    for (size_t k = 0; k < cells; k++) {
        matrix[k] = round_up(distances[k]);
        if (!isfinite(matrix[k]))
            return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                             "labels %zu and %zu are farther apart than a float can say",
                             k / cuts->labels, k % cuts->labels);
    }
    return DCRF_OK;
}

static dcrf_status take(dcrf_model *model, size_t kernel, size_t count, const uint8_t *sets,
                        const double *lengths, const uint16_t *order, dcrf_error *error) {
    struct dcrf_cuts *cuts;
    TRY(dcrf_cuts_new(&cuts, model->labels, count, sets, lengths, order, error));
    float *matrix = dcrf_allocate(model->labels, model->labels * sizeof *matrix);
    dcrf_status status = matrix ? fill_matrix(cuts, matrix, error)
                                : dcrf_fail_memory(error, "a distance between labels");
    if (status < 0) {
        dcrf_release(matrix);
        dcrf_cuts_free(&cuts);
        return status;
    }
    dcrf_model_take_matrix(model, kernel, matrix, cuts);
    return DCRF_OK;
}

/* ---- ordered labels ------------------------------------------------------------------------- */

/* The window of `width` labels that ends with label `last`, which may be past the last label. */
static void fill_window(uint8_t *set, size_t labels, size_t last, size_t width) {
    for (size_t i = 0; i < labels; i++)
        set[i] = i <= last && last - i < width;
}

dcrf_status dcrf_model_set_linear(dcrf_model *model, size_t kernel, double truncation,
                                  dcrf_error *error) {
    TRY(check(model, kernel, error));
    if (!(truncation > 0))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the truncation of a linear compatibility is %g; it must be above zero "
                         "(or infinity, for none)",
                         truncation);
    const size_t labels = model->labels;
    /* A truncation above the largest difference has no effect. */
    const double longest = fmin(truncation, labels > 1 ? (double)(labels - 1) : 1);
    const size_t width = (size_t)longest;
    const double part = longest - (double)width; /* of the wider windows */
    const size_t narrow = width > 0 ? labels + width - 1 : 0, wide = part > 0 ? labels + width : 0;
    DCRF_SCOPED uint8_t *sets = dcrf_allocate(narrow + wide, labels);
    DCRF_SCOPED double *lengths = dcrf_allocate(narrow + wide, sizeof *lengths);
    if (!sets || !lengths)
        return dcrf_fail_memory(error, "a distance between labels");
    for (size_t c = 0; c < narrow + wide; c++) {
        const bool is_wide = c >= narrow;
        fill_window(sets + c * labels, labels, is_wide ? c - narrow : c, width + is_wide);
        lengths[c] = (is_wide ? part : 1 - part) / 2;
    }
    return take(model, kernel, narrow + wide, sets, lengths, NULL, error);
}

/* ---- trees ---------------------------------------------------------------------------------- */

#define NO_NODE SIZE_MAX

/* The tree, rooted at its first label: parents before their children. */
struct tree {
    size_t nodes;
    const size_t *ends;
    size_t *found; /* nodes in depth-first order */
    size_t *edge;  /* to the parent; NO_NODE: not found yet, or the root */
    size_t *place; /* in `found` */
    size_t *next;  /* the list of edges at a node: 2 per edge */
    size_t *first; /* and where it begins */
    size_t *stack;
};

static dcrf_status check_edges(const dcrf_model *model, size_t edge_count, const size_t *ends,
                               const double *lengths, dcrf_error *error) {
    if (edge_count > 0 && (!ends || !lengths))
        return dcrf_fail_null(error, "the edges of a tree or their lengths");
    for (size_t e = 0; e < edge_count; e++) {
        if (ends[2 * e] > edge_count || ends[2 * e + 1] > edge_count)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "edge %zu of the tree joins the nodes %zu and %zu; %zu edges have the "
                             "nodes 0 to %zu",
                             e, ends[2 * e], ends[2 * e + 1], edge_count, edge_count);
        if (!isfinite(lengths[e]))
            return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "edge %zu of the tree has the length %g",
                             e, lengths[e]);
        if (lengths[e] < 0)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "edge %zu of the tree has the length %g; it must not be negative", e,
                             lengths[e]);
    }
    if (edge_count + 1 < model->labels)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the tree has %zu nodes; the %zu labels are its first ones: label %zu is "
                         "missing",
                         edge_count + 1, model->labels, edge_count + 1);
    return DCRF_OK;
}

static bool make_tree(struct tree *tree, struct dcrf_owned *owned, size_t edges) {
    tree->nodes = edges + 1;
    tree->found = dcrf_own(owned, tree->nodes, sizeof(size_t));
    tree->edge = dcrf_own(owned, tree->nodes, sizeof(size_t));
    tree->place = dcrf_own(owned, tree->nodes, sizeof(size_t));
    tree->next = dcrf_own(owned, 2 * edges, sizeof(size_t));
    tree->first = dcrf_own(owned, tree->nodes, sizeof(size_t));
    tree->stack = dcrf_own(owned, tree->nodes, sizeof(size_t));
    if (owned->is_short)
        return false;
    for (size_t v = 0; v < tree->nodes; v++)
        tree->first[v] = tree->edge[v] = tree->place[v] = NO_NODE;
    for (size_t h = 2 * edges; h-- > 0;) {
        tree->next[h] = tree->first[tree->ends[h]];
        tree->first[tree->ends[h]] = h;
    }
    return true;
}

/* Walk depth first from node 0; returns the number of nodes found. With one edge fewer than nodes,
 * and all nodes found, it is a tree. */
static size_t walk(struct tree *tree) {
    size_t found = 0, waiting = 0;
    tree->stack[waiting++] = 0;
    tree->place[0] = 0;
    while (waiting > 0) {
        const size_t v = tree->stack[--waiting];
        tree->place[v] = found;
        tree->found[found++] = v;
        for (size_t h = tree->first[v]; h != NO_NODE; h = tree->next[h]) {
            const size_t w = tree->ends[h ^ 1];
            if (tree->place[w] == NO_NODE) {
                tree->place[w] = 0; /* it is on the stack */
                tree->edge[w] = h / 2;
                tree->stack[waiting++] = w;
            }
        }
    }
    return found;
}

static dcrf_status find_tree(struct tree *tree, struct dcrf_owned *owned, const dcrf_model *model,
                             size_t edges, dcrf_error *error) {
    if (!make_tree(tree, owned, edges))
        return dcrf_fail_memory(error, "a tree of labels");
    if (walk(tree) == tree->nodes)
        return DCRF_OK;
    size_t missing = 0;
    while (tree->place[missing] != NO_NODE)
        missing++;
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                     "the tree does not join label 0 and %s %zu: some of its edges form a cycle",
                     missing < model->labels ? "label" : "node", missing);
}

/* The labels below an edge are those of the nodes found through it. In depth-first order the labels
 * of a subtree are consecutive. */
static void fill_subtrees(const struct tree *tree, size_t labels, uint8_t *sets, uint16_t *order) {
    size_t placed = 0;
    for (size_t k = 0; k < tree->nodes; k++)
        if (tree->found[k] < labels)
            order[placed++] = (uint16_t)tree->found[k];
    for (size_t k = tree->nodes; k-- > 1;) {
        const size_t v = tree->found[k], e = tree->edge[v];
        const size_t parent =
            tree->place[tree->ends[2 * e]] < k ? tree->ends[2 * e] : tree->ends[2 * e + 1];
        if (v < labels)
            sets[e * labels + v] = 1;
        for (size_t i = 0; i < labels && tree->edge[parent] != NO_NODE; i++)
            sets[tree->edge[parent] * labels + i] |= sets[e * labels + i];
    }
}

dcrf_status dcrf_model_set_tree(dcrf_model *model, size_t kernel, size_t edge_count,
                                const size_t *ends, const double *lengths, dcrf_error *error) {
    struct tree tree = {.ends = ends};
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    TRY(check(model, kernel, error));
    TRY(check_edges(model, edge_count, ends, lengths, error));
    uint8_t *sets = dcrf_own_zero(&owned, edge_count, model->labels);
    uint16_t *order = dcrf_own(&owned, model->labels, sizeof *order);
    TRY(find_tree(&tree, &owned, model, edge_count, error));
    fill_subtrees(&tree, model->labels, sets, order);
    return take(model, kernel, edge_count, sets, lengths, order, error);
}

/* ---- cuts ----------------------------------------------------------------------------------- */

dcrf_status dcrf_model_set_cuts(dcrf_model *model, size_t kernel, size_t count,
                                const unsigned char *sets, const double *lengths,
                                dcrf_error *error) {
    TRY(check(model, kernel, error));
    if (count > 0 && (!sets || !lengths))
        return dcrf_fail_null(error, "the sets of the cuts or their lengths");
    for (size_t c = 0; c < count; c++) {
        if (!isfinite(lengths[c]))
            return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "cut %zu has the length %g", c,
                             lengths[c]);
        if (lengths[c] < 0)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "cut %zu has the length %g; it must not be negative", c, lengths[c]);
        for (size_t i = 0; i < model->labels; i++)
            if (sets[c * model->labels + i] > 1)
                return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                 "cut %zu has %u at label %zu; a set has 0 or 1 there", c,
                                 (unsigned)sets[c * model->labels + i], i);
    }
    return take(model, kernel, count, sets, lengths, NULL, error);
}

/* ---- names ---------------------------------------------------------------------------------- */

dcrf_status dcrf_model_set_distance(dcrf_model *model, size_t kernel, const char *name,
                                    dcrf_error *error) {
    static const char truncated[] = "truncated-linear:";
    if (!name)
        return dcrf_fail_null(error, "the name of a compatibility");
    if (strcmp(name, "potts") == 0)
        return dcrf_model_set_compatibility(model, kernel, DCRF_COMPATIBILITY_POTTS, NULL, error);
    if (strcmp(name, "linear") == 0)
        return dcrf_model_set_linear(model, kernel, (double)INFINITY, error);
    if (strncmp(name, truncated, sizeof truncated - 1) == 0) {
        char *end;
        const char *number = name + sizeof truncated - 1;
        const double truncation = strtod(number, &end);
        if (end == number || *end != '\0' || !isfinite(truncation))
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "'%s' is no number of labels to truncate at, such as "
                             "truncated-linear:4",
                             number);
        return dcrf_model_set_linear(model, kernel, truncation, error);
    }
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                     "'%s' is not a compatibility; potts, linear and truncated-linear:T are", name);
}

/* ---- what the LP makes of them -------------------------------------------------------------- */

static dcrf_status check_matrix(const struct dcrf_model_kernel *kernel, size_t number,
                                size_t labels, dcrf_error *error) {
    if (kernel->compatibility == DCRF_COMPATIBILITY_VECTOR)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "the LP relaxation needs compatibilities that are distances; kernel %zu "
                         "has a vector",
                         number);
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j <= i; j++) {
            const double value = (double)kernel->compatibility_values[i * labels + j];
            if (value < 0 || (i == j && value > 0))
                return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                                 "the LP relaxation needs compatibilities that are not negative, "
                                 "with zeros on the diagonal; the matrix of kernel %zu has %g at "
                                 "(%zu, %zu)",
                                 number, value, i, j);
        }
    return DCRF_OK;
}

dcrf_status dcrf_model_find_cuts(const dcrf_model *model, size_t kernel,
                                 const struct dcrf_cuts **cuts, struct dcrf_cuts **own,
                                 dcrf_left_out *left_out, dcrf_error *error) {
    const struct dcrf_model_kernel *k = &model->kernels[kernel];
    *cuts = *own = NULL;
    *left_out = (dcrf_left_out){0};
    if (k->compatibility == DCRF_COMPATIBILITY_POTTS)
        return DCRF_OK;
    if (k->cuts) {
        *cuts = k->cuts;
        return DCRF_OK;
    }
    dcrf_status status = check_matrix(k, kernel, model->labels, error);
    if (status == DCRF_OK)
        status = dcrf_cuts_below(own, k->compatibility_values, model->labels, left_out, error);
    *cuts = *own;
    return status;
}

dcrf_status dcrf_model_count_cuts(const dcrf_model *model, size_t kernel, size_t *count,
                                  dcrf_left_out *left_out, dcrf_error *error) {
    const struct dcrf_cuts *cuts;
    struct dcrf_cuts *own;
    dcrf_left_out part;
    if (!model || !count || !left_out)
        return dcrf_fail_null(error, "the model or the place for its cuts");
    TRY(dcrf_model_check_kernel(model, kernel, error));
    TRY(dcrf_model_find_cuts(model, kernel, &cuts, &own, &part, error));
    *count = cuts ? cuts->count : model->labels;
    *left_out = part;
    dcrf_cuts_free(&own);
    return DCRF_OK;
}
