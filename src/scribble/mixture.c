/* Mixtures of Gaussians.
 *
 *   p(c) = sum_k w_k N(c; m_k, S_k)
 *
 * fitted by expectation maximization (Dempster, Laird, Rubin: Maximum Likelihood from Incomplete
 * Data via the EM Algorithm. J. Royal Statistical Society B 39, 1977):
 *
 *   r_nk = w_k N(c_n; m_k, S_k) / p(c_n)
 *   w_k = sum_n r_nk / N,   m_k = sum_n r_nk c_n / sum_n r_nk,
 *   S_k = sum_n r_nk (c_n - m_k)(c_n - m_k)' / sum_n r_nk + v I
 *
 * The constant v keeps a component from collapsing onto one colour. EM finds a local optimum, so
 * the start matters; it is the binary splitting of Orchard and Bouman (Color Quantization of
 * Images. IEEE Transactions on Signal Processing 39, 1991), which needs no random numbers: the
 * cluster with the largest scatter along its principal axis is cut through its mean across that
 * axis, until there are enough. */
#include "scribble/mixture.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define POWER_ITERATIONS 50
#define PIVOT_SHARE_MIN 1e-12
#define LOST_WEIGHT_SHARE 1e-9
#define NEGLIGIBLE_NATS 30 /* exp(-30) of a sum does not affect a fit */

static const double log_two_pi = 1.8378770664093454836;

/* ---- one component -------------------------------------------------------------------------- */

/* Weighted sums over points, from which a component is made. */
struct moments {
    double weight;
    double first[DCRF_MIXTURE_DIMENSION_MAX];
    double second[DCRF_MIXTURE_DIMENSION_MAX][DCRF_MIXTURE_DIMENSION_MAX]; /* lower triangle */
};

/* Relative to an origin near the points, to avoid cancellation. */
static void add_point(struct moments *sums, const float *point, const double *origin,
                      size_t dimension, double weight) {
    double difference[DCRF_MIXTURE_DIMENSION_MAX];
    for (size_t i = 0; i < dimension; i++)
        difference[i] = (double)point[i] - origin[i];
    sums->weight += weight;
    for (size_t i = 0; i < dimension; i++) {
        sums->first[i] += weight * difference[i];
        for (size_t j = 0; j <= i; j++)
            sums->second[i][j] += weight * difference[i] * difference[j];
    }
}

/* S = L L'. The matrix is positive definite because of what is added to its diagonal; a lower limit
 * on the pivots guards against rounding errors. */
static void factorize(struct dcrf_mixture_component *component, size_t dimension) {
    double log_determinant = 0;
    for (size_t i = 0; i < dimension; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = component->covariance[i][j];
            for (size_t k = 0; k < j; k++)
                sum -= component->factor[i][k] * component->factor[j][k];
            if (i == j) {
                sum = fmax(sum, PIVOT_SHARE_MIN * component->covariance[i][i]);
                component->factor[i][i] = sqrt(sum);
                component->inverse_diagonal[i] = 1 / component->factor[i][i];
                log_determinant += log(sum);
            } else {
                component->factor[i][j] = sum / component->factor[j][j];
            }
        }
    component->log_scale =
        log(component->weight) - 0.5 * ((double)dimension * log_two_pi + log_determinant);
}

static void component_from_moments(struct dcrf_mixture_component *component,
                                   const struct moments *sums, const double *origin,
                                   size_t dimension, double total_weight, double variance_min) {
    component->weight = sums->weight / total_weight;
    for (size_t i = 0; i < dimension; i++)
        component->mean[i] = origin[i] + sums->first[i] / sums->weight;
    for (size_t i = 0; i < dimension; i++)
        for (size_t j = 0; j <= i; j++) {
            double value = sums->second[i][j] / sums->weight -
                           sums->first[i] * sums->first[j] / (sums->weight * sums->weight);
            if (i == j)
                value = (value > 0 ? value : 0) + variance_min;
            component->covariance[i][j] = component->covariance[j][i] = value;
        }
    factorize(component, dimension);
}

