/* The functions that JavaScript calls: one image, its model and a run, using the public headers
 * only.
 *
 * JavaScript writes into arrays that live here, reads from them, and passes numbers; it does not
 * know any C structure. A run is stepped from outside, so that the host can check for events (a
 * stroke, a request to stop) between two steps without threads. Calls return a dcrf_status; the
 * message of the last error is at dcrf_web_error.
 *
 * SPDX-License-Identifier: MIT */
#include <dcrf/dcrf.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(type, name) __attribute__((export_name(#name))) type name

struct session {
    dcrf_grid grid;
    size_t pixels, channels, labels;
    unsigned char *image; /* channels of a pixel next to each other */
    float *unary;         /* the energies of a pixel next to each other */
    uint16_t *labelling;
    uint16_t *counts; /* number of possible labels; NULL until something is proven */
    float *marginals; /* stride floats per pixel */
    size_t stride;
    uint8_t *strokes; /* labels, 255 where nothing was drawn */
    dcrf_scribbles *scribbles;
    int32_t *map;        /* a rough mask, negative where unknown; NULL: none */
    float *sureness;     /* confidence of the mask, from 0 to 1; NULL: the default */
    dcrf_mask_info mask; /* the result for the mask */
    float *small;        /* unary numbers at a lower resolution than the image */
    int32_t *regions;    /* superpixels; NULL: none */
    size_t region_count;
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
};

/* Provided by the host: should the current call stop soon? */
__attribute__((import_module("env"), import_name("should_stop"))) int dcrf_host_should_stop(void);

static dcrf_error last_error;
static dcrf_moment last_moment;

EXPORT(const char *, dcrf_web_error)(void) {
    return last_error.message;
}

EXPORT(dcrf_status, dcrf_web_error_status)(void) {
    return last_error.status;
}

static dcrf_status out_of_memory(void) {
    static const char message[] = "out of memory: try a smaller image or fewer labels";
    last_error.status = DCRF_ERROR_MEMORY;
    memcpy(last_error.message, message, sizeof message);
    return DCRF_ERROR_MEMORY;
}

/* ---- a session ------------------------------------------------------------------------------ */

static void end_run(struct session *s) {
    dcrf_solver_free(&s->solver);
}

EXPORT(void, dcrf_web_free)(struct session *s) {
    if (!s)
        return;
    end_run(s);
    dcrf_plan_free(&s->plan);
    dcrf_model_free(&s->model);
    dcrf_scribbles_free(&s->scribbles);
    dcrf_workspace_free(&s->workspace);
    free(s->image);
    free(s->unary);
    free(s->labelling);
    free(s->counts);
    free(s->marginals);
    free(s->strokes);
    free(s->map);
    free(s->sureness);
    free(s->small);
    free(s->regions);
    free(s);
}

static int should_stop(void *user) {
    (void)user;
    return dcrf_host_should_stop();
}

/* NULL if out of memory or a size is out of range. */
EXPORT(struct session *, dcrf_web_new)
(size_t width, size_t height, size_t channels, size_t labels) {
    struct session *s = calloc(1, sizeof *s);
    if (!s) {
        out_of_memory();
        return NULL;
    }
    s->grid = dcrf_grid_2d(width, height);
    s->channels = channels;
    s->labels = labels;
    s->stride = dcrf_padded(labels);
    if (dcrf_model_new(&s->model, &s->grid, labels, &last_error) < 0 ||
        dcrf_workspace_new(&s->workspace, 0, &last_error) < 0) {
        dcrf_web_free(s);
        return NULL;
    }
    dcrf_workspace_set_limit(s->workspace, 0, should_stop, NULL);
    s->pixels = dcrf_model_variables(s->model);
    s->image = calloc(s->pixels, channels ? channels : 1);
    s->unary = calloc(s->pixels, labels * sizeof *s->unary);
    s->labelling = calloc(s->pixels, sizeof *s->labelling);
    s->marginals = calloc(s->pixels, s->stride * sizeof *s->marginals);
    s->strokes = calloc(s->pixels, sizeof *s->strokes);
    if (!s->image || !s->unary || !s->labelling || !s->marginals || !s->strokes) {
        out_of_memory();
        dcrf_web_free(s);
        return NULL;
    }
    return s;
}

/* The arrays: pixels x channels bytes, pixels bytes, pixels x labels floats, pixels 16-bit numbers,
 * pixels x stride floats. */
