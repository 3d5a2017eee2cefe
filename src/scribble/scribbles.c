/* Scribbles: rounds of fitting colours, measuring distances and mean field.
 *
 *   members_0 = the strokes
 *   for r = 0, 1, ..., refits:
 *     mixtures_r     fitted to the colours of members_r                    (colour_model.c)
 *     energies_r     from mixtures_r and geodesic distances over Q_r-1     (energies.c)
 *     Q_r            mean field under energies_r and the kernels
 *     members_r+1    the variables of which Q_r is sure
 *
 * as GrabCut does with graph cuts; Q_-1 comes from the colours. Every update starts from the
 * strokes alone, so the mask does not depend on the order in which they were drawn. Only what the
 * image determines is kept between updates: its colours in bins, and the kernels. */
#include "core/error.h"
#include "core/timer.h"
#include "core/workspace.h"
#include "model/view.h"
#include "scribble/energies.h"
#include "scribble/smoother.h"

#include <dcrf/masks.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SURE_PROBABILITY 0.9f
#define NO_STROKE 255
#define VARIABLES_PER_CHUNK 1024

struct dcrf_scribbles {
    dcrf_scribbles_settings settings;
    dcrf_grid grid;
    size_t variables, labels;
    dcrf_workspace *workspace;
    struct dcrf_colour_bins bins;
    struct dcrf_colour_model colours;
    struct dcrf_stroke_energies energies;
    int32_t *strokes;
    int32_t *read;                 /* strokes while they are checked; then the members of a round */
    struct dcrf_smoother smoother; /* the energies and distributions of the round */
    float *marginals;              /* the distributions of the last update */
    uint16_t *mask;
    bool has_strokes, is_ready;
    bool is_current; /* the mask belongs to the current strokes */
    dcrf_scribbles_info info;
    struct dcrf_owned owned;
};

/* ---- settings ------------------------------------------------------------------------------- */

void dcrf_scribbles_settings_defaults(dcrf_scribbles_settings *settings) {
    if (!settings)
        return;
    *settings = (dcrf_scribbles_settings){.components = 5,
                                          .colour_weight = 0.25,
                                          .colour_limit = 3,
                                          .distance_weight = 3.5,
                                          .step_length = 0.012,
                                          .refits = 1,
                                          .iterations = 3,
                                          .spatial_sigma = 3,
                                          .spatial_weight = 2,
                                          .bilateral_sigma = 40,
                                          .bilateral_channel_sigma = 8,
                                          .bilateral_weight = 2,
                                          .progress = NULL,
                                          .progress_user = NULL,
                                          .reserved = {0}};
}

static dcrf_status check_number(const char *name, double value, double least, dcrf_error *error) {
    if (value >= least && isfinite(value))
        return DCRF_OK;
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                     "the %s of the scribbles is %g; it must be finite and not below %g", name,
                     value, least);
}

static dcrf_status check_settings(const dcrf_scribbles_settings *s, dcrf_error *error) {
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"colour weight", s->colour_weight},     {"colour limit", s->colour_limit},
        {"distance weight", s->distance_weight}, {"step length", s->step_length},
        {"spatial weight", s->spatial_weight},   {"bilateral weight", s->bilateral_weight}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        TRY(check_number(numbers[i].name, numbers[i].value, 0, error));
    if (s->components < 1 || s->components > DCRF_SCRIBBLES_MAX_COMPONENTS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "scribbles need 1 to %d components per label, not %zu",
                         DCRF_SCRIBBLES_MAX_COMPONENTS, s->components);
    return dcrf_check_reserved(s->reserved, sizeof s->reserved, "the settings of scribbles", error);
}

/* ---- new and free --------------------------------------------------------------------------- */

/* On the scale of the image's values. */
static double channel_sigma(const dcrf_scribbles *s) {
    return dcrf_colour_bins_sigma(&s->bins, s->settings.bilateral_channel_sigma);
}