static double component_log_density(const struct dcrf_mixture_component *component,
                                    const float *point, size_t dimension) {
    double solved[DCRF_MIXTURE_DIMENSION_MAX], square = 0;
    for (size_t i = 0; i < dimension; i++) {
        double sum = (double)point[i] - component->mean[i];
        for (size_t k = 0; k < i; k++)
            sum -= component->factor[i][k] * solved[k];
        solved[i] = sum * component->inverse_diagonal[i];
        square += solved[i] * solved[i];
    }
    return component->log_scale - 0.5 * square;
}

/* Sets the log densities of all components; returns that of the mixture. */
static double log_densities(const struct dcrf_mixture *mixture, const float *point,
                            double *of_component) {
    double largest = -HUGE_VAL, sum = 0;
    for (size_t k = 0; k < mixture->components; k++) {
        of_component[k] = component_log_density(&mixture->of[k], point, mixture->dimension);
        largest = of_component[k] > largest ? of_component[k] : largest;
    }
    for (size_t k = 0; k < mixture->components; k++)
        if (of_component[k] > largest - NEGLIGIBLE_NATS)
            sum += exp(of_component[k] - largest);
    return largest + log(sum);
}

double dcrf_mixture_log_density(const struct dcrf_mixture *mixture, const float *point) {
    double of_component[DCRF_MIXTURE_COMPONENTS_MAX];
    return log_densities(mixture, point, of_component);
}

/* ---- the start: binary splitting ------------------------------------------------------------ */

struct fitting {
    struct dcrf_weighted_points data;
    const struct dcrf_mixture_settings *settings;
    double total_weight;
    double origin[DCRF_MIXTURE_DIMENSION_MAX];
    uint8_t *cluster; /* of each point */
};

static const float *point_at(const struct fitting *f, size_t n) {
    return f->data.points + n * f->data.dimension;
}

static struct moments cluster_moments(const struct fitting *f, size_t cluster) {
    struct moments sums = {0};
    for (size_t n = 0; n < f->data.count; n++)
        if (f->data.weights[n] > 0 && f->cluster[n] == cluster)
            add_point(&sums, point_at(f, n), f->origin, f->data.dimension, f->data.weights[n]);
    return sums;
}

/* The largest eigenvalue of a covariance and its eigenvector, by the power method, starting near
 * the axis with the largest variance. */
static double principal_axis(const struct dcrf_mixture_component *component, size_t dimension,
                             double *axis) {
    size_t widest = 0;
    double length = 0;
    for (size_t i = 1; i < dimension; i++)
        if (component->covariance[i][i] > component->covariance[widest][widest])
            widest = i;
    memcpy(axis, component->covariance[widest], dimension * sizeof *axis);
    for (size_t step = 0; step < POWER_ITERATIONS; step++) {
        double next[DCRF_MIXTURE_DIMENSION_MAX] = {0}, square = 0;
        for (size_t i = 0; i < dimension; i++) {
            for (size_t j = 0; j < dimension; j++)
                next[i] += component->covariance[i][j] * axis[j];
            square += next[i] * next[i];
        }
        length = sqrt(square);
        for (size_t i = 0; i < dimension; i++)
            axis[i] = next[i] / length;
    }
    return length;
}

/* Move the points of `from` beyond its mean along the axis to `to`; false if there are none. */
static bool split(const struct fitting *f, const struct dcrf_mixture_component *component,
                  const double *axis, size_t from, size_t to) {
    size_t moved = 0;
    for (size_t n = 0; n < f->data.count; n++) {
        double side = 0;
        for (size_t i = 0; i < f->data.dimension; i++)
            side += axis[i] * ((double)point_at(f, n)[i] - component->mean[i]);
        if (f->data.weights[n] > 0 && f->cluster[n] == from && side > 0) {
            f->cluster[n] = (uint8_t)to;
            moved++;
        }
    }
    return moved > 0;
}

static void component_of_cluster(const struct fitting *f, size_t cluster,
                                 struct dcrf_mixture_component *component) {
    const struct moments sums = cluster_moments(f, cluster);
    component_from_moments(component, &sums, f->origin, f->data.dimension, f->total_weight,
                           f->settings->variance_min);
}

static size_t wanted_components(const struct fitting *f) {
    const double affordable = f->total_weight / f->settings->weight_per_component_min;
    const size_t most = f->settings->components_max;
    return !(affordable >= 2) ? 1 : affordable < (double)most ? (size_t)affordable : most;
}

