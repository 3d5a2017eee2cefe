/* Unary energies from label maps.
 *
 * A label map that is right with the probability P gives
 *
 *   phi = -ln P at the label of the map,  -ln((1 - P) / (M - 1)) at the M - 1 others,
 *   phi = ln M for all labels where the map does not know.
 */
#include "io/label_map.h"
#include "model/unary.h"

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

static bool is_unknown(const unary_options *options, int32_t number) {
    const unknown_value unknown = options->prior_unknown;
    return (unknown.kind == UNKNOWN_AUTO && number == VOID_NUMBER) ||
           (unknown.kind == UNKNOWN_NUMBER && number == unknown.value);
}

bool prior_look_at(const unary_options *options, const cli_image *image, const int32_t *numbers,
                   size_t first, size_t count, prior_look *look, cli_problem *problem) {
    char text[IMAGE_TEXT_BYTES];
    for (size_t i = 0; i < count; i++) {
        const int32_t number = numbers[i];
        look->has_zero = look->has_zero || number == 0;
        look->has_void = look->has_void || number == VOID_NUMBER;
        look->has_others = look->has_others || (number != 0 && number != VOID_NUMBER);
        if (is_unknown(options, number))
            continue;
        if ((number < 0 || number >= DCRF_MAX_LABELS ||
             (options->label_count && (size_t)number >= options->label_count)))
            return bad_input(problem, options->prior_file,
                             "has the label %d at %s; labels run from 0 to %zu", (int)number,
                             image_place_text(image, first + i, text),
                             (options->label_count ? options->label_count : DCRF_MAX_LABELS) - 1);
        look->end = number >= look->end ? number + 1 : look->end;
    }
    return true;
}

bool prior_settle(const unary_options *options, const prior_look *look, size_t *labels,
                  unary_facts *facts, cli_problem *problem) {
    const char *file = options->prior_file;
    facts->is_mask = options->prior_unknown.kind == UNKNOWN_AUTO && options->label_count <= 2 &&
                     look->has_zero && look->has_void && !look->has_others;
    *labels = options->label_count ? options->label_count : facts->is_mask ? 2 : (size_t)look->end;
    if (*labels < 2 || *labels > DCRF_MAX_LABELS)
        return bad_input(problem, options->label_count ? "--label-count" : file,
                         "gives %zu labels; 2 to %d are needed%s", *labels, DCRF_MAX_LABELS,
                         options->label_count ? "" : " (see --label-count)");
    if (options->confidence > 0 && options->confidence * (double)*labels <= 1)
        return bad_input(problem, "--confidence",
                         "%g is not more than chance among %zu labels; give more than %g",
                         options->confidence, *labels, 1 / (double)*labels);
    return true;
}

void prior_energies(const unary_options *options, const unary_facts *facts, const int32_t *numbers,
                    size_t pixels, size_t labels, float *energies) {
    const double confidence = options->confidence > 0 ? options->confidence : USUAL_CONFIDENCE;
    const float chosen = (float)-log(confidence);
    const float other = (float)-log((1 - confidence) / ((double)labels - 1));
    const float unknown = (float)log((double)labels);
    for (size_t pixel = 0; pixel < pixels; pixel++) {
        const bool known = facts->is_mask || !is_unknown(options, numbers[pixel]);
        const size_t mine = facts->is_mask ? numbers[pixel] == VOID_NUMBER : (size_t)numbers[pixel];
        for (size_t label = 0; label < labels; label++)
            *energies++ = !known ? unknown : label == mine ? chosen : other;
    }
}

static bool read_numbers(const unary_options *options, const cli_image *image, int32_t **numbers,
                         size_t *labels, unary_facts *facts, cli_problem *problem) {
    prior_look look = {0};
    if (options->prior_unknown.kind == UNKNOWN_COLOUR)
        return bad_input(problem, "--prior-unknown", "a label map has numbers, not colours");
    if (!label_map_read(options->prior_file, image, numbers, problem))
        return false;
    const bool done =
        prior_look_at(options, image, *numbers, 0, image_pixels(image), &look, problem) &&
        prior_settle(options, &look, labels, facts, problem);
    if (!done)
        free(*numbers);
    return done;
}

bool prior_read(const unary_options *options, const cli_image *image, int32_t **map, size_t *labels,
                unary_facts *facts, cli_problem *problem) {
    if (!read_numbers(options, image, map, labels, facts, problem))
        return false;
    for (size_t i = 0; i < image_pixels(image); i++)
        (*map)[i] = facts->is_mask                   ? (*map)[i] == VOID_NUMBER
                    : is_unknown(options, (*map)[i]) ? -1
                                                     : (*map)[i];
    return true;
}

bool unary_from_prior(const unary_options *options, const cli_image *image, pixel_array *unary,
                      unary_facts *facts, cli_problem *problem) {
    int32_t *numbers;
    size_t labels = 0;
    if (!read_numbers(options, image, &numbers, &labels, facts, problem))
        return false;
    const bool done = allocate_energies(image, labels, options->prior_file, unary, problem);
    if (done)
        prior_energies(options, facts, numbers, image_pixels(image), labels, unary->own_values);
    free(numbers);
    return done;
}
