/* The dual set of one clique p with cost C (Joy et al., section 5; the min form is ours).
 *
 *   min form     v_i >= 0 and sum_{a in p} v_ai = C for every label i. The projection is one onto a
 *                simplex per label; the vertex with the smallest <v, y> has C where y_ai is
 *                smallest.
 *   spread form  sum_{a in p} v_ai = 0 for every label, (1/2) sum_i sum_{a in p} |v_ai| <= C. The
 *                vertex has C at the smallest and -C at the largest entry of the one label with the
 *                widest spread.
 *
 * The projection of w onto the set of the spread form: with Lagrange multipliers m_i for the sums
 * and tau >= 0 for the size, v_ai = w_ai - m_i shrunk towards 0 by tau. So for every label the sum
 * above m_i + tau equals the one below m_i - tau; call it t_i(tau). It decreases with tau, and tau
 * = 0 or sum_i t_i(tau) = C. Both equations are piecewise linear and monotone: Newton's method,
 * kept inside a bracket, ends at their roots after a few sweeps. */
#include "backend/cpu/clique_dual.h"

#include "backend/simplex.h"
#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

dcrf_status dcrf_clique_dual_init(struct dcrf_clique_dual *cliques,
                                  const struct dcrf_dual_space *space, dcrf_error *error) {
    const dcrf_model *model = space->plan->model;
    const size_t workers = dcrf_workspace_threads(space->workspace);
    *cliques = (struct dcrf_clique_dual){.space = space};
    cliques->columns = dcrf_allocate(workers, space->largest_clique * sizeof(float));
    cliques->labels = dcrf_allocate(workers, model->labels * sizeof(double));
    if (cliques->columns && cliques->labels)
        return DCRF_OK;
    dcrf_clique_dual_clear(cliques);
    return dcrf_fail_memory(error, "the dual of the cliques");
}

void dcrf_clique_dual_clear(struct dcrf_clique_dual *cliques) {
    dcrf_release(cliques->columns);
    dcrf_release(cliques->labels);
    *cliques = (struct dcrf_clique_dual){0};
}

/* The clique being processed. */
struct clique {
    const uint32_t *members;
    size_t size;
    double cost;
    size_t labels, stride;
    const double *base;
    const float *y;
    double step;
    double *out;
};

static double target(const struct clique *p, size_t member, size_t label) {
    const size_t at = p->members[member] * p->stride + label;
    return (p->base ? p->base[at] : 0) - p->step * (double)p->y[at];
}

/* ---- the min form --------------------------------------------------------------------------- */

static void project_min(const struct clique *p, float *column) {
    for (size_t i = 0; i < p->labels; i++) {
        for (size_t k = 0; k < p->size; k++)
            column[k] = (float)target(p, k, i);
        const double theta = dcrf_simplex_threshold(column, p->size, p->cost);
        double sum = 0;
        for (size_t k = 0; k < p->size; k++) {
            const double value = (double)column[k] - theta;
            column[k] = value > 0 ? (float)value : 0;
            sum += (double)column[k];
        }
        /* Rescale, so that the sum is C up to one rounding of each entry. */
        const double correction = sum > 0 ? p->cost / sum : 0;
        for (size_t k = 0; k < p->size; k++)
            p->out[p->members[k] * p->stride + i] =
                sum > 0 ? (double)column[k] * correction : p->cost / (double)p->size;
    }
}

static void vertex_min(const struct clique *p) {
    for (size_t i = 0; i < p->labels; i++) {
        size_t smallest = 0;
        for (size_t k = 0; k < p->size; k++) {
            p->out[p->members[k] * p->stride + i] = 0;
            if (p->y[p->members[k] * p->stride + i] < p->y[p->members[smallest] * p->stride + i])
                smallest = k;
        }
        p->out[p->members[smallest] * p->stride + i] = p->cost;
    }
}

/* ---- the spread form ------------------------------------------------------------------------ */

/* Mass and number of the entries of one label above centre + tau and below centre - tau. */
struct excesses {
    double above, below;
    size_t above_count, below_count;
};