static void start_from_clusters(const struct fitting *f, struct dcrf_mixture *mixture) {
    const size_t wanted = wanted_components(f);
    mixture->components = 1;
    component_of_cluster(f, 0, &mixture->of[0]);
    while (mixture->components < wanted) {
        double axis[DCRF_MIXTURE_DIMENSION_MAX], widest_axis[DCRF_MIXTURE_DIMENSION_MAX] = {0},
                                                 widest = 0;
        size_t chosen = 0;
        for (size_t k = 0; k < mixture->components; k++) {
            const double scatter =
                mixture->of[k].weight * principal_axis(&mixture->of[k], f->data.dimension, axis);
            if (scatter > widest) {
                widest = scatter;
                chosen = k;
                memcpy(widest_axis, axis, sizeof axis);
            }
        }
        if (!split(f, &mixture->of[chosen], widest_axis, chosen, mixture->components))
            return; /* all points of the widest cluster are equal */
        component_of_cluster(f, chosen, &mixture->of[chosen]);
        component_of_cluster(f, mixture->components, &mixture->of[mixture->components]);
        mixture->components++;
    }
}

/* ---- expectation maximization --------------------------------------------------------------- */

/* One iteration; returns the mean log density under the mixture as it was before. */
static double improve(const struct fitting *f, struct dcrf_mixture *mixture) {
    const size_t dimension = f->data.dimension;
    struct moments sums[DCRF_MIXTURE_COMPONENTS_MAX];
    double total = 0;
    memset(sums, 0, sizeof sums);
    for (size_t n = 0; n < f->data.count; n++) {
        double of_component[DCRF_MIXTURE_COMPONENTS_MAX];
        const double weight = f->data.weights[n];
        if (!(weight > 0))
            continue;
        const double log_density = log_densities(mixture, point_at(f, n), of_component);
        total += weight * log_density;
        for (size_t k = 0; k < mixture->components; k++)
            if (of_component[k] > log_density - NEGLIGIBLE_NATS)
                add_point(&sums[k], point_at(f, n), f->origin, dimension,
                          weight * exp(of_component[k] - log_density));
    }
    /* A component that has lost all its points is left unchanged. */
    for (size_t k = 0; k < mixture->components; k++)
        if (sums[k].weight > LOST_WEIGHT_SHARE * f->total_weight)
            component_from_moments(&mixture->of[k], &sums[k], f->origin, dimension, f->total_weight,
                                   f->settings->variance_min);
    return total / f->total_weight;
}

static void measure_points(struct fitting *f) {
    for (size_t n = 0; n < f->data.count; n++) {
        f->total_weight += f->data.weights[n];
        for (size_t i = 0; i < f->data.dimension; i++)
            f->origin[i] += f->data.weights[n] * (double)point_at(f, n)[i];
    }
    for (size_t i = 0; i < f->data.dimension; i++)
        f->origin[i] /= f->total_weight;
}

/* At most `iterations` iterations, fewer if they no longer improve the fit. */
static void iterate(const struct fitting *f, struct dcrf_mixture *mixture, size_t iterations) {
    double before = -HUGE_VAL;
    for (size_t iteration = 0; iteration < iterations; iteration++) {
        const double now = improve(f, mixture);
        if (now - before < f->settings->tolerance)
            break;
        before = now;
    }
}

void dcrf_mixture_fit(struct dcrf_mixture *mixture, const struct dcrf_weighted_points *points,
                      const struct dcrf_mixture_settings *settings, uint8_t *cluster) {
    struct fitting f = {.data = *points, .settings = settings, .cluster = cluster};
    measure_points(&f);
    memset(cluster, 0, points->count);
    memset(mixture, 0, sizeof *mixture);
    mixture->dimension = points->dimension;
    start_from_clusters(&f, mixture);
    iterate(&f, mixture, settings->iterations_max);
}

void dcrf_mixture_refit(struct dcrf_mixture *mixture, const struct dcrf_weighted_points *points,
                        const struct dcrf_mixture_settings *settings) {
    struct fitting f = {.data = *points, .settings = settings};
    measure_points(&f);
    iterate(&f, mixture, settings->iterations_max);
}
