/* Unary energies from label maps.
 *
 * A label map that is right with the probability P gives
 *
 *   phi = -ln P at the label of the map,  -ln((1 - P) / (M - 1)) at the M - 1 others,
 *   phi = ln M for all labels where the map is unknown.
 *
 * With a confidence c < 1 the probability is 1/M + c (P - 1/M). */
#include "prior/map.h"
#include "io/label_map.h"
#include "prior/carry.h"
#include "prior/confidence.h"
#include "prior/traits.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

/* Allocate energies, the labels of a pixel next to each other. */
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

/* ---- energies with a confidence ------------------------------------------------------------- */

static void energies_of_pixel(int32_t mine, double probability, bool is_sure, size_t labels,
                              float *energies) {
    const float chosen = is_sure ? 0 : (float)-log(probability);
    const float other = is_sure ? (float)DCRF_MASK_BINDING_ENERGY
                                : (float)-log((1 - probability) / ((double)labels - 1));
    for (size_t label = 0; label < labels; label++)
        energies[label] = (int32_t)label == mine ? chosen : other;
}

void prior_energies(const unary_options *options, const unary_facts *facts, const int32_t *numbers,
                    const float *confidence, size_t pixels, size_t labels, float *energies) {
    const double given = options->confidence > 0 ? options->confidence : USUAL_CONFIDENCE;
    const double chance = 1 / (double)labels;
    for (size_t pixel = 0; pixel < pixels; pixel++) {
        const int32_t mine = prior_label(options, facts, numbers[pixel]);
        const double sure =
            confidence ? (double)confidence[pixel] : prior_sureness(facts, numbers[pixel]);
        energies_of_pixel(mine, mine < 0 ? chance : chance + sure * (given - chance),
                          confidence && sure >= 1 && mine >= 0, labels, energies + pixel * labels);
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool interpret(const unary_options *options, const cli_image *image,
                      dcrf_workspace *workspace, bool is_rounded, prior_map *map,
                      unary_facts *facts, cli_problem *problem) {
    prior_traits traits = {.numbers = {.is_rounded = is_rounded}};
    prior_inspect(options, image, map->numbers, 0, image_pixels(image), &traits);
    return prior_resolve(options, image, &traits, &map->labels, facts, problem) &&
           unary_check_room(image, map->labels, options->prior_file, problem) &&
           prior_confidence_read(options, image, &map->confidence, problem) &&
           (!image_is_video(image) ||
            prior_carry_on(options, image, workspace, facts, map, problem));
}

bool prior_map_read(const unary_options *options, const cli_image *image, dcrf_workspace *workspace,
                    prior_map *map, unary_facts *facts, cli_problem *problem) {
    bool is_rounded;
    *map = (prior_map){0};
    if (options->prior_unknown.kind == UNKNOWN_COLOUR)
        return bad_input(problem, "--prior-unknown", "a label map has numbers, not colours");
    const bool done =
        label_map_read_mask(options->prior_file, image, &map->numbers, &is_rounded, problem) &&
        interpret(options, image, workspace, is_rounded, map, facts, problem);
    if (done)
        prior_keep_palette(options->prior_file, facts);
    else
        prior_map_free(map);
    return done;
}

void prior_keep_palette(const char *file, unary_facts *facts) {
    file_bytes bytes;
    cli_problem ignored;
    if (!file_is_plain(file) || !file_map(file, &bytes, &ignored))
        return;
    facts->palette_count = picture_palette(bytes.data, bytes.size, facts->palette);
    file_free(&bytes);
}

void prior_map_free(prior_map *map) {
    free(map->numbers);
    free(map->refined);
    free(map->confidence);
    *map = (prior_map){0};
}

bool unary_from_prior(const unary_options *options, const cli_image *image, pixel_array *unary,
                      unary_facts *facts, cli_problem *problem) {
    prior_map map;
    if (!prior_map_read(options, image, NULL, &map, facts, problem))
        return false;
    const bool done = allocate_energies(image, map.labels, options->prior_file, unary, problem);
    if (done)
        prior_energies(options, facts, map.numbers, map.confidence, image_pixels(image), map.labels,
                       unary->own_values);
    prior_map_free(&map);
    return done;
}
