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

#include "core/error.h"
#include "core/memory.h"
#include "energy/columns.h"
#include "filter/plan.h"

/* Derivatives closer than this, relative to the row sums, count as equal. */
#define EQUAL 1e-4
#define MOST_MOVES 200

static dcrf_status fill_distances(const struct dcrf_column_group *group, size_t labels,
                                  double *matrix, float *distances, dcrf_error *error) {
    if (group->cuts) {
        const dcrf_status status = dcrf_cuts_distances(group->cuts, matrix, error);
        if (status < 0)
            return status;
    }
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j < labels; j++)
            distances[i * labels + j] = group->cuts ? (float)matrix[i * labels + j] : i != j;
    return DCRF_OK;
}

dcrf_status dcrf_cut_step_init(struct dcrf_cut_step *step, const struct dcrf_dual_space *space,
                               dcrf_error *error) {
    const size_t labels = space->plan->model->labels, cells = labels * labels;
    const struct dcrf_columns *columns = space->columns;
    *step = (struct dcrf_cut_step){0};
    if (space->is_potts)
        return DCRF_OK;
    *step = (struct dcrf_cut_step){.labels = labels,
                                   .group_count = columns->group_count,
                                   .variables = space->variables,
                                   .group_sums = space->group_sums};
    step->distances = dcrf_allocate(columns->group_count, cells * sizeof *step->distances);
    double *matrix = dcrf_allocate(cells, sizeof *matrix);
    dcrf_status status =
        step->distances && matrix ? DCRF_OK : dcrf_fail_memory(error, "the metric of the cuts");
    for (size_t g = 0; g < columns->group_count && status == DCRF_OK; g++)
        status =
            fill_distances(&columns->groups[g], labels, matrix, step->distances + g * cells, error);
    dcrf_release(matrix);
    if (status < 0)
        dcrf_cut_step_clear(step);
    return status;
}

void dcrf_cut_step_clear(struct dcrf_cut_step *step) {
    dcrf_release(step->distances);
    *step = (struct dcrf_cut_step){0};
}

/* ---- one variable --------------------------------------------------------------------------- */

/* The metric Q of one variable. */
struct metric {
    const struct dcrf_cut_step *step;
    size_t variable;
    double own;
};

static inline double sum_of(const struct metric *m, size_t group) {
    return (double)m->step->group_sums[group * m->step->variables + m->variable];
}

static inline const float *distances_of(const struct metric *m, size_t group, size_t label) {
    return m->step->distances + (group * m->step->labels + label) * m->step->labels;
}

/* h += Q e_i mass, up to a constant. */
static void add_mass(const struct metric *m, size_t label, double mass, double *h) {
    for (size_t g = 0; g < m->step->group_count; g++) {
        const double factor = mass * sum_of(m, g);
        const float *row = distances_of(m, g, label);
        for (size_t k = 0; k < m->step->labels; k++)
            h[k] -= factor * (double)row[k];
    }
    h[label] += m->own * mass;
}

/* curvatures[i] = half the curvature along e_i - e_from. */
static void find_curvatures(const struct metric *m, size_t from, double *curvatures) {
    for (size_t i = 0; i < m->step->labels; i++)
        curvatures[i] = m->own;
    for (size_t g = 0; g < m->step->group_count; g++) {
        const double factor = sum_of(m, g);
        const float *row = distances_of(m, g, from);
        for (size_t i = 0; i < m->step->labels; i++)
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
        const double slope = h[giver] - h[i];
        const double gain = slope > 0 ? slope * slope / curvatures[i] : 0;
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

void dcrf_cut_step_take(const struct dcrf_cut_step *step, size_t variable, double own,
                        const float *z, float *y, double *gradient) {
    const size_t labels = step->labels;
    const struct metric metric = {step, variable, own};
    double row[DCRF_CUTS_MOST_LABELS], curvatures[DCRF_CUTS_MOST_LABELS], scale = own;
    for (size_t g = 0; g < step->group_count; g++)
        scale += sum_of(&metric, g);
    for (size_t i = 0; i < labels; i++) {
        row[i] = (double)y[i];
        if (y[i] > z[i] || y[i] < z[i])
            add_mass(&metric, i, row[i] - (double)z[i], gradient);
    }
    for (int move = 0; move < MOST_MOVES; move++) {
        double lowest;
        const size_t giver = find_giver(row, gradient, labels, &lowest);
        if (giver == labels || gradient[giver] - lowest <= EQUAL * scale)
            break;
        find_curvatures(&metric, giver, curvatures);
        const size_t taker = find_taker(giver, gradient, curvatures, labels);
        if (taker == giver)
            break;
        const double wanted = (gradient[giver] - gradient[taker]) / (2 * curvatures[taker]);
        const double mass = wanted < row[giver] ? wanted : row[giver];
        row[taker] += mass;
        row[giver] -= mass;
        add_mass(&metric, taker, mass, gradient);
        add_mass(&metric, giver, -mass, gradient);
    }
    write_row(row, labels, y);
}