static struct excesses measure_excesses(const struct clique *p, size_t label, double centre,
                                        double tau) {
    struct excesses excesses = {0};
    for (size_t k = 0; k < p->size; k++) {
        const double value = target(p, k, label) - centre;
        if (value > tau) {
            excesses.above += value - tau;
            excesses.above_count++;
        } else if (value < -tau) {
            excesses.below += -value - tau;
            excesses.below_count++;
        }
    }
    return excesses;
}

/* The most sweeps. Newton's method needs a handful; a step outside the bracket is replaced by
 * bisection. */
#define SWEEPS 60

/* Find the centre with equal excesses, starting at *centre; returns its excesses. */
static struct excesses balance(const struct clique *p, size_t label, double tau, double *centre) {
    double low = INFINITY, high = -INFINITY;
    for (size_t k = 0; k < p->size; k++) {
        low = fmin(low, target(p, k, label));
        high = fmax(high, target(p, k, label));
    }
    if (high - low <= 2 * tau) {
        *centre = (low + high) / 2;
        return (struct excesses){0};
    }
    const double tolerance = 1e-13 * (high - low);
    struct excesses excesses;
    double at = *centre > low && *centre < high ? *centre : (low + high) / 2;
    for (int sweep = 0;; sweep++) {
        excesses = measure_excesses(p, label, at, tau);
        const double excess = excesses.above - excesses.below;
        if (excess > 0)
            low = at;
        else
            high = at;
        if (excess == 0 || high - low <= tolerance || sweep == SWEEPS)
            break;
        const double count = (double)(excesses.above_count + excesses.below_count);
        const double next = count > 0 ? at + excess / count : (low + high) / 2;
        /* A full Newton step that changes nothing is the root. */
        if (next == at)
            break;
        at = next > low && next < high ? next : (low + high) / 2;
    }
    *centre = at;
    return excesses;
}

/* sum_i t_i(tau), and its derivative: t falls by 1 / (1 / above_count + 1 / below_count) for each
 * unit by which the gap 2 tau between the excesses grows. */
static double measure_all(const struct clique *p, double tau, double *centres, double *slope) {
    double total = 0;
    *slope = 0;
    for (size_t i = 0; i < p->labels; i++) {
        const struct excesses excesses = balance(p, i, tau, &centres[i]);
        const double above = (double)excesses.above_count, below = (double)excesses.below_count;
        total += (excesses.above + excesses.below) / 2;
        if (above > 0 && below > 0)
            *slope -= 2 / (1 / above + 1 / below);
    }
    return total;
}

static double find_tau(const struct clique *p, double *centres) {
    double slope, low = 0, high = 0;
    for (size_t i = 0; i < p->labels; i++) {
        double smallest = INFINITY, largest = -INFINITY, sum = 0;
        for (size_t k = 0; k < p->size; k++) {
            const double value = target(p, k, i);
            smallest = fmin(smallest, value);
            largest = fmax(largest, value);
            sum += value;
        }
        centres[i] = sum / (double)p->size;
        high = fmax(high, (largest - smallest) / 2);
    }
    const double tolerance = 1e-12 * high;
    double tau = 0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        const double excess = measure_all(p, tau, centres, &slope) - p->cost;
        if (excess <= 0 && tau == 0)
            break;
        if (excess > 0)
            low = tau;
        else
            high = tau;
        if (excess == 0 || high - low <= tolerance)
            break;
        const double next = slope < 0 ? tau - excess / slope : (low + high) / 2;
        if (next == tau)
            break;
        tau = next > low && next < high ? next : (low + high) / 2;
    }
    return tau;
}

static void project_spread(const struct clique *p, double *centres) {
    const double tau = find_tau(p, centres);
    double size = 0;
    for (size_t i = 0; i < p->labels; i++) {
        /* Scale both excesses to their mean, so that the sum is zero. */
        const struct excesses excesses = measure_excesses(p, i, centres[i], tau);
        const double mass =
            excesses.above > 0 && excesses.below > 0 ? (excesses.above + excesses.below) / 2 : 0;
        size += mass;
        for (size_t k = 0; k < p->size; k++) {
            const double value = target(p, k, i) - centres[i];
            double shrunk = 0;
            if (value > tau && mass > 0)
                shrunk = (value - tau) * (mass / excesses.above);
            else if (value < -tau && mass > 0)
                shrunk = (value + tau) * (mass / excesses.below);
            p->out[p->members[k] * p->stride + i] = shrunk;
        }
    }
    if (size <= p->cost)
        return;
    const double correction = p->cost / size;
    for (size_t k = 0; k < p->size; k++)
        for (size_t i = 0; i < p->labels; i++)
            p->out[p->members[k] * p->stride + i] *= correction;
}

