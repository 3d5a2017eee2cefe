/* Unary energies from maps.
 *
 * A label map that is right with the probability P gives
 *
 *   phi = -ln P at the label of the map,  -ln((1 - P) / (M - 1)) at the M - 1 others,
 *   phi = ln M for all labels where the map does not know.
 *
 * Scribbles give the energies of a model of colours (colour_model.c). */
#include "colour_model.h"
#include "gaussian_mixture.h"
#include "io/label_map.h"
#include "unary.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

#define VOID_NUMBER 255 /* what most label pictures call unknown */
#define WHITE 0xffffff
/* Strokes in more colours were smoothed, or are a photograph. */
#define SCRIBBLE_LABELS_MAX 64

static size_t occurrences(const int32_t *numbers, size_t count, int32_t wanted) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += numbers[i] == wanted;
    return found;
}

/* Room for energies, the labels of a pixel next to each other. */
static bool allocate_energies(const cli_image *image, size_t labels, const char *file,
                              pixel_array *unary, cli_problem *problem) {
    const dcrf_grid grid = image_grid(image);
    unary->own_values = calloc(image_pixels(image), labels * sizeof *unary->own_values);
    if (!unary->own_values)
        return out_of_memory(problem, file);
    unary->values = unary->own_values;
    unary->view = dcrf_view_interleaved(unary->values, DCRF_F32, &grid, labels);
    unary->channel_axis = true;
    unary->axes = image_shape(image, unary->shape);
    unary->shape[unary->axes++] = labels;
    return true;
}

/* ---- a label map with a confidence ---------------------------------------------------------- */

/* Make what is unknown -1, and count the labels. */
static bool prepare_prior(const unary_options *options, const cli_image *image, int32_t *numbers,
                          size_t *labels, unary_facts *facts, cli_problem *problem) {
    const char *file = options->prior_file;
    const unknown_value unknown = options->prior_unknown;
    char text[IMAGE_TEXT_BYTES];
    int32_t largest = -1;
    if (unknown.kind == UNKNOWN_COLOUR)
        return bad_input(problem, "--prior-unknown", "a label map has numbers, not colours");
    facts->is_mask = unknown.kind == UNKNOWN_AUTO && options->label_count <= 2 &&
                     map_is_mask(numbers, image_pixels(image));
    if (facts->is_mask)
        map_number_mask(numbers, image_pixels(image));
    for (size_t i = 0; i < image_pixels(image); i++) {
        if ((unknown.kind == UNKNOWN_AUTO && numbers[i] == VOID_NUMBER) ||
            (unknown.kind == UNKNOWN_NUMBER && numbers[i] == unknown.value))
            numbers[i] = -1;
        else if (numbers[i] < 0 || numbers[i] >= DCRF_MAX_LABELS ||
                 (options->label_count && (size_t)numbers[i] >= options->label_count))
            return bad_input(problem, file, "has the label %d at %s; labels run from 0 to %zu",
                             (int)numbers[i], image_place_text(image, i, text),
                             (options->label_count ? options->label_count : DCRF_MAX_LABELS) - 1);
        largest = numbers[i] > largest ? numbers[i] : largest;
    }
    *labels = options->label_count ? options->label_count : (size_t)(largest + 1);
    if (*labels < 2 || *labels > DCRF_MAX_LABELS)
        return bad_input(problem, options->label_count ? "--label-count" : file,
                         "gives %zu labels; 2 to %d are needed%s", *labels, DCRF_MAX_LABELS,
                         options->label_count ? "" : " (see --label-count)");
    if (options->confidence * (double)*labels <= 1)
        return bad_input(problem, "--confidence",
                         "%g is not more than chance among %zu labels; give more than %g",
                         options->confidence, *labels, 1 / (double)*labels);
    return true;
}

