#include "dataset/prepared.h"

#include "interrupt.h"
#include "io/file.h"
#include "io/json.h"
#include "io/label_map.h"
#include "model/compatibility.h"

#include <dcrf/changes.h>
#include <dcrf/grid.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Peak memory of solving: bytes per pixel for any number of labels, and blocks of one float per
 * pixel and label. Fitted to the peak memory of `dcrf batch --jobs 1 --threads 1` on photographs
 * of 180 x 120 pixels with 7 labels and of 320 x 213 with 21; verified by the test of --memory. */
#define PIXEL_BYTES 1300
#define BLOCKS 14
#define LP_BLOCKS 18
#define LP_CLIQUES_BLOCKS 28

/* Superpixels computed for the image with one method and size. */
typedef struct region_map {
    char *source;
    size_t min_region_px;
    int32_t *regions;
    double seconds;
} region_map;

struct prepared_image {
    const dataset *data;
    const dataset_item *item;
    cli_image image;
    pixel_array unary;
    int32_t *truth; /* NULL: there is none */
    double read_s;
    /* What the model and plan were made for. */
    dcrf_model *model;
    dcrf_plan *plan;
    kernel_options kernels;
    double temperature;
    dcrf_measured_strength measured;
    double plan_s;
    region_map *maps;
    size_t map_count;
};

/* ---- options -------------------------------------------------------------------------------- */

json_t *solve_choice_to_json(const option_record *record, const cli_option *const *left_out) {
    json_t *settings = settings_to_json(record, left_out);
    if (!settings)
        return NULL;
    json_object_del(settings, "dataset");
    json_object_del(settings, "threads");
    const char *device = json_string_value(json_object_get(settings, "device"));
    if (device && strcmp(device, "cpu") == 0)
        json_object_del(settings, "device");
    else if (device)
        settings = json_merge(settings, json_pack("{s:s}", "device", "cuda"));
    return settings;
}

