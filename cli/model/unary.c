/* Unary energies from arrays of energies, probabilities or logits (see dcrf/unary.h for the
 * conversion), at the size of the image or smaller. */
#include "model/unary.h"

#include "io/frames.h"
#include "io/json.h"
#include "io/label_map.h"
#include "io/room.h"
#include "io/video.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LAYOUT_AUTO == 0 && LAYOUT_HWC == 1 && LAYOUT_CHW == 2, "auto|hwc|chw");
_Static_assert(DCRF_UNARY_AUTO == 0 && DCRF_UNARY_ENERGIES == 1 && DCRF_UNARY_PROBABILITIES == 2 &&
                   DCRF_UNARY_LOGITS == 3,
               "auto|energies|probabilities|logits");

/* ---- options -------------------------------------------------------------------------------- */

static bool parse_confidence(const cli_option *option, const char *text, void *value,
                             cli_problem *problem) {
    double number = 0;
    (void)option;
    if (strcmp(text, "auto") != 0 &&
        (!parse_number_list(text, &number, 1) || !(number > 0) || !(number < 1)))
        return bad_input(problem, "--confidence", "'%s' is not a number between 0 and 1", text);
    *(double *)value = number;
    return true;
}

static bool parse_hexadecimal_colour(const char *text, int32_t *value) {
    if (text[0] != '#' || strlen(text) != 7 || strspn(text + 1, "0123456789abcdefABCDEF") != 6)
        return false;
    *value = (int32_t)strtol(text + 1, NULL, 16);
    return true;
}

bool parse_unknown(const cli_option *option, const char *text, void *value, cli_problem *problem) {
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
    {"unary", 0, "FILE", NULL, false, parse_input, offsetof(unary_options, array_file),
     "a .npy with one number per pixel and label: (H, W, labels) or (labels, H, W), or smaller "
     "with the same proportions, as many networks return it; for volumes also a NIfTI with the "
     "labels on the fourth axis"},
    {"unary-kind", 0, "auto|energies|probabilities|logits", "auto", false, parse_choice,
     offsetof(unary_options, kind),
     "what the numbers are: energies (low is likely), probabilities p (-ln p, p at least 1e-6), or "
     "logits (-ln softmax); auto: recognized, if unambiguous"},
    {"unary-scale", 0, "S", NULL, false, parse_positive_number, offsetof(unary_options, scale),
     "multiply the numbers by S; required for integers, for example 0.05 if energies were stored "
     "times 20; otherwise 1"},
    {"layout", 0, "auto|hwc|chw", "auto", false, parse_choice, offsetof(unary_options, layout),
     "order of the axes if the shape is ambiguous"},
    {"labels-prior", 0, "FILE", NULL, false, parse_input, offsetof(unary_options, prior_file),
     "instead of --unary: a rough label map; energies follow from the distance to its borders and "
     "from the colours of its labels, or from --confidence"},
    {"confidence", 0, "auto|P", "auto", false, parse_confidence,
     offsetof(unary_options, confidence),
     "P: the map is right with this probability at every pixel, regardless of its surroundings: "
     "its label costs -ln P, any other -ln((1 - P) / (labels - 1)); auto: more certain away from "
     "its borders"},
    {"label-count", 0, "M", "0", false, parse_count, offsetof(unary_options, label_count),
     "number of labels with --labels-prior; 0: the largest label in the map plus one"},
    {"prior-unknown", 0, "auto|none|VALUE", "auto", false, parse_unknown,
     offsetof(unary_options, prior_unknown),
     "the number in the map that means unknown, where all labels are equally likely; auto: 255 if "
     "it occurs"},
    {"prior-confidence", 0, "FILE", NULL, false, parse_input,
     offsetof(unary_options, prior_confidence_file),
     "how certain the map is at each pixel: a grey picture (black: not at all, white: as certain "
     "as without this option) or a .npy from 0 to 1"},
    {"prior-sure", 0, "FILE", NULL, false, parse_input, offsetof(unary_options, prior_sure_file),
     "where the map is known to be right: pixels that are not 0 keep their labels"},
    {"scribbles", 0, "FILE", NULL, false, parse_input, offsetof(unary_options, scribbles_file),
     "instead of --unary: strokes in colours or numbers on a map, which keep their labels; "
     "energies follow from the colours under each label's strokes and the distances to them"},
    {"scribble-unknown", 0, "auto|none|VALUE|#RRGGBB", "auto", false, parse_unknown,
     offsetof(unary_options, scribble_unknown),
     "the value that means no stroke; auto: 255 if it occurs, otherwise 0; among colours the more "
     "frequent of black and white"},
    {"classes", 0, "FILE", NULL, false, parse_input, offsetof(unary_options, classes_file),
     "names of the labels, one per line, for legends, summaries and JSON; a palette may have them "
     "too"},
    {0},
};

