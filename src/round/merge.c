/* Merges: all variables of one label take another. Potts only.
 *
 * With the tables, one entry per pair of labels,
 *
 *   U_ij = sum_{a: x_a = i} phi_aj,   T_ij = sum_{a: x_a = i} B_aj   (mutual kernel mass),
 *   V_ij = sum of C_p over the cliques in which exactly the labels i and j occur,
 *
 * relabelling class i as j changes the energy by exactly
 *
 *   U_ij - U_ii - 2 T_ij - V_ij,
 *
 * where j need not occur. The tables after a merge follow from those before, so a whole greedy
 * sequence of merges costs only one filter application, to check the result. (V is only updated
 * approximately: a clique that goes from three labels to two is not added. The check makes that
 * harmless.) */
#include "round/polisher.h"

#include <string.h>

/* V of the current labelling, whose labels have been read. */
static void fill_bonus(struct dcrf_polisher *polisher) {
    const struct dcrf_cliques *cliques = &polisher->model->cliques;
    const size_t labels = polisher->model->labels;
    const uint16_t *x = polisher->labels;
    memset(polisher->class_bonus, 0, labels * labels * sizeof(double));
    for (size_t p = 0; p < cliques->count; p++) {
        const size_t begin = cliques->offsets[p], end = cliques->offsets[p + 1];
        if (begin == end)
            continue;
        const uint16_t first = x[cliques->members[begin]];
        uint16_t second = first;
        size_t c = begin;
        for (; c < end; c++) {
            const uint16_t label = x[cliques->members[c]];
            if (second == first)
                second = label;
            else if (label != first && label != second)
                break;
        }
        if (c == end && second != first) {
            polisher->class_bonus[first * labels + second] += cliques->costs[p];
            polisher->class_bonus[second * labels + first] += cliques->costs[p];
        }
    }
}

/* Find the merge that lowers the energy most; false if none does. */
static bool find_merge(const struct dcrf_polisher *polisher, size_t *from, size_t *to) {
    const size_t labels = polisher->model->labels;
    double best = 0;
    for (size_t i = 0; i < labels; i++) {
        if (polisher->class_size[i] == 0)
            continue;
        const double *unary = polisher->class_unary + i * labels;
        const double *mass = polisher->class_mass + i * labels;
        const double *bonus = polisher->class_bonus + i * labels;
        for (size_t j = 0; j < labels; j++) {
            const double change = unary[j] - unary[i] - 2 * mass[j] - bonus[j];
            if (j != i && change < best) {
                best = change;
                *from = i;
                *to = j;
            }
        }
    }
    return best < 0;
}

static void merge(struct dcrf_polisher *polisher, size_t from, size_t to) {
    const size_t labels = polisher->model->labels;
    double *tables[3] = {polisher->class_unary, polisher->class_mass, polisher->class_bonus};
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < labels; k++) {
            tables[t][to * labels + k] += tables[t][from * labels + k];
            tables[t][from * labels + k] = 0;
        }
    /* Mass and bonus are symmetric: their columns merge too. */
    for (int t = 1; t < 3; t++)
        for (size_t k = 0; k < labels; k++) {
            tables[t][k * labels + to] += tables[t][k * labels + from];
            tables[t][k * labels + from] = 0;
        }
    polisher->class_size[to] += polisher->class_size[from];
    polisher->class_size[from] = 0;
    for (size_t i = 0; i < labels; i++)
        if (polisher->class_map[i] == from)
            polisher->class_map[i] = (uint16_t)to;
}

static dcrf_status find_tables(struct dcrf_polisher *polisher, dcrf_error *error) {
    for (size_t i = 0; i < polisher->model->labels; i++)
        polisher->class_map[i] = (uint16_t)i;
    dcrf_status status = DCRF_OK;
    if (polisher->model->cliques.count > 0)
        status = dcrf_polisher_read(polisher, polisher->labels, error);
    if (status < 0)
        return status;
    fill_bonus(polisher);
    return polisher->methods->tables(polisher->moves, polisher->class_unary, polisher->class_mass,
                                     polisher->class_size, error);
}

dcrf_status dcrf_move_classes(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error) {
    size_t from = 0, to = 0;
    *is_better = false;
    if (!polisher->class_unary)
        return DCRF_OK;
    dcrf_status status = find_tables(polisher, error);
    if (status < 0 || !find_merge(polisher, &from, &to))
        return status;
    /* Each merge lowers the energy, so the loop ends; the limit guards against cycling through ties
     * because of rounding. */
    for (size_t merges = 0; merges < 2 * polisher->model->labels; merges++) {
        merge(polisher, from, to);
        if (!find_merge(polisher, &from, &to))
            break;
    }
    status = polisher->methods->relabel(polisher->moves, polisher->class_map, error);
    return status < 0 ? status : dcrf_polisher_try(polisher, is_better, error);
}
