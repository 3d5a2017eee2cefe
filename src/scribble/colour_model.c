/* A model of colours for every label:
 *
 *   p(c | l) = (1 - e) sum_k w_lk N(c; m_lk, S_lk) + e / V
 *
 * The mixture of Gaussians with full covariances is that of GrabCut (Rother, Kolmogorov, Blake:
 * "GrabCut": Interactive Foreground Extraction using Iterated Graph Cuts. SIGGRAPH 2004). A uniform
 * density over the bounding box of the image's colours, of volume V, is added, so that a colour
 * seen with no label is not evidence for the label whose Gaussian happens to decay most slowly. The
 * prior over labels is uniform, so the number of pixels seen of each label does not matter. */
#include "scribble/colour_model.h"

#include <math.h>
#include <string.h>

#define OUTLIER_SHARE 0.02
/* Relative to the mean variance of the image's channels: 3 % of the image's standard deviation. */
#define VARIANCE_MIN_SHARE 1e-3
#define PIXELS_PER_COMPONENT_MIN 50
#define EM_ITERATIONS_MAX 15
#define REFIT_ITERATIONS_MAX 5
#define EM_TOLERANCE 1e-3 /* nats: far too small to affect a decision */
#define BINS_PER_CHUNK 256

int dcrf_colour_model_init(struct dcrf_colour_model *model, const struct dcrf_colour_bins *bins,
                           size_t labels, size_t components) {
    *model = (struct dcrf_colour_model){
        .bins = bins,
        .labels = labels,
        .settings = {.components_max = components,
                     .weight_per_component_min = PIXELS_PER_COMPONENT_MIN,
                     /* For an image of a single colour any scale will do. */
                     .variance_min = VARIANCE_MIN_SHARE * (bins->variance > 0 ? bins->variance : 1),
                     .iterations_max = EM_ITERATIONS_MAX,
                     .tolerance = EM_TOLERANCE}};
    struct dcrf_owned *owned = &model->owned;
    model->deficit = dcrf_own(owned, bins->count, labels * sizeof(float));
    model->probability = dcrf_own(owned, bins->count, labels * sizeof(float));
    model->weight = dcrf_own(owned, labels, bins->count * sizeof(double));
    model->mixtures = dcrf_own_zero(owned, labels, sizeof(struct dcrf_mixture));
    model->cluster = dcrf_own(owned, labels, bins->count);
    model->refit_settings = model->settings;
    model->refit_settings.iterations_max = REFIT_ITERATIONS_MAX;
    return !owned->is_short;
}

void dcrf_colour_model_clear(struct dcrf_colour_model *model) {
    dcrf_disown(&model->owned);
}

/* ---- fitting -------------------------------------------------------------------------------- */

/* A label without members has a mixture without components. */
static void fit_labels(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_colour_model *model = context;
    const size_t bins = model->bins->count;
    for (size_t label = begin; label < end; label++) {
        const struct dcrf_weighted_points points = {
            model->bins->colour, model->weight + label * bins, bins, model->bins->dimension};
        double total = 0;
        for (size_t b = 0; b < bins; b++)
            total += points.weights[b];
        struct dcrf_mixture *mixture = &model->mixtures[label];
        if (!(total > 0))
            mixture->components = 0;
        else if (model->is_refit && mixture->components == model->settings.components_max)
            dcrf_mixture_refit(mixture, &points, &model->refit_settings);
        else
            dcrf_mixture_fit(mixture, &points, &model->settings, model->cluster + label * bins);
    }
}

/* ---- what follows for each colour ----------------------------------------------------------- */

/* ln(exp(a) + exp(b)) */
static double log_sum(double a, double b) {
    return fmax(a, b) + log1p(exp(-fabs(a - b)));
}

static void evaluate_bin(const struct dcrf_colour_model *model, size_t bin) {
    const double log_uniform = log(OUTLIER_SHARE) - model->bins->log_volume;
    const double log_inlier = log(1 - OUTLIER_SHARE);
    float *deficit = model->deficit + bin * model->labels;
    float *probability = model->probability + bin * model->labels;
    double most = -HUGE_VAL, sum = 0;
    for (size_t label = 0; label < model->labels; label++) {
        const struct dcrf_mixture *mixture = &model->mixtures[label];
        double log_density = -HUGE_VAL;
        if (mixture->components > 0)
            log_density = log_sum(
                log_inlier + dcrf_mixture_log_density(mixture, model->bins->colour +
                                                                   bin * model->bins->dimension),
                log_uniform);
        most = fmax(most, log_density);
        deficit[label] = (float)log_density;
    }
    for (size_t label = 0; label < model->labels; label++) {
        const double below = fmax(most - (double)deficit[label], 0); /* negative only by rounding */
        deficit[label] = (float)below;
        sum += exp(-below);
    }
    for (size_t label = 0; label < model->labels; label++)
        probability[label] = (float)(exp(-(double)deficit[label]) / sum);
}

static void evaluate_bins(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t bin = begin; bin < end; bin++)
        evaluate_bin(context, bin);
}

void dcrf_colour_model_fit(struct dcrf_colour_model *model, const int32_t *members,
                           size_t variables, bool is_refit, dcrf_pool *pool) {
    const size_t bins = model->bins->count;
    memset(model->weight, 0, model->labels * bins * sizeof *model->weight);
    for (size_t a = 0; a < variables; a++)
        if (members[a] >= 0)
            model->weight[(size_t)members[a] * bins + model->bins->bin_of[a]] += 1;
    model->is_refit = is_refit;
    dcrf_parallel_for(pool, model->labels, 1, fit_labels, model);
    dcrf_parallel_for(pool, bins, BINS_PER_CHUNK, evaluate_bins, model);
}