static bool take_memory(dcrf_scribbles *s) {
    dcrf_pool *pool = dcrf_workspace_pool(s->workspace);
    s->strokes = dcrf_own(&s->owned, s->variables, sizeof *s->strokes);
    s->read = dcrf_own(&s->owned, s->variables, sizeof *s->read);
    s->marginals =
        dcrf_own_zero(&s->owned, s->variables, s->smoother.stride * sizeof *s->marginals);
    s->mask = dcrf_own_zero(&s->owned, s->variables, sizeof *s->mask);
    return !s->owned.is_short &&
           dcrf_colour_model_init(&s->colours, &s->bins, s->labels, s->settings.components) &&
           dcrf_stroke_energies_init(&s->energies, &s->grid, &s->settings, &s->colours, pool);
}

static dcrf_status prepare(dcrf_scribbles *s, const dcrf_view *image, dcrf_error *error) {
    TRY(dcrf_colour_bins_init(&s->bins, &s->grid, image, dcrf_workspace_pool(s->workspace), error));
    const dcrf_mask_info kind = {.spatial_sigma = s->settings.spatial_sigma,
                                 .spatial_weight = s->settings.spatial_weight,
                                 .bilateral_sigma = s->settings.bilateral_sigma,
                                 .bilateral_channel_sigma = channel_sigma(s),
                                 .bilateral_weight = s->settings.bilateral_weight};
    dcrf_kernel kernels[DCRF_MASK_KERNELS];
    TRY(dcrf_smoother_init(&s->smoother, &s->grid, s->labels, kernels,
                           dcrf_mask_kernels(&kind, image, kernels), s->workspace, error));
    return take_memory(s) ? DCRF_OK : dcrf_fail_memory(error, "the scribbles");
}

static dcrf_status check_arguments(const dcrf_grid *grid, const dcrf_view *image, size_t labels,
                                   const dcrf_scribbles_settings *settings,
                                   const dcrf_workspace *workspace, size_t *variables,
                                   dcrf_error *error) {
    if (!grid || !image || !workspace)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "scribbles need a grid, an image and a workspace");
    if (labels < 2 || labels > DCRF_SCRIBBLES_MAX_LABELS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "scribbles need 2 to %d labels, not %zu",
                         DCRF_SCRIBBLES_MAX_LABELS, labels);
    if (image->channels < 1 || image->channels > DCRF_MIXTURE_DIMENSION_MAX)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the image under the scribbles has %zu channels; 1 to %d can be used",
                         image->channels, DCRF_MIXTURE_DIMENSION_MAX);
    TRY(dcrf_grid_check(grid, variables, error));
    return check_settings(settings, error);
}

dcrf_status dcrf_scribbles_new(dcrf_scribbles **out, const dcrf_grid *grid, const dcrf_view *image,
                               size_t labels, const dcrf_scribbles_settings *settings,
                               dcrf_workspace *workspace, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    dcrf_scribbles_settings chosen;
    size_t variables;
    if (!out)
        return dcrf_fail_null(error, "the place for the scribbles");
    *out = NULL;
    dcrf_scribbles_settings_defaults(&chosen);
    if (settings)
        chosen = *settings;
    TRY(check_arguments(grid, image, labels, &chosen, workspace, &variables, error));
    DCRF_ENTER(workspace, error);
    DCRF_AT_END(dcrf_scribbles_free) dcrf_scribbles *s = dcrf_allocate_zero(1, sizeof *s);
    if (!s)
        return dcrf_fail_memory(error, "the scribbles");
    s->settings = chosen;
    s->grid = *grid;
    s->variables = variables;
    s->labels = labels;
    s->workspace = workspace;
    dcrf_workspace_hold(workspace);
    TRY(prepare(s, image, error));
    s->info.prepare_s = dcrf_time_s() - began_s;
    *out = DCRF_PASS_ON(s);
    return DCRF_OK;
}

void dcrf_scribbles_free(dcrf_scribbles **pointer) {
    if (!pointer || !*pointer)
        return;
    dcrf_scribbles *s = *pointer;
    dcrf_stroke_energies_clear(&s->energies);
    dcrf_colour_model_clear(&s->colours);
    dcrf_smoother_clear(&s->smoother);
    dcrf_colour_bins_clear(&s->bins);
    dcrf_disown(&s->owned);
    dcrf_workspace_free(&s->workspace);
    dcrf_release(s);
    *pointer = NULL;
}

/* ---- strokes -------------------------------------------------------------------------------- */

