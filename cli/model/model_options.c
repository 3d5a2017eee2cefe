#include "model/model_options.h"

#include "interrupt.h"
#include "io/json.h"
#include "io/label_map.h"
#include "model/compatibility.h"
#include "model/superpixels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels -------------------------------------------------------------------------------- */

/* Choices are stored as their index in the form; these assert that the index is the library's
 * value. */
_Static_assert(DCRF_NORMALIZE_NONE == 0 && DCRF_NORMALIZE_SYMMETRIC == 1, "none|symmetric");
_Static_assert(DCRF_OPERATOR_FAST == 0 && DCRF_OPERATOR_EXACT == 1, "fast|exact");

static bool bad_kernel(const cli_option *option, const char *text, cli_problem *problem) {
    char subject[32];
    snprintf(subject, sizeof subject, "--%s", option->name);
    return bad_input(problem, subject,
                     "'%s' is not %s with sigmas above zero and a weight from 0 to %.2g, nor none",
                     text, option->form, (double)FLT_MAX);
}

/* `sigma_count` positive sigmas, optionally followed by a weight. */
static bool parse_kernel(const char *text, size_t sigma_count, double sigmas[2],
                         kernel_setting *setting) {
    double numbers[3];
    *setting = (kernel_setting){.weighted = parse_number_list(text, numbers, sigma_count + 1)};
    if (strcmp(text, "none") == 0)
        return true;
    if (!setting->weighted && !parse_number_list(text, numbers, sigma_count))
        return false;
    for (size_t i = 0; i < sigma_count; i++) {
        sigmas[i] = numbers[i];
        if (!(sigmas[i] > 0))
            return false;
    }
    if (setting->weighted &&
        !(numbers[sigma_count] >= 0 && numbers[sigma_count] <= (double)FLT_MAX))
        return false;
    setting->on = true;
    setting->sigma_px = sigmas[0];
    setting->weight = setting->weighted ? numbers[sigma_count] : 1;
    return true;
}

static bool parse_spatial(const cli_option *option, const char *text, void *value,
                          cli_problem *problem) {
    double sigmas[2] = {0};
    kernel_setting setting;
    if (!parse_kernel(text, 1, sigmas, &setting))
        return bad_kernel(option, text, problem);
    *(kernel_setting *)value = setting;
    return true;
}

static bool parse_bilateral(const cli_option *option, const char *text, void *value,
                            cli_problem *problem) {
    double sigmas[2] = {0}; /* of position and colour */
    kernel_setting setting;
    if (!parse_kernel(text, 2, sigmas, &setting))
        return bad_kernel(option, text, problem);
    setting.sigma_colour = sigmas[1];
    *(kernel_setting *)value = setting;
    return true;
}

/* `lattice` is the former name of `fast`. */
static bool parse_operator(const cli_option *option, const char *text, void *value,
                           cli_problem *problem) {
    return parse_choice(option, strcmp(text, "lattice") == 0 ? "fast" : text, value, problem);
}

const cli_option kernel_option_table[] = {
    {"spatial", 0, "SIGMA[,W]", NUMBER_TEXT(DCRF_DEFAULT_SPATIAL_SIGMA), false, parse_spatial,
     offsetof(kernel_options, spatial),
     "kernel over pixel distance, sigma in pixels (volumes: mm), and optionally a weight of its "
     "own; none: off"},
    {"bilateral", 0, "SIGMA_XY,SIGMA_RGB[,W]",
     NUMBER_TEXT(DCRF_DEFAULT_BILATERAL_SIGMA) "," NUMBER_TEXT(DCRF_DEFAULT_COLOUR_SIGMA), false,
     parse_bilateral, offsetof(kernel_options, bilateral),
     "kernel over pixel and colour distance, colours from 0 to 255 (volumes: as stored), and "
     "optionally a weight of its own; none: off"},
    {"temporal", 0, "FRAMES", "2", false, parse_positive_number, offsetof(kernel_options, temporal),
     "for a folder of frames: sigma of both kernels along time, in frames"},
    {"normalize", 0, "none|symmetric", "symmetric", false, parse_choice,
     offsetof(kernel_options, normalization),
     "symmetric divides a kernel by the square roots of its row sums on both sides"},
    {"operator", 0, "fast|exact", "fast", false, parse_operator,
     offsetof(kernel_options, operator_kind),
     "how kernels are applied: by fast filters, or by the exact sum over all pairs"},
    {"threads", 0, "T", "0", false, parse_count, offsetof(kernel_options, threads),
     "number of threads; 0: one per core; results do not depend on it"},
    {0},
};