bool parse_band(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    size_t band_px;
    if (!parse_positive_count(option, text, &band_px, problem))
        return false;
    if (band_px > SCORE_BAND_MAX_PX)
        return bad_input(problem, "--band", "%zu pixels are too many; %d is the most", band_px,
                         SCORE_BAND_MAX_PX);
    *(size_t *)value = band_px;
    return true;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool check_files(const prepared_image *p, cli_problem *problem) {
    const dataset_item *item = p->item;
    if (!item->image_file)
        return bad_input(problem, item->name, "there is no images/%s.png, nor .jpg", item->name);
    if (!item->unary_file)
        return bad_input(problem, item->name, "there is no unaries/%s.npy", item->name);
    if (p->data->has_truth && !item->truth_file)
        return bad_input(problem, item->name, "there is no gt/%s.png", item->name);
    return true;
}

static bool read_image(prepared_image *p, cli_problem *problem) {
    unary_options unary = p->data->unary;
    unary.array_file = p->item->unary_file;
    if (!unary_check_size(&unary, p->item->image_file, problem))
        return false;
    if (!image_read(p->item->image_file, &p->image, problem))
        return false;
    return !image_is_volume(&p->image) ||
           bad_input(problem, p->item->image_file, "is a volume; data sets hold pictures");
}

static bool read_unary(prepared_image *p, cli_problem *problem) {
    unary_options options = p->data->unary;
    options.array_file = p->item->unary_file;
    if (!unary_read(&options, &p->image, &p->unary, NULL, problem))
        return false;
    return p->unary.view.channels == p->data->labels ||
           bad_input(problem, p->item->unary_file, "has %zu labels but dataset.json says %zu",
                     p->unary.view.channels, p->data->labels);
}

static bool read_truth(prepared_image *p, cli_problem *problem) {
    const char *file = p->item->truth_file;
    char text[IMAGE_TEXT_BYTES];
    if (!p->data->has_truth)
        return true;
    if (!label_map_read(file, &p->image, &p->truth, problem))
        return false;
    for (size_t a = 0; a < image_pixels(&p->image); a++) {
        const int32_t number = p->truth[a];
        if (number == p->data->void_value)
            p->truth[a] = TRUTH_VOID;
        else if (number < 0 || (size_t)number >= p->data->labels)
            return bad_input(problem, file,
                             "has %d at %s; labels are 0 to %zu, and %d where nothing is scored "
                             "(\"void\" in dataset.json)",
                             (int)number, image_place_text(&p->image, a, text), p->data->labels - 1,
                             (int)p->data->void_value);
    }
    return true;
}

bool prepared_new(prepared_image **image, const dataset *data, const dataset_item *item,
                  cli_problem *problem) {
    const double began_s = seconds_now();
    prepared_image *p = calloc(1, sizeof *p);
    *image = p;
    if (!p)
        return out_of_memory(problem, item->name);
    p->data = data;
    p->item = item;
    const bool done = check_files(p, problem) && read_image(p, problem) && read_unary(p, problem) &&
                      read_truth(p, problem);
    p->read_s = seconds_now() - began_s;
    if (!done)
        prepared_free(image);
    return done;
}

static void drop_model(prepared_image *p) {
    dcrf_plan_free(&p->plan);
    dcrf_model_free(&p->model);
}

void prepared_free(prepared_image **image) {
    prepared_image *p = *image;
    if (!p)
        return;
    drop_model(p);
    for (size_t i = 0; i < p->map_count; i++) {
        free(p->maps[i].source);
        free(p->maps[i].regions);
    }
    free(p->maps);
    free(p->truth);
    pixel_array_free(&p->unary);
    image_free(&p->image);
    free(p);
    *image = NULL;
}

/* ---- the model ------------------------------------------------------------------------------ */

static bool same_kernel(const kernel_setting *a, const kernel_setting *b) {
    return a->on == b->on && a->sigma_px == b->sigma_px && a->sigma_colour == b->sigma_colour;
}

/* Do two settings differ at most in weights? */
static bool same_plan(const kernel_options *a, const kernel_options *b) {
    return same_kernel(&a->spatial, &b->spatial) && same_kernel(&a->bilateral, &b->bilateral) &&
           a->normalization == b->normalization && a->operator_kind == b->operator_kind;
}

static bool add_kernels(dcrf_model *model, const dcrf_kernel *kernels, size_t count,
                        dcrf_error *error) {
    for (size_t k = 0; k < count; k++)
        if (dcrf_model_add_kernel(model, &kernels[k], error) < 0)
            return false;
    return true;
}

static bool make_model(prepared_image *p, dcrf_workspace *workspace, const model_options *options,
                       const dcrf_kernel *kernels, size_t count, cli_problem *problem) {
    const dcrf_grid grid = image_grid(&p->image);
    const dcrf_operator_kind kind = (dcrf_operator_kind)options->kernels.operator_kind;
    dcrf_error error;
    if (dcrf_model_new(&p->model, &grid, p->data->labels, &error) < 0 ||
        dcrf_model_set_unary(p->model, &p->unary.view, &error) < 0 ||
        dcrf_model_apply_temperature(p->model, options->strength.temperature, &error) < 0 ||
        !add_kernels(p->model, kernels, count, &error))
        return library_problem(problem, p->item->name, &error);
    return compatibility_apply(options->compatibility, p->model, problem) &&
           ((dcrf_model_measure_strength(p->model, workspace, &p->measured, &error) >= 0 &&
             dcrf_plan_new(&p->plan, p->model, kind, workspace, &error) >= 0) ||
            library_problem(problem, p->item->name, &error));
}

static bool set_kernels(prepared_image *p, dcrf_workspace *workspace, const model_options *options,
                        cli_problem *problem) {
    const kernel_options *wanted = &options->kernels;
    dcrf_kernel kernels[KERNELS_MAX];
    bool weighted[KERNELS_MAX] = {false};
    applied_strength applied;
    const double began_s = seconds_now();
    const size_t count = kernels_from_options(wanted, &p->image, kernels);
    bool done = true;
    if (!p->plan || !same_plan(&p->kernels, wanted) ||
        p->temperature != options->strength.temperature) {
        drop_model(p);
        done = make_model(p, workspace, options, kernels, count, problem);
        p->plan_s = seconds_now() - began_s;
    }
    p->kernels = *wanted;
    p->temperature = options->strength.temperature;
    kernels_weighted(wanted, weighted);
    done = done && strength_apply(&options->strength, &p->measured, weighted, kernels, count,
                                  p->model, &applied, problem);
    if (!done)
        drop_model(p);
    return done;
}

/* ---- cliques -------------------------------------------------------------------------------- */

const char *cliques_wanted(const model_options *options) {
    return strcmp(options->cliques_source, "none") == 0
               ? dcrf_superpixel_method_name(DCRF_SUPERPIXEL_MEAN_SHIFT)
               : options->cliques_source;
}

bool cliques_are_files(const char *source) {
    dcrf_superpixel_method method;
    return !dcrf_superpixel_method_from_name(source, &method);
}

static region_map *find_map(prepared_image *p, const char *source, size_t min_region_px) {
    for (size_t i = 0; i < p->map_count; i++)
        if (p->maps[i].min_region_px == min_region_px && strcmp(p->maps[i].source, source) == 0)
            return &p->maps[i];
    return NULL;
}

/* If the source is a folder with one map per image, the regions are those of its map. */
static bool cut_up(const prepared_image *p, dcrf_workspace *workspace, const model_options *options,
                   const char *source, int32_t **regions, cli_problem *problem) {
    model_options own = *options;
    char *file = NULL;
    own.cliques_source = source;
    if (cliques_are_files(source)) {
        file = dataset_find_map(source, p->item->name);
        if (!file)
            return bad_input(problem, p->item->name, "there is no %s/%s.png, nor .npy", source,
                             p->item->name);
        own.cliques_source = file;
    }
    const bool done =
        clique_regions_find(&own, p->item->image_file, &p->image, workspace, regions, problem);
    free(file);
    return done;
}

static region_map *add_map(prepared_image *p, dcrf_workspace *workspace,
                           const model_options *options, cli_problem *problem) {
    const double began_s = seconds_now();
    region_map added = {strdup(cliques_wanted(options)), options->min_region_px, NULL, 0};
    region_map *grown = realloc(p->maps, (p->map_count + 1) * sizeof *grown);
    if (grown)
        p->maps = grown;
    const bool done = (grown && added.source) || out_of_memory(problem, p->item->name);
    if (!done || !cut_up(p, workspace, options, added.source, &added.regions, problem)) {
        free(added.source);
        return NULL;
    }
    added.seconds = seconds_now() - began_s;
    p->maps[p->map_count] = added;
    return &p->maps[p->map_count++];
}

/* *seconds is the time it took to find the superpixels, now or earlier. */
static bool set_cliques(prepared_image *p, dcrf_workspace *workspace, const model_options *options,
                        bool wanted, double *seconds, cli_problem *problem) {
    dcrf_error error;
    *seconds = 0;
    if (!wanted)
        return dcrf_model_set_cliques(p->model, 0, NULL, NULL, NULL, &error) >= 0 ||
               library_problem(problem, p->item->name, &error);
    region_map *map = find_map(p, cliques_wanted(options), options->min_region_px);
    if (!map)
        map = add_map(p, workspace, options, problem);
    if (!map)
        return false;
    *seconds = map->seconds;
    return model_set_cliques(options, &p->image, map->regions, p->model, problem);
}

/* ---- solving -------------------------------------------------------------------------------- */

static bool energy_of(const prepared_image *p, dcrf_workspace *workspace, const uint16_t *labels,
                      dcrf_energy *energy, dcrf_error *error) {
    return dcrf_energy_at_most(p->plan, workspace, labels, energy, NULL, 0, error) >= 0;
}

/* The label of largest marginal at every pixel, the first of equal ones. */
static bool round_marginals(const prepared_image *p, const dcrf_solver *solver, uint16_t *labels,
                            dcrf_error *error) {
    const size_t variables = image_pixels(&p->image), count = p->data->labels;
    const size_t stride = dcrf_padded(count);
    float *marginals = calloc(variables, stride * sizeof *marginals);
    if (!marginals) {
        *error = (dcrf_error){DCRF_ERROR_MEMORY, "out of memory"};
        return false;
    }
    const bool done =
        dcrf_solver_marginals(solver, marginals, variables * stride, stride, error) >= 0 &&
        dcrf_label_by_marginals(marginals, variables, count, stride, labels, variables, error) >= 0;
    free(marginals);
    return done;
}

/* The energies of the method's current labellings if its own rounding is the result, otherwise
 * of the best so far; from the iterations on, because those of first candidates are far above. */
static bool take_curve(const dcrf_solver *solver, bool rounded, curve *energies) {
    size_t count;
    const dcrf_moment *moments = dcrf_solver_trace(solver, &count);
    for (; count > 0 && moments->stage == DCRF_STAGE_CANDIDATES; count--)
        moments++;
    energies->points = calloc(count + 1, sizeof *energies->points);
    energies->count = energies->points ? count : 0;
    for (size_t k = 0; k < energies->count; k++)
        energies->points[k] =
            (curve_point){moments[k].time_s, rounded ? moments[k].energy : moments[k].best_energy,
                          moments[k].lower_bound};
    return energies->points != NULL;
}

static void take_info(const dcrf_solver_info *info, outcome *found) {
    found->energy = info->energy;
    found->rounded = info->rounded.total;
    found->lower_bound = info->lower_bound;
    found->relative_gap = info->relative_gap;
    found->left_out = info->bound_left_out;
    found->iterations = info->iterations;
    found->stop = info->stop;
    found->solve_s = info->start_s + info->solve_s + info->evaluate_s + info->round_s;
    found->polish_s = info->polish_s;
}

/* A labelling that is not the solver's best has its own energy and gap. */
static bool take_rounding(const prepared_image *p, dcrf_workspace *workspace,
                          const dcrf_solver *solver, outcome *found, dcrf_error *error) {
    if (!round_marginals(p, solver, found->labels, error) ||
        !energy_of(p, workspace, found->labels, &found->energy, error))
        return false;
    found->rounded = found->energy.total;
    found->relative_gap =
        dcrf_relative_gap(found->energy.total, found->lower_bound, dcrf_unary_floor(p->model));
    if (found->left_out.fraction > 0) /* of another labelling */
        found->left_out.energy = found->left_out.gap = NAN;
    return true;
}

/* A run without time for a first labelling has no result. Nor does one in which a signal came,
 * because stages may have been skipped, whatever its status. */
static bool run_to_result(dcrf_solver *solver, dcrf_solver_info *info, dcrf_error *error) {
    if (dcrf_solver_run(solver, error) < 0)
        return false;
    dcrf_solver_get_info(solver, info);
    if (!interrupt_came() && isfinite(info->energy.total))
        return true;
    *error = (dcrf_error){DCRF_ERROR_INTERRUPTED, "the run ended before there was a result"};
    return false;
}

static bool run_solver(const prepared_image *p, dcrf_workspace *workspace,
                       const solve_choice *choice, const method_choice *method, outcome *found,
                       curve *energies, dcrf_error *error) {
    dcrf_solver *solver = NULL;
    dcrf_solver_info info;
    solver_options options = choice->solver;
    options.method = (int)method->solver;
    if (method->iterations > 0)
        options.iterations = method->iterations;
    dcrf_settings settings = settings_from_options(&options, energies != NULL);
    if (choice->rounded)
        settings.polish = 0;
    bool done = dcrf_solver_new(&solver, p->plan, workspace, &settings, error) >= 0 &&
                run_to_result(solver, &info, error);
    if (done) {
        interrupt_limit(workspace, &(time_frame){0}); /* little is left to do */
        take_info(&info, found);
        dcrf_solver_labels(solver, found->labels, dcrf_model_variables(p->model), NULL);
        /* What the LP's bound proves about single pixels, at no extra cost. */
        found->proven_share = isnan(found->lower_bound)
                                  ? NAN
                                  : (double)info.proven / (double)dcrf_model_variables(p->model);
        done = !choice->rounded || take_rounding(p, workspace, solver, found, error);
    }
    if (done && energies && !take_curve(solver, choice->rounded, energies)) {
        *error = (dcrf_error){DCRF_ERROR_MEMORY, "out of memory"};
        done = false;
    }
    dcrf_solver_free(&solver);
    return done;
}

static bool take_unary(const prepared_image *p, dcrf_workspace *workspace, outcome *found,
                       dcrf_error *error) {
    const double began_s = seconds_now();
    dcrf_label_by_unary(p->model, found->labels, dcrf_model_variables(p->model), NULL);
    found->solve_s = seconds_now() - began_s;
    found->lower_bound = found->relative_gap = found->proven_share = NAN;
    found->stop = DCRF_OK;
    if (!energy_of(p, workspace, found->labels, &found->energy, error))
        return false;
    found->rounded = found->energy.total;
    return true;
}

/* A method is timed as if run by itself, so its time includes the set-up of the image, even if
 * another method did it. */
static void limit_time(dcrf_workspace *workspace, const solve_choice *choice, double setup_s) {
    const time_frame time = {seconds_now() - setup_s, choice->solver.time_limit_s};
    interrupt_limit(workspace, &time);
}

static bool find_labels(prepared_image *p, dcrf_workspace *workspace, const solve_choice *choice,
                        const method_choice *method, outcome *found, curve *energies,
                        cli_problem *problem) {
    dcrf_error error;
    double regions_s;
    limit_time(workspace, choice, p->read_s);
    if (!set_kernels(p, workspace, &choice->model, problem) ||
        !set_cliques(p, workspace, &choice->model, method->cliques, &regions_s, problem))
        return false;
    found->setup_s = p->read_s + p->plan_s + regions_s;
    limit_time(workspace, choice, found->setup_s);
    const bool done = method->unary
                          ? take_unary(p, workspace, found, &error)
                          : run_solver(p, workspace, choice, method, found, energies, &error);
    return done || library_problem(problem, p->item->name, &error);
}

/* How the labelling differs from that without kernels and cliques. */
static bool find_changes(const prepared_image *p, outcome *found, cli_problem *problem) {
    dcrf_changes changes;
    dcrf_error error;
    if (dcrf_changes_of(p->model, NULL, found->labels, NULL, NULL, NULL, 0, &changes, &error) < 0)
        return library_problem(problem, p->item->name, &error);
    found->changed = changes.changed;
    found->is_constant = changes.labels_after == 1;
    return true;
}

static bool find_score(const prepared_image *p, const solve_choice *choice, outcome *found,
                       cli_problem *problem) {
    return !p->truth ||
           (score_new(&found->counts, p->data->labels, choice->band_px) &&
            score_count(&found->counts, found->labels, p->truth, found->width, found->height)) ||
           out_of_memory(problem, p->item->name);
}

bool prepared_solve(prepared_image *image, dcrf_workspace *workspace, const solve_choice *choice,
                    const method_choice *method, outcome *found, curve *energies,
                    cli_problem *problem) {
    const size_t variables = image_pixels(&image->image);
    *found = (outcome){.width = image->image.width, .height = image->image.height};
    if (energies)
        *energies = (curve){0};
    found->labels = calloc(variables, sizeof *found->labels);
    bool done = found->labels || out_of_memory(problem, image->item->name);
    done = done && find_labels(image, workspace, choice, method, found, energies, problem) &&
           find_changes(image, found, problem) && find_score(image, choice, found, problem);
    if (!done) {
        outcome_free(found);
        if (energies)
            curve_free(energies);
    }
    return done;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The size of an array, from its file header. */
static bool array_size(const char *path, size_t *elements) {
    cli_problem ignored;
    file_bytes bytes;
    npy_array array;
    if (!path || !file_map(path, &bytes, &ignored))
        return false;
    const bool done = npy_recognize(bytes.data, bytes.size) &&
                      npy_parse(bytes.data, bytes.size, path, &array, &ignored);
    if (done)
        *elements = array.count;
    file_free(&bytes);
    return done;
}

static size_t blocks_of(const method_choice *method) {
    if (method->unary || method->solver != DCRF_METHOD_LP)
        return BLOCKS;
    return method->cliques ? LP_CLIQUES_BLOCKS : LP_BLOCKS;
}

const method_choice *hungriest_method(const method_list *methods) {
    const method_choice *hungriest = &methods->of[0];
    for (size_t m = 1; m < methods->count; m++)
        if (blocks_of(&methods->of[m]) > blocks_of(hungriest))
            hungriest = &methods->of[m];
    return hungriest;
}

size_t prepared_estimate_bytes(const dataset *data, const dataset_item *item,
                               const method_choice *method) {
    size_t elements;
    if (!array_size(item->unary_file, &elements))
        return 0;
    const size_t pixels = elements / data->labels;
    const size_t block = pixels * dcrf_padded(data->labels) * sizeof(float);
    return pixels * PIXEL_BYTES + block * blocks_of(method);
}
