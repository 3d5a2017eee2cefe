/* Densities of colours by Gaussian windows (Parzen: On Estimation of a Probability Density Function
 * and Mode. Annals of Mathematical Statistics 33, 1962):
 *
 *   p(c | l) = sum_b m_l(b) exp(-|c - c_b|^2 / (2 h^2)) / sum_b m_l(b) + e p,
 *
 * where m_l(b) is how much of bin b belongs to label l, and p the mean of the first term over all
 * pixels and all labels that occur. A mask shows thousands of pixels of each label, so windows,
 * which need no fit, can follow colours that mixtures of a few Gaussians cannot. The prior over
 * labels is uniform. The sum over bins is a kernel over the colours alone.
 *
 * Where labels share their colours, densities mislead. With d_l(b) = ln max_k p(b | k) / p(b | l),
 * colours of sharpness w give bin b the label l with the probability
 *
 *   P_w(l | b) = exp(-w d_l(b)) / sum_k exp(-w d_k(b)),
 *
 * and provide a fraction I = 1 + max_w mean_l E[ln P_w(l | b)] / ln L of the information about L
 * labels, where the expectation is over pixels of l. The sharpness is calibrated as in Guo et al.:
 * On Calibration of Modern Neural Networks, ICML 2017 (temperature scaling); w = 0 gives I = 0. */
#include "scribble/mask_colours.h"

#include "core/error.h"

#include <math.h>
#include <string.h>

#define WINDOW 2.5        /* h, in units of CIE Lab */
#define UNSEEN_SHARE 0.05 /* e */
#define SHARPNESS_STEP 0.125
#define SHARPNESS_STEPS 12

/* An operator over the bins, whose features are colours in units of the window. */
static dcrf_status build_operator(struct dcrf_mask_colours *colours, dcrf_workspace *workspace,
                                  dcrf_error *error) {
    const struct dcrf_colour_bins *bins = colours->bins;
    const size_t numbers = bins->count * bins->dimension;
    const dcrf_grid line = dcrf_grid_1d(bins->count);
    DCRF_SCOPED float *features = dcrf_allocate(bins->count, bins->dimension * sizeof *features);
    if (!features)
        return dcrf_fail_memory(error, "the colours of the mask");
    for (size_t i = 0; i < numbers; i++)
        features[i] = bins->colour[i] / (float)WINDOW;
    dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &line, bins->dimension), 1);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    return dcrf_operator_new(&colours->op, &line, &kernel, DCRF_OPERATOR_FAST, workspace, error);
}

dcrf_status dcrf_mask_colours_init(struct dcrf_mask_colours *colours,
                                   const struct dcrf_colour_bins *bins, size_t labels,
                                   dcrf_workspace *workspace, dcrf_error *error) {
    const size_t stride = dcrf_padded(labels);
    *colours = (struct dcrf_mask_colours){.bins = bins, .labels = labels, .stride = stride};
    struct dcrf_owned *owned = &colours->owned;
    colours->weights = dcrf_own_zero(owned, bins->count, stride * sizeof(float));
    colours->deficit = dcrf_own_zero(owned, bins->count, stride * sizeof(float));
    colours->pixels = dcrf_own(owned, bins->count, sizeof(double));
    colours->total = dcrf_own_zero(owned, labels, sizeof(double));
    const dcrf_status status = owned->is_short ? dcrf_fail_memory(error, "the colours of the mask")
                                               : build_operator(colours, workspace, error);
    if (status < 0)
        dcrf_mask_colours_clear(colours);
    return status;
}

void dcrf_mask_colours_clear(struct dcrf_mask_colours *colours) {
    dcrf_operator_free(&colours->op);
    dcrf_disown(&colours->owned);
}