bool unary_check_options(const unary_options *options, cli_problem *problem) {
    const int given = (options->array_file != NULL) + (options->prior_file != NULL) +
                      (options->scribbles_file != NULL);
    if (given == 1 && !options->prior_file &&
        (options->prior_confidence_file || options->prior_sure_file))
        return bad_input(problem,
                         options->prior_confidence_file ? "--prior-confidence" : "--prior-sure",
                         "says how sure a map is; give that with --labels-prior");
    if (given == 1)
        return true;
    return bad_input(problem, "--unary",
                     given ? "give only one of --unary, --labels-prior and --scribbles"
                           : "is missing; give one of --unary, --labels-prior and --scribbles");
}

const char *unary_option(const unary_options *options) {
    return options->array_file ? "--unary" : options->prior_file ? "--labels-prior" : "--scribbles";
}

const char *unary_file(const unary_options *options) {
    return options->array_file   ? options->array_file
           : options->prior_file ? options->prior_file
                                 : options->scribbles_file;
}

/* ---- arrays --------------------------------------------------------------------------------- */

/* Suggest which options (or which entry of a data set's description) to use instead. */
static bool advise(const unary_options *options, const dcrf_unary_traits *traits,
                   const dcrf_error *error, cli_problem *problem) {
    const char *kind = dcrf_unary_kind_name(traits->kind);
    char scale[64] = "";
    if (options->in_dataset) {
        if (traits->scale != 1)
            snprintf(scale, sizeof scale, ", \"energy_per_unit\": %.9g", traits->scale);
        return traits->is_certain ? bad_input(problem, options->array_file,
                                              "%s; write \"unary\": {\"kind\": \"%s\"%s} into "
                                              "dataset.json",
                                              error->message, kind, scale)
                                  : bad_input(problem, options->array_file,
                                              "%s; write \"unary\": {\"kind\": ...} into "
                                              "dataset.json",
                                              error->message);
    }
    if (traits->scale != 1)
        snprintf(scale, sizeof scale, " --unary-scale %.9g", traits->scale);
    if (traits->is_certain)
        return bad_input(problem, options->array_file, "%s; add --unary-kind %s%s", error->message,
                         kind, scale);
    return bad_input(problem, options->array_file, "%s; add --unary-kind %s or --unary-kind %s",
                     error->message, traits->smallest < 0 ? "logits" : "probabilities", "energies");
}

/* Integers encode something else; the user has to say what. */
static bool advise_integers(const unary_options *options, const dcrf_unary_traits *traits,
                            cli_problem *problem) {
    if (traits->is_certain && traits->scale != 1)
        return bad_input(problem, options->array_file,
                         "holds integers that look like %s times %.6g (%s); add --unary-kind %s "
                         "--unary-scale %.9g",
                         dcrf_unary_kind_name(traits->kind), 1 / traits->scale, traits->reason,
                         dcrf_unary_kind_name(traits->kind), traits->scale);
    if (traits->smallest >= 0 && traits->largest <= 1)
        return bad_input(problem, options->array_file,
                         "holds only zeros and ones; if a one marks the label, add --unary-kind "
                         "probabilities --unary-scale 1, or give the labels with --labels-prior "
                         "and a --confidence");
    return bad_input(problem, options->array_file,
                     "holds integers; say with --unary-scale what one step is worth (0.05 if the "
                     "energies were stored times 20), and with --unary-kind what they are");
}