EXPORT(unsigned char *, dcrf_web_image)(struct session *s) {
    return s->image;
}

EXPORT(uint8_t *, dcrf_web_strokes)(struct session *s) {
    return s->strokes;
}

EXPORT(float *, dcrf_web_unary)(struct session *s) {
    return s->unary;
}

EXPORT(uint16_t *, dcrf_web_labelling)(struct session *s) {
    return s->labelling;
}

EXPORT(float *, dcrf_web_marginals)(struct session *s) {
    return s->marginals;
}

EXPORT(size_t, dcrf_web_stride)(const struct session *s) {
    return s->stride;
}

EXPORT(size_t, dcrf_web_threads)(const struct session *s) {
    return dcrf_workspace_threads(s->workspace);
}

static dcrf_view image_view(const struct session *s) {
    return dcrf_view_interleaved(s->image, DCRF_U8, &s->grid, s->channels);
}

/* ---- the model ------------------------------------------------------------------------------ */

/* Read the unary array again. */
EXPORT(dcrf_status, dcrf_web_set_unary)(struct session *s) {
    end_run(s);
    const dcrf_view view = dcrf_view_interleaved(s->unary, DCRF_F32, &s->grid, s->labels);
    return dcrf_model_set_unary(s->model, &view, &last_error);
}

/* Allocate unary numbers for fewer pixels; NULL if out of memory. */
EXPORT(float *, dcrf_web_small)(struct session *s, size_t pixels) {
    free(s->small);
    s->small = pixels <= s->pixels ? calloc(pixels, s->labels * sizeof *s->small) : NULL;
    if (!s->small)
        out_of_memory();
    return s->small;
}

/* Read them: the labels of a pixel next to each other, of a dcrf_unary_kind. They are enlarged
 * as in the command, guided by the image. */
EXPORT(dcrf_status, dcrf_web_enlarge_unary)
(struct session *s, size_t width, size_t height, int kind) {
    const dcrf_grid from = dcrf_grid_2d(width, height);
    const dcrf_view view = dcrf_view_interleaved(s->small, DCRF_F32, &from, s->labels);
    const dcrf_view guide = image_view(s);
    const dcrf_status status =
        dcrf_unary_energies(&view, &from, (dcrf_unary_kind)kind, 1, &s->grid,
                            width == s->grid.size[0] && height == s->grid.size[1] ? NULL : &guide,
                            s->unary, s->pixels * s->labels, &last_error);
    free(s->small);
    s->small = NULL;
    return status < 0 ? status : dcrf_web_set_unary(s);
}

/* A spatial kernel, or a bilateral one if colour_sigma is above zero. `normalized`: divided by
 * the square roots of the row sums. */
EXPORT(dcrf_status, dcrf_web_add_kernel)
(struct session *s, double sigma_px, double colour_sigma, double weight, int normalized) {
    dcrf_kernel kernel = colour_sigma > 0
                             ? dcrf_kernel_bilateral(sigma_px, colour_sigma, image_view(s), weight)
                             : dcrf_kernel_spatial(sigma_px, weight);
    kernel.normalization = normalized ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    end_run(s);
    dcrf_plan_free(&s->plan);
    return dcrf_model_add_kernel(s->model, &kernel, &last_error);
}

EXPORT(dcrf_status, dcrf_web_set_weight)(struct session *s, size_t kernel, double weight) {
    end_run(s);
    return dcrf_model_set_weight(s->model, kernel, weight, &last_error);
}

/* The default kernels, with the strength that suits the unary energies, times `factor`. */
EXPORT(dcrf_status, dcrf_web_default_kernels)(struct session *s, double factor) {
    end_run(s);
    dcrf_status status = DCRF_OK;
    if (dcrf_model_kernels(s->model) == 0) {
        dcrf_kernel kernels[DCRF_DEFAULT_KERNELS];
        const dcrf_view image = image_view(s);
        const size_t count = dcrf_default_kernels(&image, kernels);
        for (size_t i = 0; i < count && status >= 0; i++)
            status = dcrf_model_add_kernel(s->model, &kernels[i], &last_error);
    }
    dcrf_measured_strength measured;
    if (status >= 0)
        status = dcrf_model_measure_strength(s->model, s->workspace, &measured, &last_error);
    return status < 0 ? status
                      : dcrf_model_set_strength(s->model, measured.strength * factor, &last_error);
}