/* The time axis has its own sigma. */
static void kernels_along_time(const kernel_options *options, const cli_image *image,
                               dcrf_kernel *kernels, size_t count) {
    for (size_t k = 0; image_is_video(image) && k < count; k++)
        kernels[k].sigma[2] = options->temporal * image->spacing_mm[2];
}

size_t kernels_from_options(const kernel_options *options, const cli_image *image,
                            dcrf_kernel kernels[KERNELS_MAX]) {
    size_t count = 0;
    if (options->spatial.on)
        kernels[count++] = dcrf_kernel_spatial(options->spatial.sigma_px, options->spatial.weight);
    if (options->bilateral.on)
        kernels[count++] =
            dcrf_kernel_bilateral(options->bilateral.sigma_px, options->bilateral.sigma_colour,
                                  image_view(image), options->bilateral.weight);
    for (size_t k = 0; k < count; k++)
        kernels[k].normalization = (dcrf_normalization)options->normalization;
    kernels_along_time(options, image, kernels, count);
    return count;
}

size_t kernels_weighted(const kernel_options *options, bool weighted[KERNELS_MAX]) {
    size_t count = 0;
    if (options->spatial.on)
        weighted[count++] = options->spatial.weighted;
    if (options->bilateral.on)
        weighted[count++] = options->bilateral.weighted;
    return count;
}

const char *kernel_name(const dcrf_kernel *kernel) {
    return kernel->kind == DCRF_KERNEL_SPATIAL ? "spatial" : "bilateral";
}

/* ---- models --------------------------------------------------------------------------------- */

const cli_option label_option_table[] = {
    {"compatibility", 0, "potts|linear|truncated-linear:T|tree:FILE|cuts:FILE|FILE.npy", "potts",
     false, parse_input, offsetof(model_options, compatibility),
     "cost of a pair with different labels i and j: 1, |i - j|, min(|i - j|, T); the cost of the "
     "smallest group that holds both (lines 'group cost COST: labels and groups'), or the path "
     "length in a tree (lines 'label group length', 'group group length'); the sum of cuts "
     "(lines 'LENGTH: labels on one side'); or the entry of a symmetric matrix"},
    {0},
};

const cli_option clique_option_table[] = {
    {"cliques", 0, "none|meanshift|slic|FILE", "none", false, parse_input,
     offsetof(model_options, cliques_source),
     "regions whose pixels should agree: superpixels of the image (of a volume: slic), or a map of "
     "regions, a "
     "picture with one channel, an integer .npy or a NIfTI volume; negative numbers: in no region"},
    {"min-region", 0, "PIXELS", "0", false, parse_count, offsetof(model_options, min_region_px),
     "minimum size of a superpixel; smaller ones are merged into the neighbour of most similar "
     "colour; 0: 20 for meanshift, 64 for slic, 1024 in volumes"},
    {"gamma", 0, "auto|G", "auto", false, parse_number_or_auto, offsetof(model_options, gamma),
     "a region with more than one label costs G * exp(-variance / E); auto: " NUMBER_TEXT(
         DCRF_DEFAULT_GAMMA_PER_STRENGTH) " times the strength of the kernels"},
    {"eta", 0, "E", NUMBER_TEXT(DCRF_DEFAULT_ETA), false, parse_positive_number,
     offsetof(model_options, eta),
     "see --gamma; the variance is that of the region's colours, summed over the channels"},
    {0},
};