static void count_members(struct dcrf_mask_colours *colours, const float *members, size_t variables,
                          size_t stride) {
    memset(colours->weights, 0, colours->bins->count * colours->stride * sizeof(float));
    memset(colours->pixels, 0, colours->bins->count * sizeof *colours->pixels);
    memset(colours->total, 0, colours->labels * sizeof *colours->total);
    for (size_t a = 0; a < variables; a++) {
        colours->pixels[colours->bins->bin_of[a]] += 1;
        float *of_bin = colours->weights + colours->bins->bin_of[a] * colours->stride;
        for (size_t label = 0; label < colours->labels; label++) {
            of_bin[label] += members[a * stride + label];
            colours->total[label] += (double)members[a * stride + label];
        }
    }
}

/* Divide the operator's output by the labels' weights; returns the mean over variables and
 * labels. */
static double normalize(struct dcrf_mask_colours *colours, size_t variables) {
    double sum = 0;
    size_t used = 0;
    for (size_t label = 0; label < colours->labels; label++)
        used += colours->total[label] > 0;
    for (size_t b = 0; b < colours->bins->count; b++)
        for (size_t label = 0; label < colours->labels; label++) {
            float *density = &colours->deficit[b * colours->stride + label];
            *density = colours->total[label] > 0
                           ? (float)(fmax((double)*density, 0) / colours->total[label])
                           : 0;
            sum += (double)*density * colours->pixels[b];
        }
    return used > 0 ? sum / ((double)used * (double)variables) : 0;
}

static void compare_labels(struct dcrf_mask_colours *colours, double unseen) {
    for (size_t b = 0; b < colours->bins->count; b++) {
        float *row = colours->deficit + b * colours->stride;
        double most = 0;
        for (size_t label = 0; label < colours->labels; label++)
            most = fmax(most, (double)row[label]);
        for (size_t label = 0; label < colours->labels; label++)
            row[label] =
                unseen > 0 ? (float)log((most + unseen) / ((double)row[label] + unseen)) : 0;
    }
}

dcrf_status dcrf_mask_colours_learn(struct dcrf_mask_colours *colours, const float *members,
                                    size_t variables, size_t stride, dcrf_workspace *workspace,
                                    dcrf_error *error) {
    count_members(colours, members, variables, stride);
    TRY(dcrf_operator_apply(colours->op, workspace, DCRF_SYMMETRIC, colours->weights,
                            colours->deficit, variables * colours->stride, colours->labels,
                            colours->stride, error));
    compare_labels(colours, UNSEEN_SHARE * normalize(colours, variables));
    return DCRF_OK;
}

/* mean_l E[ln P_w(l | b)] times the number of labels; `weights` and `total` are those of the
 * members. */
static double log_likelihood(const struct dcrf_mask_colours *colours, double sharpness,
                             double limit) {
    double sum = 0;
    for (size_t b = 0; b < colours->bins->count; b++) {
        const float *deficit = colours->deficit + b * colours->stride;
        const float *weight = colours->weights + b * colours->stride;
        double partition = 0, of_bin = 0;
        for (size_t label = 0; label < colours->labels; label++) {
            if (!(colours->total[label] > 0))
                continue;
            const double energy = sharpness * fmin(limit, (double)deficit[label]);
            const double share = (double)weight[label] / colours->total[label];
            partition += exp(-energy);
            of_bin += share;
            sum -= share * energy;
        }
        sum -= of_bin > 0 ? of_bin * log(partition) : 0;
    }
    return sum;
}

double dcrf_mask_colours_information(struct dcrf_mask_colours *colours, const float *members,
                                     size_t variables, size_t stride, double limit) {
    double most = 0, labels = 0;
    count_members(colours, members, variables, stride);
    for (size_t label = 0; label < colours->labels; label++)
        labels += colours->total[label] > 0;
    if (labels < 2)
        return 0;
    for (size_t i = 1; i <= SHARPNESS_STEPS; i++)
        most = fmax(most, 1 + log_likelihood(colours, SHARPNESS_STEP * (double)i, limit) /
                                  (labels * log(labels)));
    return most;
}