bool unary_check_array(const unary_options *options, const pixel_array *unary,
                       cli_problem *problem) {
    if (!unary->channel_axis)
        return bad_input(problem, options->array_file,
                         "has only %s axes; unary energies have a %s one, of the labels",
                         unary->axes == 2 ? "two" : "three", unary->axes == 2 ? "third" : "fourth");
    if (unary->view.channels == 1)
        return bad_input(problem, options->array_file,
                         "has one label; tiles need both, that of the background first");
    if (unary->view.channels > DCRF_MAX_LABELS)
        return bad_input(problem, options->array_file, "has %zu labels; %d is the most",
                         unary->view.channels, DCRF_MAX_LABELS);
    return true;
}

bool unary_resolve_kind(const unary_options *options, const pixel_array *unary,
                        dcrf_unary_kind *kind, unary_facts *facts, cli_problem *problem) {
    dcrf_unary_kind claimed = (dcrf_unary_kind)options->kind;
    dcrf_unary_traits traits;
    dcrf_error error;
    if (dcrf_unary_inspect(&unary->view, &unary->grid, options->scale, &traits, &error) < 0)
        return library_problem(problem, options->array_file, &error);
    if (unary->integers && options->scale == 0)
        return advise_integers(options, &traits, problem);
    /* Arrays of data sets are energies unless stated or recognized otherwise. */
    if (options->in_dataset && claimed == DCRF_UNARY_AUTO && traits.kind == DCRF_UNARY_AUTO)
        claimed = DCRF_UNARY_ENERGIES;
    if (dcrf_unary_resolve_kind(&traits, claimed, kind, &error) < 0)
        return advise(options, &traits, &error, problem);
    facts->kind = *kind;
    facts->is_recognized = claimed == DCRF_UNARY_AUTO;
    memcpy(facts->reason, traits.reason, sizeof facts->reason);
    return true;
}

/* What the command holds per pixel of a whole image besides the library: colours, labels,
 * marginals of the chosen labels. */
#define COMMAND_BYTES_PER_PIXEL 40.0

double bytes_of_whole(dcrf_method method, double pixels, size_t labels, size_t channels,
                      double vertices) {
    return pixels *
           (COMMAND_BYTES_PER_PIXEL + dcrf_bytes_per_variable(method, labels, channels, vertices));
}

/* Less than this is not checked against the available memory. */
#define ROOM_ALWAYS_BYTES (64.0 * 1024 * 1024)

bool unary_check_room(const cli_image *image, size_t labels, const char *file,
                      cli_problem *problem) {
    const double bytes = bytes_of_whole(DCRF_METHOD_MF, (double)image_pixels(image), labels,
                                        image->channels, USUAL_VERTICES);
    char text[IMAGE_TEXT_BYTES];
    const double room = bytes > ROOM_ALWAYS_BYTES ? (double)room_bytes() : bytes;
    return bytes <= room ||
           failure(problem, file,
                   "%zu labels over %s take about %.0f MiB, and there are %.0f; --tile 2000 solves "
                   "the image piece by piece",
                   labels, image_size_text(image, text), ceil(bytes / 1048576),
                   floor(room / 1048576));
}