/* Lengths of masks scale with the image. Space the frames so that the video is as long as its
 * frames are wide. */
static void space_frames(cli_image *video) {
    video->spacing_mm[2] =
        sqrt((double)video->width * (double)video->height) / (double)video->depth;
}

static bool set_unary(const model_options *options, built_model *built, cli_problem *problem) {
    dcrf_error error;
    pixel_array unary;
    if (image_is_video(&built->image) && options->unary.prior_file)
        space_frames(&built->image);
    const dcrf_grid grid = image_grid(&built->image);
    const unary_options *source = &options->unary;
    built->from_scribbles = source->scribbles_file != NULL;
    if (built->from_scribbles || (source->prior_file && !(source->confidence > 0)))
        return ((built->from_scribbles
                     ? model_from_scribbles(source, &built->image, built->workspace, &built->model,
                                            &built->scribbles, problem)
                     : model_from_mask(source, &built->image, built->workspace, &built->model,
                                       &built->mask, &built->unary, problem)) ||
                problem_of_option(problem, unary_option(&options->unary))) &&
               (dcrf_model_apply_temperature(built->model, options->strength.temperature, &error) >=
                    0 ||
                library_problem(problem, "--temperature", &error));
    if (!unary_read(&options->unary, &built->image, &unary, &built->unary, problem))
        return false;
    const bool done =
        (dcrf_model_new(&built->model, &grid, unary.view.channels, &error) >= 0 &&
         dcrf_model_set_unary(built->model, &unary.view, &error) >= 0 &&
         dcrf_model_apply_temperature(built->model, options->strength.temperature, &error) >= 0) ||
        library_problem(problem, unary_file(&options->unary), &error);
    pixel_array_free(&unary);
    return done;
}

static bool is_default_kernel(const cli_option *option, const kernel_setting *given) {
    kernel_setting usual;
    cli_problem problem;
    return option->parse(option, option->fallback, &usual, &problem) && given->on == usual.on &&
           given->sigma_px == usual.sigma_px && given->sigma_colour == usual.sigma_colour &&
           given->weight == usual.weight;
}

/* Kernels for scribbles and masks replace only the default ones. */
static bool are_default_kernels(const kernel_options *options) {
    return is_default_kernel(&kernel_option_table[0], &options->spatial) &&
           is_default_kernel(&kernel_option_table[1], &options->bilateral) &&
           options->normalization == DCRF_NORMALIZE_SYMMETRIC;
}

bool model_add_kernels(const model_options *options, const char *image_file, built_model *built,
                       cli_problem *problem) {
    dcrf_error error;
    const dcrf_view colours = image_view(&built->image);
    built->has_own_kernels =
        (built->from_scribbles || built->mask.map) && are_default_kernels(&options->kernels);
    built->kernel_count =
        !built->has_own_kernels
            ? kernels_from_options(&options->kernels, &built->image, built->kernels)
        : built->mask.map ? dcrf_mask_kernels(&built->mask.info, &colours, built->kernels)
                          : scribble_kernels(&built->scribbles, &built->image, built->kernels);
    if (built->has_own_kernels)
        kernels_along_time(&options->kernels, &built->image, built->kernels, built->kernel_count);
    for (size_t k = 0; k < built->kernel_count; k++)
        if (dcrf_model_add_kernel(built->model, &built->kernels[k], &error) < 0)
            return library_problem(problem, image_file, &error);
    return compatibility_apply(options->compatibility, built->model, problem);
}

bool model_check_kernels(const model_options *options, cli_problem *problem) {
    bool weighted[KERNELS_MAX] = {false};
    const size_t count = kernels_weighted(&options->kernels, weighted);
    return strength_check(&options->strength, weighted, count,
                          options->kernels.normalization == DCRF_NORMALIZE_SYMMETRIC, problem);
}