EXPORT(dcrf_status, dcrf_web_set_strength)(struct session *s, double strength) {
    end_run(s);
    return dcrf_model_set_strength(s->model, strength, &last_error);
}

EXPORT(double, dcrf_web_strength)(const struct session *s) {
    return dcrf_model_strength(s->model);
}

/* ---- strokes -------------------------------------------------------------------------------- */

static int scribbles_should_stop(void *user, size_t round, dcrf_scribbles_stage stage) {
    (void)user, (void)round, (void)stage;
    return dcrf_host_should_stop();
}

/* The kernels that suit strokes: sigma and weight of the spatial one; sigma, colour sigma and
 * weight of the bilateral one. */
EXPORT(const double *, dcrf_web_scribble_kernels)(void) {
    static double figures[5];
    dcrf_scribbles_settings settings;
    dcrf_scribbles_settings_defaults(&settings);
    figures[0] = settings.spatial_sigma;
    figures[1] = settings.spatial_weight;
    figures[2] = settings.bilateral_sigma;
    figures[3] = settings.bilateral_channel_sigma;
    figures[4] = settings.bilateral_weight;
    return figures;
}

static dcrf_status need_scribbles(struct session *s) {
    if (s->scribbles)
        return DCRF_OK;
    dcrf_scribbles_settings settings;
    dcrf_scribbles_settings_defaults(&settings);
    settings.progress = scribbles_should_stop;
    const dcrf_view image = image_view(s);
    return dcrf_scribbles_new(&s->scribbles, &s->grid, &image, s->labels, &settings, s->workspace,
                              &last_error);
}

/* Read the strokes array, and compute the mask, its marginals and the model's unary energies.
 * DCRF_STOP_CANCELLED if the host asked to stop. */
EXPORT(dcrf_status, dcrf_web_scribble)(struct session *s) {
    end_run(s);
    const dcrf_view strokes = dcrf_view_interleaved(s->strokes, DCRF_U8, &s->grid, 1);
    dcrf_status status = need_scribbles(s);
    if (status >= 0)
        status = dcrf_scribbles_set_strokes(s->scribbles, &strokes, &last_error);
    if (status >= 0)
        status = dcrf_scribbles_update(s->scribbles, &last_error);
    if (status != DCRF_OK)
        return status;
    status = dcrf_scribbles_labels(s->scribbles, s->labelling, s->pixels, &last_error);
    if (status >= 0)
        status = dcrf_scribbles_marginals(s->scribbles, s->marginals, s->pixels * s->stride,
                                          s->stride, &last_error);
    size_t stride;
    const float *energies = dcrf_model_unary(dcrf_scribbles_model(s->scribbles), &stride);
    dcrf_view view = dcrf_view_interleaved(energies, DCRF_F32, &s->grid, stride);
    view.channels = s->labels;
    return status < 0 ? status : dcrf_model_set_unary(s->model, &view, &last_error);
}

/* ---- rough masks ---------------------------------------------------------------------------- */

/* The array of a rough mask: 32-bit labels, negative where unknown. NULL: out of memory. */
EXPORT(int32_t *, dcrf_web_map)(struct session *s) {
    if (!s->map)
        s->map = calloc(s->pixels, sizeof *s->map);
    if (!s->map)
        out_of_memory();
    return s->map;
}

/* The array of the mask's confidence, which is used from now on. NULL: out of memory. */
EXPORT(float *, dcrf_web_sureness)(struct session *s) {
    if (!s->sureness)
        s->sureness = calloc(s->pixels, sizeof *s->sureness);
    if (!s->sureness)
        out_of_memory();
    return s->sureness;
}

/* Read the map: set the model's unary energies from it, and the kernels that go with them, with
 * their weights times `factor`. */
EXPORT(dcrf_status, dcrf_web_set_mask)(struct session *s, double factor) {
    end_run(s);
    const dcrf_view image = image_view(s);
    const dcrf_view map = dcrf_view_interleaved(s->map, DCRF_I32, &s->grid, 1);
    const dcrf_view sure = dcrf_view_interleaved(s->sureness, DCRF_F32, &s->grid, 1);
    dcrf_kernel kernels[DCRF_MASK_KERNELS];
    dcrf_status status =
        dcrf_mask_energies(&s->grid, &image, &map, s->labels, s->sureness ? &sure : NULL, NULL,
                           s->workspace, s->unary, s->pixels * s->labels, &s->mask, &last_error);
    if (status >= 0)
        status = dcrf_web_set_unary(s);
    const size_t count = status < 0 ? 0 : dcrf_mask_kernels(&s->mask, &image, kernels);
    const int is_new = dcrf_model_kernels(s->model) == 0;
    for (size_t i = 0; i < count && status >= 0; i++) {
        kernels[i].weight *= factor;
        status = is_new ? dcrf_model_add_kernel(s->model, &kernels[i], &last_error)
                        : dcrf_model_set_weight(s->model, i, kernels[i].weight, &last_error);
    }
    return status;
}