/* Determine what the numbers of a single-label array are. */
static bool resolve_foreground(const unary_options *options, const pixel_array *unary,
                               dcrf_unary_kind *kind, unary_facts *facts, cli_problem *problem) {
    dcrf_unary_traits traits;
    dcrf_error error;
    if (dcrf_unary_inspect(&unary->view, &unary->grid, options->scale, &traits, &error) < 0)
        return library_problem(problem, options->array_file, &error);
    const bool fits = traits.smallest >= 0 && traits.largest <= DCRF_PROBABILITY_MAX;
    *kind = (dcrf_unary_kind)options->kind;
    if (unary->integers && options->scale == 0)
        return bad_input(problem, options->array_file,
                         "has one label, in integers; say with --unary-scale what one step is "
                         "worth (%.9g if 255 is certainly the foreground)",
                         1 / 255.0);
    if (*kind == DCRF_UNARY_ENERGIES)
        return bad_input(problem, options->array_file,
                         "has energies of one label, so that there is nothing to choose; a map of "
                         "the foreground holds probabilities or logits");
    if (*kind == DCRF_UNARY_PROBABILITIES && !fits)
        return bad_input(problem, options->array_file,
                         "has one label, with numbers from %g to %g; probabilities of the "
                         "foreground lie between 0 and 1",
                         traits.smallest, traits.largest);
    facts->is_recognized = *kind == DCRF_UNARY_AUTO;
    if (facts->is_recognized)
        *kind = fits ? DCRF_UNARY_PROBABILITIES : DCRF_UNARY_LOGITS;
    snprintf(facts->reason, sizeof facts->reason, "its numbers lie between %.3g and %.3g",
             traits.smallest, traits.largest);
    facts->kind = *kind;
    facts->is_foreground = true;
    return true;
}

/* A foreground map becomes energies of two labels: a probability p gives -ln(1 - p) and -ln p, a
 * logit x gives ln(1 + e^x) and ln(1 + e^-x). */
static bool convert_foreground(const unary_options *options, const cli_image *image,
                               pixel_array *unary, unary_facts *facts, cli_problem *problem) {
    const dcrf_grid grid = image_grid(image);
    const dcrf_view guide = image_view(image);
    const size_t pixels = image_pixels(image);
    dcrf_unary_kind kind = DCRF_UNARY_AUTO;
    dcrf_error error;
    if (!resolve_foreground(options, unary, &kind, facts, problem))
        return false;
    facts->is_enlarged = memcmp(grid.size, unary->grid.size, sizeof grid.size) != 0;
    memcpy(facts->size, unary->grid.size, sizeof facts->size);
    float *energies = calloc(pixels, 2 * sizeof *energies);
    float *map = calloc(pixels, sizeof *map);
    bool done = energies && map;
    if (!done)
        out_of_memory(problem, options->array_file);
    else if (dcrf_unary_energies(&unary->view, &unary->grid, DCRF_UNARY_ENERGIES,
                                 options->scale > 0 ? options->scale : 1, &grid, &guide, map,
                                 pixels, &error) < 0)
        done = library_problem(problem, options->array_file, &error);
    for (size_t a = 0; done && a < pixels; a++) {
        const double x = (double)map[a];
        for (size_t i = 0; i < 2; i++) {
            const double own = i == 0 ? 1 - x : x, against = i == 0 ? x : -x;
            energies[2 * a + i] = (float)(kind == DCRF_UNARY_PROBABILITIES
                                              ? -log(fmin(fmax(own, DCRF_PROBABILITY_MIN), 1))
                                              : fmax(against, 0) + log1p(exp(-fabs(against))));
        }
    }
    free(map);
    if (!done) {
        free(energies);
        return false;
    }
    unary->view.channels = 2;
    pixel_array_replace(unary, image, energies);
    return true;
}

/* Convert the array to energies over the image. */
static bool convert_array(const unary_options *options, const cli_image *image, pixel_array *unary,
                          unary_facts *facts, cli_problem *problem) {
    const dcrf_grid grid = image_grid(image);
    const dcrf_view guide = image_view(image);
    const bool same_size = memcmp(grid.size, unary->grid.size, sizeof grid.size) == 0;
    dcrf_unary_kind kind;
    dcrf_error error;
    if (unary->channel_axis && unary->view.channels == 1)
        return convert_foreground(options, image, unary, facts, problem);
    if (!unary_check_array(options, unary, problem) ||
        !unary_resolve_kind(options, unary, &kind, facts, problem) ||
        !unary_check_room(image, unary->view.channels, options->array_file, problem))
        return false;
    facts->is_enlarged = !same_size;
    memcpy(facts->size, unary->grid.size, sizeof facts->size);
    if (same_size && kind == DCRF_UNARY_ENERGIES && (options->scale == 0 || options->scale == 1))
        return true;
    float *energies = calloc(image_pixels(image), unary->view.channels * sizeof *energies);
    if (!energies)
        return out_of_memory(problem, options->array_file);
    if (dcrf_unary_energies(&unary->view, &unary->grid, kind, options->scale, &grid, &guide,
                            energies, image_pixels(image) * unary->view.channels, &error) < 0) {
        free(energies);
        return library_problem(problem, options->array_file, &error);
    }
    pixel_array_replace(unary, image, energies);
    return true;
}