bool model_set_strength(const model_options *options, built_model *built, cli_problem *problem) {
    /* Kernels for scribbles and masks have their own weights unless a strength is given. */
    const bool has_own = built->has_own_kernels && isnan(options->strength.nats);
    bool weighted[KERNELS_MAX] = {false};
    dcrf_measured_strength measured;
    kernels_weighted(&options->kernels, weighted);
    for (size_t k = 0; built->has_own_kernels && k < built->kernel_count; k++)
        weighted[k] = has_own;
    if (!strength_measure(built->model, built->workspace, &measured, problem) ||
        !strength_apply(&options->strength, &measured, weighted, built->kernels,
                        built->kernel_count, built->model, &built->strength, problem))
        return false;
    built->strength.chosen_for = !has_own ? NULL : built->mask.map ? "rough masks" : "scribbles";
    if (has_own) /* the measurement assumes unaries whose errors are independent per pixel */
        built->strength.measured.strength = built->strength.nats;
    return true;
}

bool clique_regions_find(const model_options *options, const char *image_file,
                         const cli_image *image, dcrf_workspace *workspace, int32_t **regions,
                         cli_problem *problem) {
    const char *source = options->cliques_source;
    dcrf_superpixel_settings settings;
    size_t count;
    dcrf_superpixel_settings_defaults(&settings);
    if (!dcrf_superpixel_method_from_name(source, &settings.method)) {
        if (options->min_region_px != 0)
            return bad_input(problem, "--min-region",
                             "is for --cliques meanshift and slic; '%s' is taken as it is", source);
        return label_map_read(source, image, regions, problem) ||
               problem_of_option(problem, "--cliques");
    }
    settings.min_region_px = options->min_region_px;
    return superpixels_find(image, image_file, &settings, workspace, regions, &count, problem);
}

bool model_set_cliques(const model_options *options, const cli_image *image, const int32_t *regions,
                       dcrf_model *model, cli_problem *problem) {
    dcrf_error error;
    const dcrf_grid grid = image_grid(image);
    const dcrf_view colours = image_view(image);
    const dcrf_view map = dcrf_view_interleaved(regions, DCRF_I32, &grid, 1);
    const double gamma = isnan(options->gamma) ? dcrf_default_gamma(model) : options->gamma;
    const char *subject = gamma <= (double)FLT_MAX ? options->cliques_source : "--gamma";
    return (dcrf_model_set_clique_map(model, &map, 0, &error) >= 0 &&
            dcrf_model_set_clique_costs(model, &colours, gamma, options->eta, &error) >= 0) ||
           library_problem(problem, subject, &error);
}

static bool add_cliques(const model_options *options, const char *image_file, built_model *built,
                        cli_problem *problem) {
    int32_t *regions;
    if (strcmp(options->cliques_source, "none") == 0)
        return true;
    if (!clique_regions_find(options, image_file, &built->image, built->workspace, &regions,
                             problem))
        return false;
    const bool done = model_set_cliques(options, &built->image, regions, built->model, problem);
    free(regions);
    return done;
}

bool model_start_workspace(const model_options *options, built_model *built, cli_problem *problem) {
    if (!workspace_start(&built->workspace, options->kernels.threads, options->kernels.device,
                         problem))
        return false;
    interrupt_limit(built->workspace, &built->time);
    return true;
}

bool model_name_classes(const model_options *options, built_model *built, cli_problem *problem) {
    const char *file = options->unary.classes_file;
    return !file ||
           (lines_read(file, &built->classes, problem) &&
            classes_check(&built->classes, file, dcrf_model_labels(built->model), problem)) ||
           problem_of_option(problem, "--classes");
}

bool model_build(const model_options *options, const char *image_file, time_frame time,
                 built_model *built, cli_problem *problem) {
    *built = (built_model){.time = time};
    const bool done =
        model_check_kernels(options, problem) && unary_check_options(&options->unary, problem) &&
        unary_check_size(&options->unary, image_file, problem) &&
        model_start_workspace(options, built, problem) &&
        image_read(image_file, &built->image, problem) && set_unary(options, built, problem) &&
        model_name_classes(options, built, problem) &&
        model_add_kernels(options, image_file, built, problem) &&
        model_set_strength(options, built, problem) &&
        add_cliques(options, image_file, built, problem);
    if (!done)
        model_free(built);
    return done;
}

