/* A model of colours for every label, learnt from the pixels that were scribbled with it:
 *
 *   p(c | l) = (1 - e) sum_k w_lk N(c; m_lk, S_lk) + e / V
 *   energy of label l at pixel a = -ln p(c_a | l) / sum_l' p(c_a | l')
 *
 * The mixture of up to five Gaussians with full covariances is the one of GrabCut (Rother,
 * Kolmogorov, Blake: "GrabCut": Interactive Foreground Extraction using Iterated Graph Cuts.
 * SIGGRAPH 2004). To it comes a uniform density over the box of volume V that holds the colours of
 * the image: a colour that no label has been scribbled on is then no evidence for the label whose
 * Gaussian happens to fall off more slowly, and energies are bounded. Labels are equally likely
 * beforehand, so the number of pixels that were scribbled does not matter.
 *
 * A pixel that was scribbled keeps its label: 0 there, SCRIBBLE_ENERGY for any other. */
#include "colour_model.h"

#include "gaussian_mixture.h"

#include <math.h>
#include <stdlib.h>

#define OUTLIER_SHARE 0.02
/* Of the mean variance of the image's channels: a standard deviation of 3 % of the image's own. */
#define VARIANCE_MIN_SHARE 1e-3

typedef struct colour_range {
    double variance; /* mean over the channels */
    double log_volume;
} colour_range;

static colour_range measure_colours(const coloured_scribbles *s) {
    colour_range range = {0, 0};
    double extent[MIXTURE_DIMENSION_MAX];
    for (size_t c = 0; c < s->channels; c++) {
        double sum = 0, squares = 0, least = HUGE_VAL, most = -HUGE_VAL;
        const double origin = (double)s->colours[c];
        for (size_t pixel = 0; pixel < s->pixels; pixel++) {
            const double value = (double)s->colours[pixel * s->channels + c] - origin;
            sum += value;
            squares += value * value;
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
        const double mean = sum / (double)s->pixels;
        const double variance = squares / (double)s->pixels - mean * mean;
        range.variance += (variance > 0 ? variance : 0) / (double)s->channels;
        extent[c] = most - least;
    }
    /* An image of one colour: any scale will do. */
    if (!(range.variance > 0))
        range.variance = 1;
    /* A channel that is constant still has the width of what counts as equal. */
    for (size_t c = 0; c < s->channels; c++)
        range.log_volume += log(extent[c] + sqrt(VARIANCE_MIN_SHARE * range.variance));
    return range;
}

/* Gather the colours of one label into `colours`, which has room for all. */
static size_t gather(const coloured_scribbles *s, size_t label, float *colours) {
    size_t count = 0;
    for (size_t pixel = 0; pixel < s->pixels; pixel++)
        if (s->labels[pixel] == (int32_t)label) {
            for (size_t c = 0; c < s->channels; c++)
                colours[count * s->channels + c] = s->colours[pixel * s->channels + c];
            count++;
        }
    return count;
}

static size_t scribbled_pixels(const coloured_scribbles *s) {
    size_t count = 0;
    for (size_t pixel = 0; pixel < s->pixels; pixel++)
        count += s->labels[pixel] >= 0;
    return count;
}

static bool fit_labels(const coloured_scribbles *s, const colour_range *range,
                       gaussian_mixture *mixtures) {
    mixture_settings settings = mixture_defaults();
    settings.variance_min = VARIANCE_MIN_SHARE * range->variance;
    float *colours = malloc(scribbled_pixels(s) * s->channels * sizeof *colours);
    bool done = colours != NULL;
    for (size_t label = 0; done && label < s->label_count; label++)
        done = mixture_fit(&mixtures[label], colours, gather(s, label, colours), s->channels,
                           &settings);
    free(colours);
    return done;
}

/* ln(exp(a) + exp(b)) */
static double log_sum(double a, double b) {
    const double larger = a > b ? a : b;
    return larger + log1p(exp((a > b ? b : a) - larger));
}

static void energies_of_pixel(const coloured_scribbles *s, const colour_range *range,
                              const gaussian_mixture *mixtures, size_t pixel, double *log_density,
                              float *energies) {
    const float *colour = s->colours + pixel * s->channels;
    double total = -HUGE_VAL;
    for (size_t label = 0; label < s->label_count; label++) {
        log_density[label] =
            log_sum(log(1 - OUTLIER_SHARE) + mixture_log_density(&mixtures[label], colour),
                    log(OUTLIER_SHARE) - range->log_volume);
        total = label == 0 ? log_density[0] : log_sum(total, log_density[label]);
    }
    for (size_t label = 0; label < s->label_count; label++)
        energies[label] = s->labels[pixel] < 0                 ? (float)(total - log_density[label])
                          : s->labels[pixel] == (int32_t)label ? 0
                                                               : SCRIBBLE_ENERGY;
}

bool colour_model_energies(const coloured_scribbles *s, float *energies) {
    const colour_range range = measure_colours(s);
    gaussian_mixture *mixtures = calloc(s->label_count, sizeof *mixtures);
    double *log_density = calloc(s->label_count, sizeof *log_density);
    const bool done = mixtures && log_density && fit_labels(s, &range, mixtures);
    for (size_t pixel = 0; done && pixel < s->pixels; pixel++)
        energies_of_pixel(s, &range, mixtures, pixel, log_density,
                          energies + pixel * s->label_count);
    free(mixtures);
    free(log_density);
    return done;
}
