/* Unary energies from arrays. With x the stored value times the scale,
 *
 *   energies        phi = x
 *   probabilities   phi = -ln max(x, PROBABILITY_MIN)
 *   logits          phi = -ln softmax(x) = ln sum_j exp(x_j) - x_i */
#include "unary.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A probability that was rounded to zero must not forbid a label for good: -ln 1e-6 is 13.8. */
#define PROBABILITY_MIN 1e-6
/* Rounding in half precision. */
#define PROBABILITY_MAX 1.001

_Static_assert(LAYOUT_AUTO == 0 && LAYOUT_HWC == 1 && LAYOUT_CHW == 2, "auto|hwc|chw");
_Static_assert(UNARY_ENERGIES == 0 && UNARY_PROBABILITIES == 1 && UNARY_LOGITS == 2,
               "energies|probabilities|logits");

/* ---- options -------------------------------------------------------------------------------- */

static bool parse_confidence(const cli_option *option, const char *text, void *value,
                             cli_problem *problem) {
    double number;
    if (!parse_number_list(text, &number, 1) || !(number > 0) || !(number < 1))
        return bad_input(problem, "--confidence", "'%s' is not a number between 0 and 1", text);
    (void)option;
    *(double *)value = number;
    return true;
}

static bool parse_hexadecimal_colour(const char *text, int32_t *value) {
    if (text[0] != '#' || strlen(text) != 7 || strspn(text + 1, "0123456789abcdefABCDEF") != 6)
        return false;
    *value = (int32_t)strtol(text + 1, NULL, 16);
    return true;
}

static bool parse_unknown(const cli_option *option, const char *text, void *value,
                          cli_problem *problem) {
    unknown_value *unknown = value;
    char subject[32];
    double number;
    unknown->value = 0;
    if (strcmp(text, "auto") == 0) {
        unknown->kind = UNKNOWN_AUTO;
    } else if (strcmp(text, "none") == 0) {
        unknown->kind = UNKNOWN_NONE;
    } else if (parse_hexadecimal_colour(text, &unknown->value)) {
        unknown->kind = UNKNOWN_COLOUR;
    } else if (parse_number_list(text, &number, 1) && fabs(number) <= INT32_MAX &&
               number == floor(number)) {
        unknown->kind = UNKNOWN_NUMBER;
        unknown->value = (int32_t)number;
    } else {
        snprintf(subject, sizeof subject, "--%s", option->name);
        return bad_input(problem, subject, "'%s' is not one of %s", text, option->form);
    }
    return true;
}

const cli_option unary_option_table[] = {
    {"unary", 0, "FILE", NULL, false, parse_text, offsetof(unary_options, array_file),
     "a .npy with one number a pixel and label: (H, W, labels) or (labels, H, W); for volumes also "
     "a NIfTI with the labels on the fourth axis"},
    {"unary-kind", 0, "energies|probabilities|logits", "energies", false, parse_choice,
     offsetof(unary_options, kind),
     "what the numbers are: energies (low is likely), probabilities p (-ln p, p at least 1e-6), or "
     "logits (-ln softmax)"},
    {"unary-scale", 0, "S", NULL, false, parse_positive_number, offsetof(unary_options, scale),
     "numbers count times S; needed where the file holds integers, for example 0.05 if energies "
     "were stored times 20; otherwise 1"},
    {"layout", 0, "auto|hwc|chw", "auto", false, parse_choice, offsetof(unary_options, layout),
     "order of the axes where the shape fits both"},
    {"labels-prior", 0, "FILE", NULL, false, parse_text, offsetof(unary_options, prior_file),
     "instead of --unary: a label map that is right with the probability of --confidence"},
    {"confidence", 0, "P", "0.7", false, parse_confidence, offsetof(unary_options, confidence),
     "the map's label costs -ln P, any other -ln((1 - P) / (labels - 1))"},
    {"label-count", 0, "M", "0", false, parse_count, offsetof(unary_options, label_count),
     "labels of the model with --labels-prior; 0: the largest in the map and one more"},
    {"prior-unknown", 0, "auto|none|VALUE", "auto", false, parse_unknown,
     offsetof(unary_options, prior_unknown),
     "the number in the map where all labels are equally likely; auto: 255 where it occurs"},
    {"scribbles", 0, "FILE", NULL, false, parse_text, offsetof(unary_options, scribbles_file),
     "instead of --unary: strokes in colours or numbers on a map; a mixture of Gaussians learns "
     "the colours under each label's strokes, and strokes keep their label"},
    {"scribble-unknown", 0, "auto|none|VALUE|#RRGGBB", "auto", false, parse_unknown,
     offsetof(unary_options, scribble_unknown),
     "where there is no stroke; auto: 255 where it occurs, else 0; in colours the more frequent of "
     "black and white"},
    {0},
};

