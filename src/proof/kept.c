/* Converts the parts of the LP's dual point to the numbers in a certificate.
 *
 * y is rounded to an integer number of steps. Large row sums amplify the error, so strong kernels
 * need finer steps: a sum changes by about row sum / (steps epsilon). */
#include "proof/kept.h"

#include "core/error.h"
#include "lp/lp.h"

#include <math.h>
#include <string.h>

/* With s steps, rounding costs about 5e-4 (mean row sum / epsilon) / s of the bound (measured on
 * photographs, normalized and not): this many keep it to a few millionths of the energy. */
#define STEPS_PER_SLOPE 256
/* Parts with smaller weights are dropped, and the weights of the others scaled up. */
#define LEAST_WEIGHT 1e-5
#define FEWEST_STEPS (1u << 14)
#define MOST_STEPS (1u << 23)
#define SHARES 65535

/* The certificate also has shares, and a point of the rest. */
_Static_assert(DCRF_LP_MOST_PARTS + 2 <= DCRF_MOST_POINTS, "a certificate has room for the parts");

static uint32_t choose_steps(const struct dcrf_lp *lp, double epsilon) {
    const dcrf_model *model = lp->problem->model;
    const double n = (double)model->variables;
    const double energy = fabs(*lp->problem->best_energy) / n + 1e-30;
    const double wanted = STEPS_PER_SLOPE * lp->space.total / n / epsilon / energy;
    uint32_t steps = FEWEST_STEPS;
    while (steps < MOST_STEPS && (double)steps < wanted)
        steps *= 2;
    return steps;
}

static bool is_alive(const dcrf_model *model, const float *y, size_t label, double threshold) {
    for (size_t a = 0; a < model->variables; a++)
        if ((double)y[a * model->stride + label] > threshold)
            return true;
    return false;
}

/* The mixture has room for it. */
static dcrf_status add_point(const struct dcrf_lp *lp, double epsilon, size_t bins, const float *y,
                             double weight, bool is_exact, struct dcrf_certificate_mixture *mixture,
                             dcrf_error *error) {
    struct dcrf_certificate_point *point = &mixture->points[mixture->point_count++];
    const dcrf_model *model = lp->problem->model;
    const size_t n = model->variables;
    point->weight = weight;
    point->epsilon = epsilon;
    point->nodes = is_exact ? 0 : (uint32_t)bins;
    point->levels = choose_steps(lp, epsilon);
    point->plane = dcrf_own_zero(&mixture->owned, model->labels, sizeof *point->plane);
    if (!point->plane)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t i = 0; i < model->labels; i++)
        if (is_alive(model, y, i, DCRF_DEAD_SHARE * epsilon))
            point->plane[i] = (uint16_t)++point->plane_count;
    point->values = dcrf_own(&mixture->owned, point->plane_count, n * sizeof *point->values);
    if (!point->values)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t i = 0; i < model->labels; i++)
        for (size_t a = 0; a < n && point->plane[i] > 0; a++) {
            const double value = (double)y[a * model->stride + i];
            point->values[(point->plane[i] - (size_t)1) * n + a] =
                (uint32_t)rint(fmax(0, fmin(1, value)) * point->levels); /* a NaN gives 0 */
        }
    return DCRF_OK;
}

/* How the cliques' costs are divided; evenly if the LP does not divide them this way. */
static dcrf_status take_shares(const struct dcrf_lp *lp, struct dcrf_certificate_mixture *mixture,
                               dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    const size_t n = model->variables;
    if (model->cliques.count == 0)
        return DCRF_OK;
    mixture->shares = dcrf_own_zero(&mixture->owned, n, model->labels * sizeof *mixture->shares);
    if (!mixture->shares)
        return dcrf_fail_memory(error, "a certificate");
    for (size_t a = 0; a < n && lp->space.form == DCRF_CLIQUE_MIN; a++)
        for (size_t i = 0; i < model->labels; i++) {
            const double cost = (double)lp->space.clique_cost[a];
            const double share = cost > 0 ? lp->best.clique[a * model->stride + i] / cost : 0;
            mixture->shares[i * n + a] = (uint32_t)rint(fmax(0, fmin(1, share)) * SHARES);
        }
    return DCRF_OK;
}

dcrf_status dcrf_kept_mixture(const struct dcrf_lp *lp, bool is_exact,
                              struct dcrf_certificate_mixture *mixture, dcrf_error *error) {
    const struct dcrf_lp_mixture *kept = &lp->mixture;
    const double epsilon = lp->huber.epsilon > 0 ? lp->huber.epsilon : 0.03125;
    const size_t bins = (size_t)fmax(16, 0.5 / epsilon);
    double sum = 0, total = 0;
    size_t count = 0;
    for (size_t k = 0; k < kept->count; k++) {
        const bool counts = lp->best.part_weights[k] > LEAST_WEIGHT;
        total += lp->best.part_weights[k];
        sum += counts ? lp->best.part_weights[k] : 0;
        count += counts;
    }
    mixture->size = lp->problem->model->variables;
    mixture->points =
        dcrf_own_zero(&mixture->owned, count > 0 ? count : 1, sizeof *mixture->points);
    if (!mixture->points)
        return dcrf_fail_memory(error, "a certificate");
    if (count == 0)
        TRY(add_point(lp, epsilon, bins, lp->y, 1, is_exact, mixture, error));
    for (size_t k = 0; k < kept->count; k++)
        if (lp->best.part_weights[k] > LEAST_WEIGHT) /* the last factor keeps the sum below 1 */
            TRY(add_point(lp, kept->parts[k].epsilon, kept->parts[k].bins, kept->parts[k].y,
                          fmin(1, total) * lp->best.part_weights[k] / sum * (1 - 0x1p-48), is_exact,
                          mixture, error));
    return take_shares(lp, mixture, error);
}
