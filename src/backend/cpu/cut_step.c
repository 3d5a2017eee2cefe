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
 * 2005). The first point is z, which is closer to the minimum than the last y.
 *
 * Few labels of a variable take part: those with mass, and those whose derivative is below the mean
 * over the mass. Mass moves among them until their derivatives are equal. Then the derivatives of
 * all labels are brought up to date, and those that would gain now take part as well. */
#include "backend/cpu/cut_step.h"

#include "backend/cut_moves.h"
#include "energy/columns.h"

#include <math.h>

/* A sum of z that is this close to 1 counts as 1: float roundings. */
#define ROUNDED 1e-6

/* The metric Q of one variable. */
struct metric {
    const struct dcrf_dual_space *space;
    size_t variable;
    double own;
};

/* The labels that take part, and the derivatives. */
struct live {
    size_t count;
    uint16_t label[DCRF_CUTS_MOST_LABELS];
    double mass[DCRF_CUTS_MOST_LABELS], slope[DCRF_CUTS_MOST_LABELS];
};

static inline double sum_of(const struct metric *m, size_t group) {
    return (double)m->space->group_sums[group * m->space->variables + m->variable];
}

static inline const float *distances_of(const struct metric *m, size_t group, size_t label) {
    return m->space->distances + (group * m->space->labels + label) * m->space->labels;
}

/* slope += Q e_label mass, up to a constant. */
static void add_mass(const struct metric *m, size_t label, double mass, double *slope) {
    for (size_t g = 0; g < m->space->columns->group_count; g++) {
        const double factor = mass * sum_of(m, g);
        const float *row = distances_of(m, g, label);
        for (size_t i = 0; i < m->space->labels; i++)
            slope[i] -= factor * (double)row[i];
    }
    slope[label] += m->own * mass;
}

/* z, made a distribution. */
static void start(const struct metric *m, const float *z, float *mass, double *slope) {
    const size_t labels = m->space->labels;
    double total = 0;
    for (size_t i = 0; i < labels; i++)
        total += (double)z[i];
    for (size_t i = 0; i < labels; i++)
        mass[i] = (float)((double)z[i] / total);
    for (size_t i = 0; i < labels && fabs(total - 1) > ROUNDED; i++)
        if (z[i] > 0)
            add_mass(m, i, (double)mass[i] - (double)z[i], slope);
}

/* ---- the labels that take part -------------------------------------------------------------- */

static void find_live(struct live *live, const float *mass, const double *slope, size_t labels) {
    double mean = 0;
    for (size_t i = 0; i < labels; i++)
        mean += (double)mass[i] * slope[i];
    live->count = 0;
    for (size_t i = 0; i < labels; i++)
        if (mass[i] > 0 || slope[i] < mean) {
            live->label[live->count] = (uint16_t)i;
            live->mass[live->count] = (double)mass[i];
            live->slope[live->count++] = slope[i];
        }
}

/* curvature[k] = half the curvature along e_k - e_at, which is -(Q e_at)_k up to a constant. */
static void find_curvature(const struct metric *m, const struct live *live, size_t at,
                           double *curvature) {
    for (size_t g = 0; g < m->space->columns->group_count; g++) {
        const double sum = sum_of(m, g);
        const float *row = distances_of(m, g, live->label[at]);
        if (g == 0)
            for (size_t k = 0; k < live->count; k++)
                curvature[k] = m->own + sum * (double)row[live->label[k]];
        else
            for (size_t k = 0; k < live->count; k++)
                curvature[k] += sum * (double)row[live->label[k]];
    }
    curvature[at] = 0;
}

/* ---- moves ---------------------------------------------------------------------------------- */

/* The label with the largest derivative among those with mass. `range`: how far the smallest of all
 * is below it. */
static size_t find_giver(const struct live *live, double *range) {
    size_t giver = 0;
    double most = -(double)INFINITY, least = (double)INFINITY;
    for (size_t k = 0; k < live->count; k++) {
        const double slope = live->slope[k];
        const bool is_more = live->mass[k] > 0 && slope > most;
        giver = is_more ? k : giver;
        most = is_more ? slope : most;
        least = slope < least ? slope : least;
    }
    *range = most - least;
    return giver;
}

static size_t find_taker(const struct live *live, size_t giver, const double *curvature) {
    const double highest = live->slope[giver];
    size_t taker = giver;
    double most = 0;
    for (size_t k = 0; k < live->count; k++) {
        const double gain = dcrf_cut_gain(highest - live->slope[k], curvature[k]);
        taker = gain > most ? k : taker;
        most = gain > most ? gain : most;
    }
    return taker;
}

/* The derivatives after a move that takes the mass from the label of this curvature. */
static void follow(struct live *live, const double *curvature, double mass) {
    for (size_t k = 0; k < live->count; k++)
        live->slope[k] += mass * curvature[k];
}

/* Until the derivatives are equal, or no moves are left; returns how many are. */
static int make_moves(const struct metric *m, struct live *live, double equal, int left) {
    double curvature[DCRF_CUTS_MOST_LABELS], range;
    for (; left > 0; left--) {
        const size_t giver = find_giver(live, &range);
        if (range <= equal)
            break;
        find_curvature(m, live, giver, curvature);
        const size_t taker = find_taker(live, giver, curvature);
        if (taker == giver)
            break;
        const double mass = dcrf_cut_mass(live->slope[giver] - live->slope[taker], curvature[taker],
                                          live->mass[giver]);
        follow(live, curvature, mass);
        find_curvature(m, live, taker, curvature);
        follow(live, curvature, -mass);
        live->mass[giver] -= mass;
        live->mass[taker] += mass;
    }
    return left;
}

/* ---- the step ------------------------------------------------------------------------------- */

static void write_back(const struct metric *m, const struct live *live, float *mass,
                       double *slope) {
    for (size_t k = 0; k < live->count; k++) {
        const size_t label = live->label[k];
        const float now = (float)live->mass[k];
        const double change = (double)now - (double)mass[label];
        if (change < 0 || change > 0)
            add_mass(m, label, change, slope);
        mass[label] = now;
    }
}

/* Floats that add up to 1. */
static void write_row(const float *row, size_t labels, float *y) {
    double sum = 0;
    for (size_t i = 0; i < labels; i++)
        sum += (double)row[i];
    for (size_t i = 0; i < labels; i++)
        y[i] = (float)((double)row[i] / sum);
}

void dcrf_cut_step_take(const struct dcrf_dual_space *space, size_t variable, double own,
                        const float *z, float *y, double *gradient) {
    const struct metric metric = {space, variable, own};
    struct live live;
    float mass[DCRF_CUTS_MOST_LABELS];
    double scale = own;
    for (size_t g = 0; g < space->columns->group_count; g++)
        scale += sum_of(&metric, g);
    start(&metric, z, mass, gradient);
    for (int left = DCRF_CUT_MOST_MOVES, before = left + 1; left < before;) {
        find_live(&live, mass, gradient, space->labels);
        before = left;
        left = make_moves(&metric, &live, DCRF_CUT_EQUAL * scale, left);
        write_back(&metric, &live, mass, gradient);
    }
    write_row(mass, space->labels, y);
}