/* Replace values that are not strokes by -1, and count the strokes. */
static dcrf_status check_strokes(const dcrf_scribbles *s, int32_t *strokes, size_t *count,
                                 size_t *labels_drawn, dcrf_error *error) {
    bool is_drawn[DCRF_SCRIBBLES_MAX_LABELS] = {false};
    *count = *labels_drawn = 0;
    for (size_t a = 0; a < s->variables; a++) {
        if (strokes[a] < 0 || strokes[a] == NO_STROKE) {
            strokes[a] = -1;
            continue;
        }
        if ((size_t)strokes[a] >= s->labels) {
            size_t position[DCRF_MAX_AXES];
            dcrf_grid_position(&s->grid, a, position);
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "there is a stroke of the label %d at (%zu, %zu, %zu); labels run "
                             "from 0 to %zu",
                             (int)strokes[a], position[0], position[1], position[2], s->labels - 1);
        }
        *labels_drawn += !is_drawn[strokes[a]];
        is_drawn[strokes[a]] = true;
        (*count)++;
    }
    if (*labels_drawn < 2)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "there are strokes of %s; two labels are needed",
                         *labels_drawn ? "one label only" : "no label");
    return DCRF_OK;
}

dcrf_status dcrf_scribbles_set_strokes(dcrf_scribbles *s, const dcrf_view *strokes,
                                       dcrf_error *error) {
    size_t count, labels_drawn;
    if (!s || !strokes)
        return dcrf_fail_null(error, "the object of the scribbles or the map of strokes");
    const size_t bytes = s->variables * sizeof *s->strokes;
    TRY(dcrf_view_copy_integers(strokes, &s->grid, "strokes", s->read, error));
    TRY(check_strokes(s, s->read, &count, &labels_drawn, error));
    if (!s->has_strokes || memcmp(s->strokes, s->read, bytes) != 0)
        s->is_current = false;
    memcpy(s->strokes, s->read, bytes);
    s->has_strokes = true;
    s->info.strokes = count;
    s->info.labels_drawn = labels_drawn;
    return DCRF_OK;
}

/* ---- the update ----------------------------------------------------------------------------- */

/* Strokes are always among the members, since Q is certain there. */
static void choose_members(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_scribbles *s = context;
    for (size_t a = begin; a < end; a++) {
        const size_t label = dcrf_smoother_likeliest(&s->smoother, a);
        s->read[a] =
            s->smoother.q[a * s->smoother.stride + label] > SURE_PROBABILITY ? (int32_t)label : -1;
    }
}

/* Before the first mean field, the beliefs come from the colours. */
static void believe_colours(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_scribbles *s = context;
    for (size_t a = begin; a < end; a++)
        memcpy(s->smoother.q + a * s->smoother.stride,
               s->colours.probability + s->bins.bin_of[a] * s->labels,
               s->labels * sizeof *s->smoother.q);
}

static bool is_cancelled(const dcrf_scribbles *s, size_t round, dcrf_scribbles_stage stage) {
    return s->settings.progress &&
           s->settings.progress(s->settings.progress_user, round, stage) != 0;
}

/* Names the interrupted work in messages. */
#define BEING_DONE "working with scribbles"

static dcrf_status run_round(dcrf_scribbles *s, size_t round, dcrf_scribbles_info *info,
                             dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(s->workspace);
    const double began_s = dcrf_time_s();
    if (is_cancelled(s, round, DCRF_SCRIBBLES_COLOURS))
        return DCRF_STOP_CANCELLED;
    if (round > 0)
        dcrf_parallel_for(pool, s->variables, VARIABLES_PER_CHUNK, choose_members, s);
    dcrf_colour_model_fit(&s->colours, round > 0 ? s->read : s->strokes, s->variables, round > 0,
                          pool);
    const double fitted_s = dcrf_time_s();
    TRY(dcrf_go_on(s->workspace, BEING_DONE, error));
    if (is_cancelled(s, round, DCRF_SCRIBBLES_DISTANCES))
        return DCRF_STOP_CANCELLED;
    if (round == 0)
        dcrf_parallel_for(pool, s->variables, VARIABLES_PER_CHUNK, believe_colours, s);
    if (!dcrf_stroke_energies_compute(&s->energies, s->strokes, s->smoother.q, s->smoother.unary,
                                      s->smoother.stride, s->workspace))
        return dcrf_fail_interrupted(s->workspace, BEING_DONE, error);
    const double measured_s = dcrf_time_s();
    if (is_cancelled(s, round, DCRF_SCRIBBLES_MEAN_FIELD))
        return DCRF_STOP_CANCELLED;
    const dcrf_status status = dcrf_smoother_run(&s->smoother, s->settings.iterations, error);
    info->rounds++;
    info->colours_s += fitted_s - began_s;
    info->distances_s += measured_s - fitted_s;
    info->mean_field_s += dcrf_time_s() - measured_s;
    return status;
}

