/* A step of the LP in the metric of the cuts.
 *
 * The curvature of sum_c 2 length_c sum_b K_ab Huber(z_ac - z_bc) at a variable is at most about
 * D_a G, G = sum_c 2 length_c 1_c 1_c' (1_c the labels of cut c). For Potts G = I, and a step is
 * the projection of a row onto the simplex. For windows of T labels the eigenvalues of G lie
 * between about 0 and T^2: steps short enough for the largest one move ordered labels slowly, so
 * the steps use the metric G itself.
 *
 * Along e_i - e_j the curvature is 2 d(i, j), and G (e_i - e_j) is d(j, .) - d(i, .) up to a
 * constant, which has no effect on distributions: only the distances are needed. The minimum is
 * found by moving mass between two labels at a time (Platt 1998, sequential minimal optimization):
 * from the label with the largest derivative to the one that gains the most (Fan, Chen and Lin
 * 2005). Only a few labels per pixel are alive, so about ten moves are enough. */
#include "backend/cpu/cut_step.h"

#include "backend/cut_moves.h"
#include "energy/columns.h"

/* The metric Q of one variable. */
struct metric {
    const struct dcrf_dual_space *space;
    size_t variable;
    double own;
};

static inline double sum_of(const struct metric *m, size_t group) {
    return (double)m->space->group_sums[group * m->space->variables + m->variable];
}

static inline const float *distances_of(const struct metric *m, size_t group, size_t label) {
    return m->space->distances + (group * m->space->labels + label) * m->space->labels;
}

/* h += Q e_i mass, up to a constant. */
static void add_mass(const struct metric *m, size_t label, double mass, double *h) {
    for (size_t g = 0; g < m->space->columns->group_count; g++) {
        const double factor = mass * sum_of(m, g);
        const float *row = distances_of(m, g, label);
        for (size_t k = 0; k < m->space->labels; k++)
            h[k] -= factor * (double)row[k];
    }
    h[label] += m->own * mass;
}

/* curvatures[i] = half the curvature along e_i - e_from. */
static void find_curvatures(const struct metric *m, size_t from, double *curvatures) {
    for (size_t i = 0; i < m->space->labels; i++)
        curvatures[i] = m->own;
    for (size_t g = 0; g < m->space->columns->group_count; g++) {
        const double factor = sum_of(m, g);
        const float *row = distances_of(m, g, from);
        for (size_t i = 0; i < m->space->labels; i++)
            curvatures[i] += factor * (double)row[i];
    }
}

/* The label with the largest derivative among those with mass, and the smallest derivative. */
static size_t find_giver(const double *y, const double *h, size_t labels, double *lowest) {
    size_t giver = labels;
    *lowest = h[0];
    for (size_t i = 0; i < labels; i++) {
        *lowest = h[i] < *lowest ? h[i] : *lowest;
        if (y[i] > 0 && (giver == labels || h[i] > h[giver]))
            giver = i;
    }
    return giver;
}

static size_t find_taker(size_t giver, const double *h, const double *curvatures, size_t labels) {
    size_t taker = giver;
    double most = 0;
    for (size_t i = 0; i < labels; i++) {
        const double gain = dcrf_cut_gain(h[giver] - h[i], curvatures[i]);
        taker = gain > most ? i : taker;
        most = gain > most ? gain : most;
    }
    return taker;
}

/* Floats that add up to 1. */
static void write_row(const double *row, size_t labels, float *y) {
    double sum = 0;
    for (size_t i = 0; i < labels; i++)
        sum += row[i];
    for (size_t i = 0; i < labels; i++)
        y[i] = (float)(row[i] / sum);
}

void dcrf_cut_step_take(const struct dcrf_dual_space *space, size_t variable, double own,
                        const float *z, float *y, double *gradient) {
    const size_t labels = space->labels;
    const struct metric metric = {space, variable, own};
    double row[DCRF_CUTS_MOST_LABELS], curvatures[DCRF_CUTS_MOST_LABELS], scale = own;
    for (size_t g = 0; g < space->columns->group_count; g++)
        scale += sum_of(&metric, g);
    for (size_t i = 0; i < labels; i++) {
        row[i] = (double)y[i];
        if (y[i] > z[i] || y[i] < z[i])
            add_mass(&metric, i, row[i] - (double)z[i], gradient);
    }
    for (int move = 0; move < DCRF_CUT_MOST_MOVES; move++) {
        double lowest;
        const size_t giver = find_giver(row, gradient, labels, &lowest);
        if (giver == labels || gradient[giver] - lowest <= DCRF_CUT_EQUAL * scale)
            break;
        find_curvatures(&metric, giver, curvatures);
        const size_t taker = find_taker(giver, gradient, curvatures, labels);
        if (taker == giver)
            break;
        const double mass =
            dcrf_cut_mass(gradient[giver] - gradient[taker], curvatures[taker], row[giver]);
        row[taker] += mass;
        row[giver] -= mass;
        add_mass(&metric, taker, mass, gradient);
        add_mass(&metric, giver, -mass, gradient);
    }
    write_row(row, labels, y);
}