/* How far the labelling array has moved from the map: changed pixels, pixels at its borders,
 * their mean distance from the map's borders; and known pixels of the map. Then the kernels of a
 * mask, as in dcrf_web_scribble_kernels. */
EXPORT(const double *, dcrf_web_mask_moves)(struct session *s) {
    static double figures[9];
    const dcrf_view map = dcrf_view_interleaved(s->map, DCRF_I32, &s->grid, 1);
    dcrf_mask_moves moves;
    if (dcrf_mask_compare(&s->grid, &map, s->labelling, s->workspace, &moves, &last_error) < 0)
        return NULL;
    figures[0] = (double)moves.changed;
    figures[1] = (double)moves.border;
    figures[2] = moves.mean_offset;
    figures[3] = (double)s->mask.known;
    figures[4] = s->mask.spatial_sigma;
    figures[5] = s->mask.spatial_weight;
    figures[6] = s->mask.bilateral_sigma;
    figures[7] = s->mask.bilateral_channel_sigma;
    figures[8] = s->mask.bilateral_weight;
    return figures;
}

/* ---- superpixels ---------------------------------------------------------------------------- */

/* Superpixels of the image: method 0 is mean shift, 1 SLIC, anything else none. */
EXPORT(dcrf_status, dcrf_web_superpixels)(struct session *s, int method) {
    free(s->regions);
    s->regions = NULL;
    s->region_count = 0;
    if (method < 0 || !dcrf_superpixel_method_name((dcrf_superpixel_method)method))
        return DCRF_OK;
    s->regions = calloc(s->pixels, sizeof *s->regions);
    if (!s->regions)
        return out_of_memory();
    dcrf_superpixel_settings settings;
    dcrf_superpixel_settings_defaults(&settings);
    settings.method = (dcrf_superpixel_method)method;
    const dcrf_view view = image_view(s);
    return dcrf_superpixels(&s->grid, &view, &settings, s->workspace, s->regions, s->pixels,
                            &s->region_count, &last_error);
}

EXPORT(int32_t *, dcrf_web_regions)(struct session *s) {
    return s->regions;
}

EXPORT(size_t, dcrf_web_region_count)(const struct session *s) {
    return s->region_count;
}

/* Use the superpixels as cliques, with costs gamma * exp(-variance / eta); gamma = 0: no
 * cliques; below zero: what suits the strength. */
EXPORT(dcrf_status, dcrf_web_set_cliques)(struct session *s, double gamma, double eta) {
    end_run(s);
    if (gamma < 0)
        gamma = dcrf_default_gamma(s->model);
    if (!s->regions || !(gamma > 0))
        return dcrf_model_set_cliques(s->model, 0, NULL, NULL, NULL, &last_error);
    const dcrf_view map = dcrf_view_interleaved(s->regions, DCRF_I32, &s->grid, 1);
    const dcrf_view image = image_view(s);
    const dcrf_status status = dcrf_model_set_clique_map(s->model, &map, 0, &last_error);
    return status < 0 ? status
                      : dcrf_model_set_clique_costs(s->model, &image, gamma, eta, &last_error);
}

/* ---- a run ---------------------------------------------------------------------------------- */

static int keep_moment(void *user, const dcrf_moment *moment) {
    (void)user;
    last_moment = *moment;
    return dcrf_host_should_stop();
}

static dcrf_status need_plan(struct session *s, dcrf_operator_kind kind) {
    return s->plan ? DCRF_OK : dcrf_plan_new(&s->plan, s->model, kind, s->workspace, &last_error);
}

/* Prepare a run. Negative numbers mean the default. `of_scribbles`: on the model of the strokes,
 * which has its own kernels, no cliques, and already a plan. */