/* The unary energies are passed to the model in rows of `stride` floats. */
static dcrf_status publish_energies(dcrf_scribbles *s, dcrf_error *error) {
    dcrf_view view =
        dcrf_view_interleaved(s->smoother.unary, DCRF_F32, &s->grid, s->smoother.stride);
    view.channels = s->labels;
    return dcrf_model_set_unary(s->smoother.model, &view, error);
}

dcrf_status dcrf_scribbles_update(dcrf_scribbles *s, dcrf_error *error) {
    if (!s)
        return dcrf_fail_null(error, "the object of the scribbles");
    DCRF_ENTER(s->workspace, error);
    dcrf_scribbles_info info = {.strokes = s->info.strokes,
                                .labels_drawn = s->info.labels_drawn,
                                .prepare_s = s->info.prepare_s};
    dcrf_status status = DCRF_OK;
    if (!s->has_strokes)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the scribbles have no strokes yet");
    if (s->is_current)
        return DCRF_OK;
    for (size_t round = 0; round <= s->settings.refits && status == DCRF_OK; round++)
        status = run_round(s, round, &info, error);
    if (status == DCRF_OK)
        status = publish_energies(s, error);
    if (status != DCRF_OK)
        return status;
    for (size_t a = 0; a < s->variables; a++) {
        const uint16_t label = (uint16_t)dcrf_smoother_likeliest(&s->smoother, a);
        info.changed += !s->is_ready || s->mask[a] != label;
        s->mask[a] = label;
    }
    float *finished = s->smoother.q;
    s->smoother.q = s->marginals;
    s->marginals = finished;
    s->is_ready = s->is_current = true;
    s->info = info;
    return DCRF_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

int dcrf_scribbles_is_ready(const dcrf_scribbles *s) {
    return s && s->is_ready;
}

static dcrf_status check_ready(const dcrf_scribbles *s, dcrf_error *error) {
    if (!s)
        return dcrf_fail_null(error, "the object of the scribbles");
    return s->is_ready ? DCRF_OK
                       : dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                   "the scribbles have not been updated: there is no mask yet");
}

dcrf_status dcrf_scribbles_labels(const dcrf_scribbles *s, uint16_t *labels, size_t count,
                                  dcrf_error *error) {
    TRY(check_ready(s, error));
    TRY(dcrf_check_room(labels, count, s->variables, "the labels", error));
    memcpy(labels, s->mask, s->variables * sizeof *labels);
    return DCRF_OK;
}

dcrf_status dcrf_scribbles_marginals(const dcrf_scribbles *s, float *marginals, size_t count,
                                     size_t stride, dcrf_error *error) {
    TRY(check_ready(s, error));
    TRY(dcrf_check_rows(marginals, count, s->variables, s->labels, stride, "the marginals", error));
    for (size_t a = 0; a < s->variables; a++)
        memcpy(marginals + a * stride, s->marginals + a * s->smoother.stride,
               s->labels * sizeof *marginals);
    return DCRF_OK;
}

const dcrf_model *dcrf_scribbles_model(const dcrf_scribbles *s) {
    return s ? s->smoother.model : NULL;
}

const dcrf_plan *dcrf_scribbles_plan(const dcrf_scribbles *s) {
    return s ? s->smoother.plan : NULL;
}

void dcrf_scribbles_get_settings(const dcrf_scribbles *s, dcrf_scribbles_settings *settings) {
    if (!s || !settings)
        return;
    *settings = s->settings;
    settings->bilateral_channel_sigma = channel_sigma(s);
}

void dcrf_scribbles_get_info(const dcrf_scribbles *s, dcrf_scribbles_info *info) {
    if (s && info)
        *info = s->info;
}