static void fill_prior(double confidence, const int32_t *numbers, size_t pixels, size_t labels,
                       float *energies) {
    const float chosen = (float)-log(confidence);
    const float other = (float)-log((1 - confidence) / ((double)labels - 1));
    const float unknown = (float)log((double)labels);
    for (size_t pixel = 0; pixel < pixels; pixel++)
        for (size_t label = 0; label < labels; label++)
            *energies++ = numbers[pixel] < 0                ? unknown
                          : (size_t)numbers[pixel] == label ? chosen
                                                            : other;
}

bool unary_from_prior(const unary_options *options, const cli_image *image, pixel_array *unary,
                      unary_facts *facts, cli_problem *problem) {
    int32_t *numbers;
    size_t labels = 0;
    if (!label_map_read(options->prior_file, image, &numbers, problem))
        return false;
    const bool done = prepare_prior(options, image, numbers, &labels, facts, problem) &&
                      allocate_energies(image, labels, options->prior_file, unary, problem);
    if (done)
        fill_prior(options->confidence, numbers, image_pixels(image), labels, unary->own_values);
    free(numbers);
    return done;
}

/* ---- scribbles ------------------------------------------------------------------------------ */

/* Strokes in three greys, black, white and one between: the most frequent one is where no stroke
 * is, and the darker of the others is label 0. False: these are others. */
static bool labels_from_greys(size_t count, int32_t *numbers, size_t *labels) {
    int32_t grey[3] = {0, -1, VOID_NUMBER};
    size_t pixels[3] = {0}, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] > SCRIBBLE_LABELS_MAX && numbers[i] < VOID_NUMBER && grey[1] < 0)
            grey[1] = numbers[i];
        size_t k = 0;
        while (k < 3 && grey[k] != numbers[i])
            k++;
        if (k == 3)
            return false;
        pixels[k]++;
    }
    if (!pixels[0] || !pixels[1] || !pixels[2])
        return false;
    for (size_t k = 1; k < 3; k++)
        most = pixels[k] > pixels[most] ? k : most;
    for (size_t i = 0; i < count; i++)
        numbers[i] = numbers[i] == grey[most] ? -1 : numbers[i] == grey[most == 0 ? 1 : 0] ? 0 : 1;
    *labels = 2;
    return true;
}

/* The number that means unknown, or -1. */
static int32_t choose_unknown(const unknown_value *unknown, bool colours, const int32_t *numbers,
                              size_t count) {
    const int32_t void_number = colours ? WHITE : VOID_NUMBER;
    if (unknown->kind == UNKNOWN_NONE)
        return -1;
    if (unknown->kind == UNKNOWN_COLOUR)
        return unknown->value;
    if (unknown->kind == UNKNOWN_NUMBER) /* among colours: the grey of this brightness */
        return colours ? (unknown->value & 0xff) * 0x010101 : unknown->value;
    const size_t voids = occurrences(numbers, count, void_number);
    const size_t zeros = occurrences(numbers, count, 0);
    if (voids > 0 && (!colours || voids >= zeros))
        return void_number;
    return zeros > 0 ? 0 : -1;
}

/* Numbers are labels as they stand, or less one where 0 means unknown. */
static bool labels_from_numbers(const char *file, int32_t unknown, size_t count, int32_t *numbers,
                                size_t *labels, cli_problem *problem) {
    const int32_t first = unknown == 0 ? 1 : 0;
    bool used[SCRIBBLE_LABELS_MAX] = {false};
    *labels = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t number = numbers[i];
        if (number == unknown) {
            numbers[i] = -1;
            continue;
        }
        if (number < first || number - first >= SCRIBBLE_LABELS_MAX)
            return bad_input(problem, file,
                             "has strokes with the number %d; number them from %d without gaps, up "
                             "to %d labels (or see --scribble-unknown)",
                             (int)number, (int)first, SCRIBBLE_LABELS_MAX);
        numbers[i] = number - first;
        used[numbers[i]] = true;
        if ((size_t)numbers[i] >= *labels)
            *labels = (size_t)numbers[i] + 1;
    }
    for (size_t label = 0; label < *labels; label++)
        if (!used[label])
            return bad_input(problem, file,
                             "has no stroke with the number %d; number them from %d without gaps "
                             "(or see --scribble-unknown)",
                             (int)label + first, (int)first);
    return true;
}