static void vertex_spread(const struct clique *p) {
    size_t widest = 0, from = 0, to = 0;
    float width = -1;
    for (size_t i = 0; i < p->labels; i++) {
        size_t smallest = 0, largest = 0;
        for (size_t k = 0; k < p->size; k++) {
            const float value = p->y[p->members[k] * p->stride + i];
            p->out[p->members[k] * p->stride + i] = 0;
            if (value < p->y[p->members[smallest] * p->stride + i])
                smallest = k;
            if (value > p->y[p->members[largest] * p->stride + i])
                largest = k;
        }
        const float spread =
            p->y[p->members[largest] * p->stride + i] - p->y[p->members[smallest] * p->stride + i];
        if (spread > width) {
            width = spread;
            widest = i;
            from = smallest;
            to = largest;
        }
    }
    if (from == to)
        return;
    p->out[p->members[from] * p->stride + widest] = p->cost;
    p->out[p->members[to] * p->stride + widest] = -p->cost;
}

/* ---- all cliques ---------------------------------------------------------------------------- */

struct clique_context {
    const struct dcrf_clique_dual *cliques;
    const double *base;
    const float *y;
    double epsilon, step;
    bool is_vertex;
    double *out;
};

static void work_on_cliques(void *context, size_t begin, size_t end, size_t worker) {
    const struct clique_context *c = context;
    const struct dcrf_dual_space *space = c->cliques->space;
    const dcrf_model *model = space->plan->model;
    for (size_t index = begin; index < end; index++) {
        const size_t first = model->cliques.offsets[index];
        struct clique p = {.members = model->cliques.members + first,
                           .size = model->cliques.offsets[index + 1] - first,
                           .cost = model->cliques.costs[index],
                           .labels = space->labels,
                           .stride = space->stride,
                           .base = c->base,
                           .y = c->y,
                           .step = c->step,
                           .out = c->out};
        if (p.size == 0 || p.cost == 0)
            continue;
        if (c->epsilon > 0)
            p.step = space->stiffness[index] / c->epsilon;
        if (space->form == DCRF_CLIQUE_MIN) {
            if (c->is_vertex)
                vertex_min(&p);
            else
                project_min(&p, c->cliques->columns + worker * space->largest_clique);
        } else {
            if (c->is_vertex)
                vertex_spread(&p);
            else
                project_spread(&p, c->cliques->labels + worker * model->labels);
        }
    }
}

/* Cliques per task. */
#define GRAIN 8

static void run(struct clique_context *context, struct dcrf_dual *out) {
    const struct dcrf_dual_space *space = context->cliques->space;
    context->out = out->clique;
    dcrf_parallel_clear(dcrf_workspace_pool(space->workspace), out->clique,
                        space->variables * space->stride * sizeof *out->clique);
    dcrf_parallel_for(dcrf_workspace_pool(space->workspace), space->plan->model->cliques.count,
                      GRAIN, work_on_cliques, context);
    out->roundings.clique = dcrf_clique_roundings(space);
}

void dcrf_clique_project(const struct dcrf_clique_dual *cliques, const double *base, const float *y,
                         double epsilon, double step, struct dcrf_dual *out) {
    struct clique_context context = {
        .cliques = cliques, .base = base, .y = y, .epsilon = epsilon, .step = step};
    run(&context, out);
}

void dcrf_clique_vertex(const struct dcrf_clique_dual *cliques, const float *y,
                        struct dcrf_dual *out) {
    struct clique_context context = {.cliques = cliques, .y = y, .is_vertex = true};
    run(&context, out);
}