static bool unary_from_array(const unary_options *options, const cli_image *image,
                             pixel_array *unary, unary_facts *facts, cli_problem *problem) {
    if (!pixel_array_read(options->array_file, image, (array_layout)options->layout,
                          ARRAY_MAY_BE_SMALLER, unary, problem))
        return false;
    const bool done = convert_array(options, image, unary, facts, problem);
    if (!done)
        pixel_array_free(unary);
    return done;
}

/* Copy the numbers of an array so that the labels of a pixel are next to each other. */
static void gather(const pixel_array *array, size_t width, size_t pixels, float *energies) {
    const size_t labels = array->view.channels;
    for (size_t i = 0; i < pixels; i++)
        for (size_t label = 0; label < labels; label++)
            energies[i * labels + label] =
                *(const float *)(const void *)((const char *)array->view.data +
                                               (ptrdiff_t)(i % width) * array->view.stride[0] +
                                               (ptrdiff_t)(i / width) * array->view.stride[1] +
                                               (ptrdiff_t)label * array->view.channel_stride);
}

static bool read_frame_from(const unary_options *options, const cli_image *frame, const char *path,
                            size_t *labels, unary_facts *facts, float **energies,
                            cli_problem *problem) {
    unary_options one = *options;
    pixel_array array = {0};
    const size_t pixels = image_pixels(frame);
    unary_facts found = {.kind = DCRF_UNARY_AUTO};
    one.array_file = path;
    if (*labels > 0 && options->kind == DCRF_UNARY_AUTO)
        one.kind = (int)facts->kind;
    if (!unary_from_array(&one, frame, &array, &found, problem))
        return false;
    bool done = *labels == 0 || array.view.channels == *labels ||
                bad_input(problem, path, "has %zu labels, and the first frame %zu",
                          array.view.channels, *labels);
    if (*labels == 0)
        *facts = found;
    *labels = array.view.channels;
    *energies = done ? malloc(pixels * *labels * sizeof **energies) : NULL;
    done = done && (*energies || out_of_memory(problem, path));
    if (done)
        gather(&array, frame->width, pixels, *energies);
    pixel_array_free(&array);
    return done;
}

bool unary_read_frame(const unary_options *options, const cli_image *video, size_t index,
                      const cli_image *frame, size_t *labels, unary_facts *facts, float **energies,
                      cli_problem *problem) {
    const char *folder = options->array_file;
    char *path = path_partner(folder, video->frames.lines[index], PARTNER_ARRAY);
    const bool done = path ? read_frame_from(options, frame, path, labels, facts, energies, problem)
                           : bad_input(problem, folder, "has no array (.npy, .npz) for %s",
                                       video->frames.lines[index]);
    free(path);
    return done;
}

/* Copy the energies of one frame to their place in the video's. */
static bool take_frame(const unary_options *options, const cli_image *video, size_t index,
                       size_t *labels, float **energies, unary_facts *facts, cli_problem *problem) {
    const cli_image frame = video_frame(video, index);
    float *one;
    if (!unary_read_frame(options, video, index, &frame, labels, facts, &one, problem))
        return false;
    bool done = true;
    if (!*energies) {
        done = unary_check_room(video, *labels, options->array_file, problem);
        *energies = done ? calloc(image_pixels(video), *labels * sizeof **energies) : NULL;
        done = done && (*energies || out_of_memory(problem, options->array_file));
    }
    const size_t numbers = image_pixels(&frame) * *labels;
    if (done)
        memcpy(*energies + index * numbers, one, numbers * sizeof *one);
    free(one);
    return done;
}