static int compare_colours(const void *a, const void *b) {
    const int32_t first = *(const int32_t *)a, second = *(const int32_t *)b;
    return (first > second) - (first < second);
}

/* Colours become labels in the order of their red, then green, then blue. */
static bool labels_from_colours(const char *file, int32_t unknown, size_t count, int32_t *numbers,
                                size_t *labels, cli_problem *problem) {
    int32_t colours[SCRIBBLE_LABELS_MAX];
    *labels = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < *labels && colours[k] != numbers[i])
            k++;
        if (numbers[i] == unknown || k < *labels)
            continue;
        if (*labels == SCRIBBLE_LABELS_MAX)
            return bad_input(problem, file,
                             "has more than %d colours; draw strokes without smoothing, on black "
                             "or white",
                             SCRIBBLE_LABELS_MAX);
        colours[(*labels)++] = numbers[i];
    }
    qsort(colours, *labels, sizeof *colours, compare_colours);
    for (size_t i = 0; i < count; i++) {
        const int32_t *found =
            bsearch(&numbers[i], colours, *labels, sizeof *colours, compare_colours);
        numbers[i] = found ? (int32_t)(found - colours) : -1;
    }
    return true;
}

static bool prepare_scribbles(const unary_options *options, size_t count, bool colours,
                              int32_t *numbers, size_t *labels, cli_problem *problem) {
    const char *file = options->scribbles_file;
    if (options->scribble_unknown.kind == UNKNOWN_COLOUR && !colours)
        return bad_input(problem, "--scribble-unknown", "%s has numbers, not colours", file);
    const bool may_choose = options->scribble_unknown.kind == UNKNOWN_AUTO && !colours;
    if (may_choose && labels_from_greys(count, numbers, labels))
        return true;
    if (may_choose && map_is_mask(numbers, count))
        return bad_input(problem, file,
                         "is a mask of 0 and 255, which has no strokes of two labels and a rest; "
                         "give it with --labels-prior, or draw the second label in another grey");
    const int32_t unknown = choose_unknown(&options->scribble_unknown, colours, numbers, count);
    if (!(colours ? labels_from_colours : labels_from_numbers)(file, unknown, count, numbers,
                                                               labels, problem))
        return false;
    return *labels >= 2 ||
           bad_input(problem, file,
                     "has strokes of %s; two are needed (see --scribble-unknown for what counts "
                     "as one)",
                     *labels ? "only one label" : "no label");
}

static bool energies_from_scribbles(const char *file, const cli_image *image,
                                    const int32_t *numbers, size_t labels, pixel_array *unary,
                                    cli_problem *problem) {
    const coloured_scribbles scribbles = {image->colours, image->channels, image_pixels(image),
                                          numbers, labels};
    if (image->channels > MIXTURE_DIMENSION_MAX)
        return bad_input(problem, file, "the image has %zu channels; scribbles can use %d",
                         image->channels, MIXTURE_DIMENSION_MAX);
    if (!allocate_energies(image, labels, file, unary, problem))
        return false;
    return colour_model_energies(&scribbles, unary->own_values) || out_of_memory(problem, file);
}

bool unary_from_scribbles(const unary_options *options, const cli_image *image, pixel_array *unary,
                          cli_problem *problem) {
    const char *file = options->scribbles_file;
    int32_t *numbers;
    bool colours;
    size_t labels = 0;
    if (!label_map_read_colours(file, image, &numbers, &colours, problem))
        return false;
    const bool done =
        prepare_scribbles(options, image_pixels(image), colours, numbers, &labels, problem) &&
        energies_from_scribbles(file, image, numbers, labels, unary, problem);
    free(numbers);
    if (!done)
        pixel_array_free(unary);
    return done;
}
