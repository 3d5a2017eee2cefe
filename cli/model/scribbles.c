/* Strokes on a map, in numbers or colours, and the energies that the library derives from them. */
#include "model/scribbles.h"

#include "io/label_map.h"

#include <stdlib.h>

#define VOID_NUMBER 255 /* what most label pictures use for unknown */
#define WHITE 0xffffff
/* Strokes with more colours than this were smoothed, or the picture is a photograph. */
#define SCRIBBLE_LABELS_MAX 64

static size_t occurrences(const int32_t *numbers, size_t count, int32_t wanted) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += numbers[i] == wanted;
    return found;
}

/* Video frames without strokes get the most frequent number of the others, which means
 * unlabelled. */
static void fill_missing(int32_t *numbers, size_t count) {
    int32_t most = MAP_MISSING;
    size_t most_often = 0;
    if (occurrences(numbers, count, MAP_MISSING) == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == MAP_MISSING || numbers[i] == most)
            continue;
        const size_t often = occurrences(numbers, count, numbers[i]);
        if (often > most_often) {
            most = numbers[i];
            most_often = often;
        }
        if (2 * most_often > count - i)
            break; /* no other number can be as frequent */
    }
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == MAP_MISSING)
            numbers[i] = most;
}

/* ---- from a map to labels ------------------------------------------------------------------- */

/* Strokes in three greys, black, white and one in between: the most frequent one means no
 * stroke, and the darker of the others is label 0. False: the picture is not of this kind. */
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

/* Numbers are the labels, or the labels plus one if 0 means unknown. */
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

/* ---- energies ------------------------------------------------------------------------------- */

/* A model of the command's own, with the energies of the library's model. */
static dcrf_status copy_energies(const dcrf_model *from, dcrf_model **model, dcrf_error *error) {
    size_t stride;
    const size_t labels = dcrf_model_labels(from);
    const dcrf_grid *grid = dcrf_model_grid(from);
    const float *energies = dcrf_model_unary(from, &stride);
    dcrf_view view = dcrf_view_interleaved(energies, DCRF_F32, grid, stride);
    view.channels = labels;
    const dcrf_status status = dcrf_model_new(model, grid, labels, error);
    return status < 0 ? status : dcrf_model_set_unary(*model, &view, error);
}

static bool find_energies(const char *file, const cli_image *image, const int32_t *numbers,
                          size_t labels, dcrf_workspace *workspace, dcrf_model **model,
                          scribble_summary *summary, cli_problem *problem) {
    const dcrf_grid grid = image_grid(image);
    const dcrf_view colours = image_view(image);
    const dcrf_view strokes = dcrf_view_interleaved(numbers, DCRF_I32, &grid, 1);
    dcrf_scribbles *scribbles = NULL;
    dcrf_error error;
    const bool done =
        (dcrf_scribbles_new(&scribbles, &grid, &colours, labels, NULL, workspace, &error) >= 0 &&
         dcrf_scribbles_set_strokes(scribbles, &strokes, &error) >= 0 &&
         dcrf_scribbles_update(scribbles, &error) >= 0 &&
         copy_energies(dcrf_scribbles_model(scribbles), model, &error) >= 0) ||
        library_problem(problem, file, &error);
    dcrf_scribbles_get_settings(scribbles, &summary->settings);
    dcrf_scribbles_get_info(scribbles, &summary->info);
    dcrf_scribbles_free(&scribbles);
    return done;
}

bool model_from_scribbles(const unary_options *options, const cli_image *image,
                          dcrf_workspace *workspace, dcrf_model **model, scribble_summary *summary,
                          cli_problem *problem) {
    const char *file = options->scribbles_file;
    int32_t *numbers;
    bool colours;
    size_t labels = 0;
    if (!label_map_read_colours(file, image, &numbers, &colours, problem))
        return false;
    fill_missing(numbers, image_pixels(image));
    const bool done =
        prepare_scribbles(options, image_pixels(image), colours, numbers, &labels, problem) &&
        find_energies(file, image, numbers, labels, workspace, model, summary, problem);
    free(numbers);
    return done;
}

size_t scribble_kernels(const scribble_summary *summary, const cli_image *image,
                        dcrf_kernel kernels[2]) {
    const dcrf_scribbles_settings *used = &summary->settings;
    size_t count = 0;
    if (used->spatial_weight > 0)
        kernels[count++] = dcrf_kernel_spatial(used->spatial_sigma, used->spatial_weight);
    if (used->bilateral_weight > 0)
        kernels[count++] =
            dcrf_kernel_bilateral(used->bilateral_sigma, used->bilateral_channel_sigma,
                                  image_view(image), used->bilateral_weight);
    return count;
}
