/* Unary energies from label maps.
 *
 * A label map that is right with the probability P gives
 *
 *   phi = -ln P at the label of the map,  -ln((1 - P) / (M - 1)) at the M - 1 others,
 *   phi = ln M for all labels where the map does not know.
 */
#include "io/label_map.h"
#include "unary.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

#define VOID_NUMBER 255 /* what most label pictures call unknown */

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