bool unary_check_options(const unary_options *options, cli_problem *problem) {
    const int given = (options->array_file != NULL) + (options->prior_file != NULL) +
                      (options->scribbles_file != NULL);
    if (given == 1)
        return true;
    return bad_input(problem, "--unary",
                     given ? "give only one of --unary, --labels-prior and --scribbles"
                           : "is missing; give one of --unary, --labels-prior and --scribbles");
}

const char *unary_file(const unary_options *options) {
    return options->array_file   ? options->array_file
           : options->prior_file ? options->prior_file
                                 : options->scribbles_file;
}

/* ---- arrays --------------------------------------------------------------------------------- */

static bool check_array(const unary_options *options, const pixel_array *unary,
                        cli_problem *problem) {
    if (unary->integers && options->scale == 0)
        return bad_input(problem, options->array_file,
                         "holds integers; say with --unary-scale what one step is worth (0.05 if "
                         "the energies were stored times 20)");
    if (!unary->channel_axis)
        return bad_input(problem, options->array_file,
                         "has only %s axes; unary energies have a %s one, of the labels",
                         unary->axes == 2 ? "two" : "three", unary->axes == 2 ? "third" : "fourth");
    if (unary->view.channels > DCRF_MAX_LABELS)
        return bad_input(problem, options->array_file, "has %zu labels; %d is the most",
                         unary->view.channels, DCRF_MAX_LABELS);
    return true;
}

/* Where the numbers of a pixel lie: the first, and the step to the next, in floats. */
typedef struct label_row {
    size_t first;
    size_t step;
} label_row;

static label_row row_of(const pixel_array *unary, size_t pixel) {
    return (label_row){pixel * (size_t)unary->view.stride[0] / sizeof(float),
                       (size_t)unary->view.channel_stride / sizeof(float)};
}

static bool probabilities_to_energies(const unary_options *options, const cli_image *image,
                                      const pixel_array *unary, float *values,
                                      cli_problem *problem) {
    const size_t labels = unary->view.channels;
    char text[IMAGE_TEXT_BYTES];
    for (size_t pixel = 0; pixel < image_pixels(image); pixel++) {
        const label_row row = row_of(unary, pixel);
        for (size_t label = 0; label < labels; label++) {
            float *value = &values[row.first + label * row.step];
            const double probability = (double)*value;
            if (!(probability >= 0 && probability <= PROBABILITY_MAX))
                return bad_input(problem, options->array_file,
                                 "holds %g at %s, label %zu, which is not a probability; see "
                                 "--unary-kind and --unary-scale",
                                 probability, image_place_text(image, pixel, text), label);
            *value = (float)-log(fmin(fmax(probability, PROBABILITY_MIN), 1));
        }
    }
    return true;
}

static void logits_to_energies(const cli_image *image, const pixel_array *unary, float *values) {
    const size_t labels = unary->view.channels;
    for (size_t pixel = 0; pixel < image_pixels(image); pixel++) {
        const label_row row = row_of(unary, pixel);
        double largest = (double)values[row.first], sum = 0;
        for (size_t label = 1; label < labels; label++)
            largest = fmax(largest, (double)values[row.first + label * row.step]);
        for (size_t label = 0; label < labels; label++)
            sum += exp((double)values[row.first + label * row.step] - largest);
        for (size_t label = 0; label < labels; label++) {
            float *value = &values[row.first + label * row.step];
            *value = (float)(log(sum) + largest - (double)*value);
        }
    }
}

static bool convert_array(const unary_options *options, const cli_image *image, pixel_array *unary,
                          cli_problem *problem) {
    if (!check_array(options, unary, problem))
        return false;
    if (options->scale == 0 && options->kind == UNARY_ENERGIES)
        return true;
    float *values = pixel_array_own(unary);
    if (!values)
        return out_of_memory(problem, options->array_file);
    const size_t count = pixel_array_count(unary);
    for (size_t i = 0; options->scale != 0 && i < count; i++)
        values[i] = (float)((double)values[i] * options->scale);
    if (options->kind == UNARY_PROBABILITIES)
        return probabilities_to_energies(options, image, unary, values, problem);
    if (options->kind == UNARY_LOGITS)
        logits_to_energies(image, unary, values);
    return true;
}

static bool unary_from_array(const unary_options *options, const cli_image *image,
                             pixel_array *unary, cli_problem *problem) {
    if (!pixel_array_read(options->array_file, image, (array_layout)options->layout, unary,
                          problem))
        return false;
    const bool done = convert_array(options, image, unary, problem);
    if (!done)
        pixel_array_free(unary);
    return done;
}

bool unary_read(const unary_options *options, const cli_image *image, pixel_array *unary,
                cli_problem *problem) {
    *unary = (pixel_array){0};
    return options->array_file   ? unary_from_array(options, image, unary, problem)
           : options->prior_file ? unary_from_prior(options, image, unary, problem)
                                 : unary_from_scribbles(options, image, unary, problem);
}