EXPORT(dcrf_status, dcrf_web_start)
(struct session *s, int method, double iterations, double gap, double time_limit_s,
 int of_scribbles) {
    end_run(s);
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, (dcrf_method)method);
    if (iterations >= 0)
        settings.iterations = (size_t)iterations;
    if (gap >= 0)
        settings.gap = gap;
    if (time_limit_s >= 0)
        settings.time_limit_s = time_limit_s;
    settings.progress = keep_moment;
    if (of_scribbles)
        return dcrf_solver_new(&s->solver, dcrf_scribbles_plan(s->scribbles), s->workspace,
                               &settings, &last_error);
    const dcrf_status status = need_plan(s, DCRF_OPERATOR_FAST);
    return status < 0 ? status
                      : dcrf_solver_new(&s->solver, s->plan, s->workspace, &settings, &last_error);
}

EXPORT(dcrf_status, dcrf_web_step)(struct session *s) {
    return dcrf_solver_step(s->solver, &last_error);
}

/* The current labels and marginals of the run. */
EXPORT(dcrf_status, dcrf_web_read)(struct session *s) {
    const dcrf_status status = dcrf_solver_labels(s->solver, s->labelling, s->pixels, &last_error);
    return status < 0 ? status
                      : dcrf_solver_marginals(s->solver, s->marginals, s->pixels * s->stride,
                                              s->stride, &last_error);
}

/* Round, polish, and read. */
EXPORT(dcrf_status, dcrf_web_finish)(struct session *s) {
    const dcrf_status status = dcrf_solver_finish(s->solver, &last_error);
    return status < 0 ? status : dcrf_web_read(s);
}

/* After a run of the LP: labels and, in the counts array, how many labels each pixel can have in
 * an optimal labelling. One means proven. When stopped, they are what is known so far. */
EXPORT(dcrf_status, dcrf_web_prove)(struct session *s, double time_limit_s) {
    if (!s->counts)
        s->counts = calloc(s->pixels, sizeof *s->counts);
    if (!s->counts)
        return out_of_memory();
    dcrf_workspace_set_limit(s->workspace, time_limit_s, should_stop, NULL);
    dcrf_status status = dcrf_solver_prove(s->solver, &last_error);
    dcrf_workspace_set_limit(s->workspace, 0, should_stop, NULL);
    if (status >= 0)
        status = dcrf_solver_labels_left(s->solver, s->counts, s->pixels, &last_error);
    return status < 0 ? status
                      : dcrf_solver_labels(s->solver, s->labelling, s->pixels, &last_error);
}

EXPORT(uint16_t *, dcrf_web_counts)(struct session *s) {
    return s->counts;
}

/* ---- figures -------------------------------------------------------------------------------- */

/* The last moment: time, iteration, objective, energy, best energy, lower bound. */
EXPORT(const double *, dcrf_web_moment)(void) {
    static double figures[6];
    figures[0] = last_moment.time_s;
    figures[1] = (double)last_moment.iteration;
    figures[2] = last_moment.objective;
    figures[3] = last_moment.energy;
    figures[4] = last_moment.best_energy;
    figures[5] = last_moment.lower_bound;
    return figures;
}

/* Of the run: energy (total, unary, pairwise, cliques), objective, lower bound, relative gap,
 * iterations, whether the labelling is constant. */
EXPORT(const double *, dcrf_web_info)(const struct session *s) {
    static double figures[9];
    dcrf_solver_info info = {0}; /* zero without a run */
    dcrf_solver_get_info(s->solver, &info);
    figures[0] = info.energy.total;
    figures[1] = info.energy.unary;
    figures[2] = info.energy.pairwise;
    figures[3] = info.energy.cliques;
    figures[4] = info.objective;
    figures[5] = info.lower_bound;
    figures[6] = info.relative_gap;
    figures[7] = (double)info.iterations;
    figures[8] = info.is_constant;
    return figures;
}

/* The energy of the labelling array, term by term. */
EXPORT(const double *, dcrf_web_energy)(struct session *s) {
    static double figures[4];
    dcrf_energy energy;
    if (need_plan(s, DCRF_OPERATOR_FAST) < 0 ||
        dcrf_energy_at_most(s->plan, s->workspace, s->labelling, &energy, NULL, 0, &last_error) < 0)
        return NULL;
    figures[0] = energy.total;
    figures[1] = energy.unary;
    figures[2] = energy.pairwise;
    figures[3] = energy.cliques;
    return figures;
}

EXPORT(const char *, dcrf_web_version)(void) {
    return dcrf_version();
}

EXPORT(const char *, dcrf_web_cpu)(void) {
    return dcrf_cpu_name(dcrf_cpu_in_use());
}