void model_free(built_model *built) {
    mask_summary_free(&built->mask);
    dcrf_workspace_free(&built->workspace);
    dcrf_model_free(&built->model);
    lines_free(&built->classes);
    image_free(&built->image);
}

bool model_plan(const model_options *options, const char *image_file, const built_model *built,
                dcrf_plan **plan, cli_problem *problem) {
    dcrf_error error;
    return dcrf_plan_new(plan, built->model, (dcrf_operator_kind)options->kernels.operator_kind,
                         built->workspace, &error) >= 0 ||
           library_problem(problem, image_file, &error);
}

bool model_read_labels(const built_model *built, const char *path, const unknown_value *void_number,
                       uint16_t **labels, cli_problem *problem) {
    int32_t *numbers;
    const size_t count = image_pixels(&built->image);
    const size_t label_count = dcrf_model_labels(built->model);
    const bool has_void = void_number && void_number->kind == UNKNOWN_NUMBER;
    const int32_t no_label = has_void ? void_number->value : -1;
    char text[IMAGE_TEXT_BYTES];
    *labels = NULL;
    if (!label_map_read(path, &built->image, &numbers, problem))
        return false;
    bool done = true;
    const bool is_mask = !has_void && map_is_mask(numbers, count);
    if (is_mask && label_count == 2)
        map_number_mask(numbers, count);
    for (size_t i = 0; done && i < count; i++)
        if ((numbers[i] < 0 || (size_t)numbers[i] >= label_count) &&
            !(has_void && numbers[i] == no_label))
            done = bad_input(
                problem, path, "has the label %d at %s; the unary has labels 0 to %zu%s",
                (int)numbers[i], image_place_text(&built->image, i, text), label_count - 1,
                is_mask ? " (a 0/255 mask does for two labels only)" : "");
    if (done && !(*labels = malloc(count * sizeof **labels)))
        done = out_of_memory(problem, path);
    if (done && has_void)
        dcrf_label_by_unary(built->model, *labels, count, NULL);
    for (size_t i = 0; done && i < count; i++)
        if (!has_void || numbers[i] != no_label)
            (*labels)[i] = (uint16_t)numbers[i];
    free(numbers);
    return done;
}

/* The third axis and the voxel spacing, which photographs lack. */
static json_t *with_volume(json_t *report, const cli_image *image) {
    return json_merge(report, json_pack("{s:I, s:[f, f, f]}", "depth", (json_int_t)image->depth,
                                        "spacing_mm", image->spacing_mm[0], image->spacing_mm[1],
                                        image->spacing_mm[2]));
}

json_t *model_report(const model_options *options, const built_model *built) {
    const bool exact = options->kernels.operator_kind == DCRF_OPERATOR_EXACT;
    const bool symmetric = options->kernels.normalization == DCRF_NORMALIZE_SYMMETRIC;
    json_t *report = json_pack(
        "{s:I, s:I, s:I, s:o, s:I, s:s, s:s, s:o, s:I, s:s}", "width",
        (json_int_t)built->image.width, "height", (json_int_t)built->image.height, "labels",
        (json_int_t)dcrf_model_labels(built->model), "unary", unary_facts_to_json(&built->unary),
        "cliques", (json_int_t)dcrf_model_cliques(built->model), "operator",
        exact ? "exact" : "fast", "normalize", symmetric ? "symmetric" : "none", "strength",
        strength_to_json(&built->strength), "threads",
        (json_int_t)dcrf_workspace_threads(built->workspace), "version", dcrf_version());
    const char *device = device_to_tell(built->workspace);
    if (device)
        report = json_with(report, "device", json_string(device));
    if (image_is_volume(&built->image))
        report = with_volume(report, &built->image);
    if (built->classes.count > 0)
        report = json_with(report, "classes", class_names_to_json(&built->classes));
    return report;
}