/* One array per video frame. */
static bool unary_from_frames(const unary_options *options, const cli_image *video,
                              pixel_array *unary, unary_facts *facts, cli_problem *problem) {
    float *energies = NULL;
    size_t labels = 0;
    bool done = true;
    for (size_t i = 0; done && i < video->depth; i++)
        done = take_frame(options, video, i, &labels, &energies, facts, problem);
    if (!done) {
        free(energies);
        return false;
    }
    unary->view.channels = labels;
    pixel_array_replace(unary, video, energies);
    return true;
}

bool unary_check_size(const unary_options *options, const char *image_file, cli_problem *problem) {
    cli_image image;
    if (!image_measure(image_file, &image))
        return true;
    const bool done = options->array_file ? pixel_array_check(options->array_file, &image,
                                                              (array_layout)options->layout,
                                                              ARRAY_MAY_BE_SMALLER, problem)
                                          : label_map_check(unary_file(options), &image, problem);
    if (!done && !options->in_dataset)
        problem_of_option(problem, unary_option(options));
    return done;
}

bool unary_read(const unary_options *options, const cli_image *image, pixel_array *unary,
                unary_facts *facts, cli_problem *problem) {
    unary_facts found = {.kind = DCRF_UNARY_AUTO};
    *unary = (pixel_array){0};
    const bool in_frames =
        options->array_file && image_is_video(image) && path_is_folder(options->array_file);
    const bool done = in_frames ? unary_from_frames(options, image, unary, &found, problem)
                      : options->array_file
                          ? unary_from_array(options, image, unary, &found, problem)
                          : unary_from_prior(options, image, unary, &found, problem);
    if (facts)
        *facts = found;
    if (!done && !options->in_dataset)
        problem_of_option(problem, unary_option(options));
    return done;
}

/* ---- facts for reports ---------------------------------------------------------------------- */

void unary_facts_print(FILE *stream, const unary_facts *facts) {
    if (facts->map_kind == DCRF_MASK_HARD)
        fputs("unaries: a mask, 255 is label 1\n", stream);
    if (facts->map_kind >= DCRF_MASK_SOFT)
        fputs("unaries: a soft mask of two labels, from 0 (label 0) to 255 (label 1)\n", stream);
    if (facts->is_left_rough)
        fprintf(stream,
                "note: tiles do not refine the borders of a map; it is right with the probability "
                "%g at every pixel (--confidence)\n",
                USUAL_CONFIDENCE);
    if (facts->kind == DCRF_UNARY_AUTO)
        return;
    fprintf(stream, "unaries: %s", dcrf_unary_kind_name(facts->kind));
    if (facts->is_recognized)
        fprintf(stream, " (%s)", facts->reason);
    if (facts->is_foreground)
        fputs(" of one label, taken for the foreground, label 1; label 0 is the rest", stream);
    if (facts->is_enlarged)
        fprintf(stream, ", enlarged from %zu x %zu%s, guided by the image's colours",
                facts->size[0], facts->size[1], facts->size[2] > 1 ? " and slices" : "");
    fputc('\n', stream);
}

json_t *unary_facts_to_json(const unary_facts *facts) {
    if (facts->map_kind != DCRF_MASK_LABELS)
        return json_pack("{s:s}", "kind", facts->map_kind == DCRF_MASK_HARD ? "mask" : "soft mask");
    if (facts->kind == DCRF_UNARY_AUTO)
        return json_null();
    json_t *size = json_array();
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        size = json_append(size, json_integer((json_int_t)facts->size[axis]));
    json_t *told =
        json_pack("{s:s, s:b, s:b, s:o}", "kind", dcrf_unary_kind_name(facts->kind), "recognized",
                  facts->is_recognized, "enlarged", facts->is_enlarged, "size", size);
    return facts->is_foreground ? json_with(told, "foreground", json_true()) : told;
}
