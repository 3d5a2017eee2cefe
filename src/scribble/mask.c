/* Energies of a rough label map: rounds of colours, distances and mean field.
 *
 *   members_1 = the map, except within a band around its borders
 *   for r = 1, 2, ..., rounds:
 *     colours_r     densities of the colours of members_r                      (mask_colours.c)
 *     phi_r         -ln Phi((d_l - t_l,r) / sigma_r) + w colours_r             (mask_border.c)
 *     Q_r           mean field under phi_r and the kernels
 *     t_l,r+1       offset of the border of label l in Q_r
 *     members_r+1   the map away from its borders, and the variables of which Q_r is sure
 *
 * In the first round sigma is wide, to find out by how much the map is too large or too small. The
 * later rounds keep that offset, and sigma is the spread of the borders found by the previous
 * round. So a careful map barely changes, and a careless one is trusted little. An offset found by
 * chance grows from round to round, so its spread must become smaller to be believed. From the
 * third round on, colours are weighted by how much they tell about labels near the borders
 * (mask_colours.c), and sigma is narrower where that is little: borders found by such colours may
 * not be errors of the map. The result is phi of the last round.
 *
 * A large picture is reduced for all this (mask_reduce.c). Then mean field runs once more, under
 * phi of the last round; the result is -ln Q, enlarged with the picture's colours as a guide, and
 * the kernels are those that follow edges within a cell. */
#include "core/error.h"
#include "core/timer.h"
#include "model/unary.h"
#include "model/view.h"
#include "scribble/mask_border.h"
#include "scribble/mask_colours.h"
#include "scribble/mask_reduce.h"
#include "scribble/smoother.h"

#include <dcrf/scribbles.h>
#include <dcrf/unary.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define THIN 20.0               /* units: bands are narrower at objects of smaller radius */
#define OFFSET_BANDS 2.5        /* bands: borders farther away belong to something else */
#define LATER_OFFSET_FACTOR 1.1 /* offsets are underestimated, most in the first round */
#define DOUBT_PER_ROUND 1.0     /* spreads: smaller offsets are not believed */
#define SPREAD_FACTOR 0.85
#define LEAST_SIGMA 1.0     /* units */
#define UNTRUSTED_SIGMA 0.4 /* factor on sigma where colours tell nothing */
#define WITNESSES_FROM 0.75 /* bands */
#define WITNESSES_TO 3.0
#define FIRST_TESTED_ROUND 2
#define INFORMATION_NONE 0.1 /* the score of labels with the same colours */
#define INFORMATION_FULL 0.45
#define SPATIAL_SIGMA_MIN 0.5
#define CELL (2.0 / 3) /* units: large pictures are reduced to cells of this size */
#define CELL_ITERATIONS 10
#define EDGE_WEIGHT (1.0 / 6) /* factors on the kernels within a cell */
#define EDGE_CHANNEL_SIGMA 1.6
#define MAX_CHANNELS (DCRF_MAX_FEATURES - DCRF_MAX_AXES)
#define VARIABLES_PER_CHUNK 1024

static const char what[] = "the energies of the mask";

struct task {
    dcrf_mask_settings settings;
    dcrf_grid grid;
    size_t variables, labels;
    dcrf_workspace *workspace;
    int32_t *map, *labelling;
    float *confidence; /* 0 to 1; NULL: not given */
    struct dcrf_mask_border border;
    struct dcrf_colour_bins bins;
    struct dcrf_mask_colours colours;
    struct dcrf_smoother smoother; /* `message` holds the members until mean field */
    size_t *label_sizes;
    double *sigma;        /* of the current round, per label */
    double colour_weight; /* of the current round */
    double witnesses_to;  /* bands */
    struct dcrf_owned owned;
};

/* ---- settings ------------------------------------------------------------------------------- */

void dcrf_mask_settings_defaults(dcrf_mask_settings *settings) {
    if (!settings)
        return;
    *settings = (dcrf_mask_settings){.rounds = 4,
                                     .iterations = 4,
                                     .first_sigma = 6,
                                     .later_sigma = 4.5,
                                     .offset_factor = 1.2,
                                     .band = 8,
                                     .colour_weight = 1.2,
                                     .colour_limit = 4,
                                     .spatial_sigma = 1,
                                     .spatial_weight = 3,
                                     .bilateral_sigma = 6,
                                     .bilateral_channel_sigma = 5,
                                     .bilateral_weight = 6,
                                     .reserved = {0}};
}

static dcrf_status check_settings(const dcrf_mask_settings *s, dcrf_error *error) {
    const double above_zero[] = {s->first_sigma,   s->later_sigma,     s->band,
                                 s->spatial_sigma, s->bilateral_sigma, s->bilateral_channel_sigma};
    const double not_below[] = {s->offset_factor, s->colour_weight, s->colour_limit,
                                s->spatial_weight, s->bilateral_weight};
    bool is_good = s->rounds >= 1;
    for (size_t i = 0; i < sizeof above_zero / sizeof *above_zero; i++)
        is_good = is_good && above_zero[i] > 0 && isfinite(above_zero[i]);
    for (size_t i = 0; i < sizeof not_below / sizeof *not_below; i++)
        is_good = is_good && not_below[i] >= 0 && isfinite(not_below[i]);
    return is_good ? dcrf_check_reserved(s->reserved, sizeof s->reserved, "the settings of a mask",
                                         error)
                   : dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                               "the settings of the mask need a round, sigmas and a band above "
                               "zero, and weights not below");
}

static dcrf_status check_arguments(const dcrf_grid *grid, const dcrf_view *image,
                                   const dcrf_view *map, size_t labels, const float *energies,
                                   size_t count, const dcrf_workspace *workspace,
                                   dcrf_error *error) {
    size_t variables;
    if (!grid || !image || !map || !workspace || !energies)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "a mask needs a grid, an image, a map, a workspace and room for energies");
    if (labels < 2 || labels > DCRF_MAX_LABELS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a mask needs 2 to %d labels, not %zu",
                         DCRF_MAX_LABELS, labels);
    if (image->channels < 1 || image->channels > MAX_CHANNELS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the image under the mask has %zu channels; 1 to %d can be used",
                         image->channels, MAX_CHANNELS);
    TRY(dcrf_grid_check(grid, &variables, error));
    return dcrf_check_rows(energies, count, variables, labels, labels, "the energies", error);
}

/* ---- what does not change between rounds ---------------------------------------------------- */

static dcrf_status read_map(struct task *t, const dcrf_view *map, dcrf_mask_info *info,
                            dcrf_error *error) {
    TRY(dcrf_view_copy_integers(map, &t->grid, "the mask", t->map, error));
    for (size_t a = 0; a < t->variables; a++) {
        if (t->map[a] >= 0 && (size_t)t->map[a] >= t->labels)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the mask has the label %d; labels run from 0 to %zu", (int)t->map[a],
                             t->labels - 1);
        if (t->map[a] < 0)
            continue;
        info->labels_used += t->label_sizes[t->map[a]]++ == 0;
        info->known++;
    }
    return info->known > 0
               ? DCRF_OK
               : dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the mask knows the label of no pixel");
}

static dcrf_status read_confidence(struct task *t, const dcrf_view *confidence, dcrf_error *error) {
    TRY(dcrf_view_copy(confidence, &t->grid, "the confidence", NULL, t->confidence, 1, error));
    for (size_t a = 0; a < t->variables; a++) {
        if (!(t->confidence[a] >= 0 && t->confidence[a] <= 1))
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the confidence of a mask lies between 0 and 1; there is %g",
                             (double)t->confidence[a]);
        if (!(t->confidence[a] > 0))
            t->map[a] = -1;
    }
    return DCRF_OK;
}

static dcrf_status read_inputs(struct task *t, const dcrf_view *map, const dcrf_view *confidence,
                               struct dcrf_owned *owned, dcrf_mask_info *info, dcrf_error *error) {
    t->map = dcrf_own(owned, t->variables, sizeof *t->map);
    t->label_sizes = dcrf_own_zero(owned, t->labels, sizeof *t->label_sizes);
    if (confidence)
        t->confidence = dcrf_own(owned, t->variables, sizeof *t->confidence);
    if (owned->is_short)
        return dcrf_fail_memory(error, what);
    TRY(read_map(t, map, info, error));
    return confidence ? read_confidence(t, confidence, error) : DCRF_OK;
}

static void describe_kernels(const struct task *t, dcrf_mask_info *info) {
    const dcrf_mask_settings *s = &t->settings;
    const double least = dcrf_grid_least_spacing(&t->grid);
    info->unit = t->border.unit;
    info->spatial_sigma = fmax(s->spatial_sigma * info->unit, SPATIAL_SIGMA_MIN * least);
    info->bilateral_sigma = fmax(s->bilateral_sigma * info->unit, least);
    info->bilateral_channel_sigma = dcrf_colour_bins_sigma(&t->bins, s->bilateral_channel_sigma);
    info->spatial_weight = s->spatial_weight;
    info->bilateral_weight = s->bilateral_weight;
}

size_t dcrf_mask_kernels(const dcrf_mask_info *info, const dcrf_view *image,
                         dcrf_kernel kernels[DCRF_MASK_KERNELS]) {
    size_t count = 0;
    if (!info || !kernels)
        return 0;
    if (info->spatial_weight > 0)
        kernels[count++] = dcrf_kernel_spatial(info->spatial_sigma, info->spatial_weight);
    if (image && info->bilateral_weight > 0)
        kernels[count++] = dcrf_kernel_bilateral(
            info->bilateral_sigma, info->bilateral_channel_sigma, *image, info->bilateral_weight);
    return count;
}

static dcrf_status prepare(struct task *t, const dcrf_view *image, dcrf_mask_info *info,
                           dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(t->workspace);
    dcrf_kernel kernels[DCRF_MASK_KERNELS];
    t->labelling = dcrf_own(&t->owned, t->variables, sizeof *t->labelling);
    t->sigma = dcrf_own_zero(&t->owned, t->labels, sizeof *t->sigma);
    if (t->owned.is_short)
        return dcrf_fail_memory(error, what);
    TRY(dcrf_colour_bins_init(&t->bins, &t->grid, image, pool, error));
    TRY(dcrf_mask_colours_init(&t->colours, &t->bins, t->labels, t->workspace, error));
    if (!dcrf_mask_border_init(&t->border, &t->grid, t->map, t->labels, THIN, pool))
        return dcrf_fail_memory(error, what);
    describe_kernels(t, info);
    return dcrf_smoother_init(&t->smoother, &t->grid, t->labels, kernels,
                              dcrf_mask_kernels(info, image, kernels), t->workspace, error);
}

static void clear(struct task *t) {
    dcrf_smoother_clear(&t->smoother);
    dcrf_mask_border_clear(&t->border);
    dcrf_mask_colours_clear(&t->colours);
    dcrf_colour_bins_clear(&t->bins);
    dcrf_disown(&t->owned);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static double confidence_at(const struct task *t, size_t a) {
    return t->confidence ? (double)t->confidence[a] : t->map[a] >= 0;
}

/* The depth of a variable inside its own label, in bands. */
static double depth_in_bands(const struct task *t, size_t a) {
    const size_t label = (size_t)t->map[a];
    const double band =
        t->settings.band * t->border.unit * dcrf_mask_border_reach(&t->border, a, label);
    return (dcrf_mask_border_depth(&t->border, a, label) - t->border.offset[label]) / band;
}

/* How certain the map's label is at a variable: 0 at a border, 1 beyond the band. */
static double sureness(const struct task *t, size_t a) {
    if (t->map[a] < 0)
        return 0;
    const double share = fmin(fmax(depth_in_bands(t, a), 0), 1);
    return confidence_at(t, a) >= 1 && t->confidence ? 1 : share * share * share * share;
}

/* Where the map is certain, its label; elsewhere, labels of which mean field is certain, if it has
 * run. */
static void choose_members(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct task *t = context;
    for (size_t a = begin; a < end; a++) {
        const double sure = sureness(t, a);
        float *members = t->smoother.message + a * t->smoother.stride;
        const float *q = t->smoother.q + a * t->smoother.stride;
        for (size_t label = 0; label < t->labels; label++) {
            const double own = t->map[a] == (int32_t)label ? sure : 0;
            const double seen = (double)q[label] > 0.5 ? 2 * (double)q[label] - 1 : 0;
            members[label] = (float)fmax(own, (1 - sure) * seen * seen);
        }
    }
}

static double energy_of(const struct task *t, size_t a, size_t label) {
    if (t->label_sizes[label] == 0)
        return DCRF_MASK_BINDING_ENERGY;
    const float *deficit = t->colours.deficit + t->bins.bin_of[a] * t->colours.stride;
    const double colour = t->colour_weight * fmin(t->settings.colour_limit, (double)deficit[label]);
    if (t->map[a] < 0)
        return colour;
    if (t->confidence && confidence_at(t, a) >= 1)
        return t->map[a] == (int32_t)label ? 0 : DCRF_MASK_BINDING_ENERGY;
    return colour + (t->confidence ? confidence_at(t, a) : 1) *
                        dcrf_mask_border_energy(&t->border, a, label, t->sigma[label]);
}

static void write_energies(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct task *t = context;
    for (size_t a = begin; a < end; a++)
        for (size_t label = 0; label < t->labels; label++)
            t->smoother.unary[a * t->smoother.stride + label] = (float)energy_of(t, a, label);
}

/* Select variables to test the colours: near a border, but not so near that the map may be wrong.
 */
static void choose_witnesses(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct task *t = context;
    for (size_t a = begin; a < end; a++) {
        const double depth = t->map[a] < 0 ? 0 : depth_in_bands(t, a);
        float *members = t->smoother.message + a * t->smoother.stride;
        for (size_t label = 0; label < t->labels; label++)
            members[label] = 0;
        if (depth >= WITNESSES_FROM && depth <= t->witnesses_to)
            members[t->map[a]] = 1;
    }
}

/* How much the colours tell about labels, up to `witnesses_to` bands from the borders; -1: a label
 * has no witnesses there. */
static double information(struct task *t, double witnesses_to) {
    t->witnesses_to = witnesses_to;
    dcrf_parallel_for(dcrf_workspace_pool(t->workspace), t->variables, VARIABLES_PER_CHUNK,
                      choose_witnesses, t);
    const double found =
        dcrf_mask_colours_information(&t->colours, t->smoother.message, t->variables,
                                      t->smoother.stride, t->settings.colour_limit);
    for (size_t label = 0; label < t->labels; label++)
        if (t->label_sizes[label] > 0 && !(t->colours.total[label] > 0))
            return -1;
    return found;
}

/* How far the colours can be trusted, from 0 to 1. A trimap may have no known labels near a border,
 * and a thin object no certain ones; then witnesses at any depth count, and without any the colours
 * are trusted. */
static double trust_in_colours(struct task *t) {
    double known = information(t, WITNESSES_TO);
    if (known < 0)
        known = information(t, HUGE_VAL);
    if (known < 0)
        return 1;
    return fmin(fmax((known - INFORMATION_NONE) / (INFORMATION_FULL - INFORMATION_NONE), 0), 1);
}

/* Set the weight of the colours and the sigmas of the borders for a round. */
static void weigh(struct task *t, size_t round) {
    const dcrf_mask_settings *s = &t->settings;
    /* A map that is far too large contains colours of other labels, so its borders must be found
     * before its colours can be tested. */
    const double trust = round < FIRST_TESTED_ROUND ? 1 : trust_in_colours(t);
    const double unit = t->border.unit;
    const double narrowed = UNTRUSTED_SIGMA + (1 - UNTRUSTED_SIGMA) * trust;
    t->colour_weight = trust * s->colour_weight;
    for (size_t label = 0; label < t->labels; label++) {
        const double spread = fmax(SPREAD_FACTOR * t->border.spread[label], LEAST_SIGMA * unit);
        t->sigma[label] =
            round == 0 ? s->first_sigma * unit : narrowed * fmin(spread, s->later_sigma * unit);
    }
}

static dcrf_status compute_energies(struct task *t, size_t round, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(t->workspace);
    dcrf_parallel_for(pool, t->variables, VARIABLES_PER_CHUNK, choose_members, t);
    TRY(dcrf_mask_colours_learn(&t->colours, t->smoother.message, t->variables, t->smoother.stride,
                                t->workspace, error));
    weigh(t, round);
    dcrf_parallel_for(pool, t->variables, VARIABLES_PER_CHUNK, write_energies, t);
    return DCRF_OK;
}

/* Run mean field and measure its borders. */
static dcrf_status find_borders(struct task *t, size_t round, dcrf_error *error) {
    TRY(dcrf_smoother_run(&t->smoother, t->settings.iterations, error));
    for (size_t a = 0; a < t->variables; a++)
        t->labelling[a] = (int32_t)dcrf_smoother_likeliest(&t->smoother, a);
    dcrf_mask_border_measure(&t->border, t->labelling,
                             round == 0 ? t->settings.offset_factor
                                        : fmin(t->settings.offset_factor, LATER_OFFSET_FACTOR),
                             DOUBT_PER_ROUND * (double)round,
                             OFFSET_BANDS * t->settings.band * t->border.unit);
    return DCRF_OK;
}

/* The mean outward offset of the borders of all labels but 0, the background. */
static double outward_offset(const struct task *t) {
    double sum = 0;
    size_t count = 0;
    for (size_t label = 1; label < t->labels; label++)
        if (t->label_sizes[label] > 0) {
            sum -= t->border.offset[label];
            count++;
        }
    return count > 0 ? sum / (double)count : 0;
}

/* The whole method at one size; phi of the last round stays in the smoother. */
static dcrf_status refine(struct task *t, const dcrf_view *image, dcrf_mask_info *info,
                          dcrf_error *error) {
    TRY(prepare(t, image, info, error));
    for (size_t round = 0; round < t->settings.rounds; round++) {
        TRY(compute_energies(t, round, error));
        if (round + 1 < t->settings.rounds)
            TRY(find_borders(t, round, error));
    }
    info->offset = outward_offset(t);
    return DCRF_OK;
}

static dcrf_status refine_whole(struct task *t, const dcrf_view *image, float *energies,
                                dcrf_mask_info *info, dcrf_error *error) {
    const dcrf_status status = refine(t, image, info, error);
    for (size_t a = 0; status >= 0 && a < t->variables; a++)
        memcpy(energies + a * t->labels, t->smoother.unary + a * t->smoother.stride,
               t->labels * sizeof *energies);
    clear(t);
    return status;
}

/* ---- large pictures ------------------------------------------------------------------------- */

/* Labels that the map lacks, and variables whose label is certain, at the picture's own size. */
static void bind(const struct task *t, float *energies) {
    for (size_t a = 0; a < t->variables; a++)
        for (size_t label = 0; label < t->labels; label++) {
            const bool is_certain = t->confidence && t->confidence[a] >= 1 && t->map[a] >= 0;
            if (t->label_sizes[label] == 0 || (is_certain && t->map[a] != (int32_t)label))
                energies[a * t->labels + label] = (float)DCRF_MASK_BINDING_ENERGY;
        }
}

/* -ln Q as rows without padding, in `unary`. */
static dcrf_status smooth_cells(struct task *cells, dcrf_error *error) {
    TRY(dcrf_smoother_run(&cells->smoother, CELL_ITERATIONS, error));
    for (size_t k = 0; k < cells->variables; k++)
        for (size_t label = 0; label < cells->labels; label++)
            cells->smoother.unary[k * cells->labels + label] =
                (float)-log(fmax((double)cells->smoother.q[k * cells->smoother.stride + label],
                                 DCRF_PROBABILITY_MIN));
    return DCRF_OK;
}

static void describe_edge_kernels(const dcrf_grid *grid, const dcrf_grid *cells,
                                  dcrf_mask_info *info) {
    info->spatial_sigma = HUGE_VAL;
    info->bilateral_sigma = 0;
    for (size_t i = 0; i < grid->axes; i++) {
        info->spatial_sigma = fmin(info->spatial_sigma, grid->spacing[i]);
        info->bilateral_sigma = fmax(info->bilateral_sigma, cells->spacing[i]);
    }
    info->bilateral_channel_sigma *= EDGE_CHANNEL_SIGMA;
    info->spatial_weight *= EDGE_WEIGHT;
    info->bilateral_weight *= EDGE_WEIGHT;
}

static dcrf_status refine_cells(const struct task *t, const struct dcrf_mask_reduced *reduced,
                                const dcrf_view *image, float *energies, dcrf_mask_info *info,
                                dcrf_error *error) {
    DCRF_AT_END(clear)
    struct task cells = {.settings = t->settings,
                         .grid = reduced->grid,
                         .variables = reduced->cells,
                         .labels = t->labels,
                         .workspace = t->workspace,
                         .map = reduced->map,
                         .confidence = reduced->confidence,
                         .label_sizes = t->label_sizes};
    const dcrf_view colours =
        dcrf_view_interleaved(reduced->image, DCRF_F32, &reduced->grid, reduced->channels);
    TRY(refine(&cells, &colours, info, error));
    TRY(smooth_cells(&cells, error));
    return dcrf_unary_enlarge_guided(&cells.grid, cells.smoother.unary, t->labels, &t->grid, image,
                                     energies, error);
}

/* At a reduced size if the picture is large and the map has nothing thinner than the cells. */
static dcrf_status refine_at_best_size(struct task *t, const dcrf_view *image, float *energies,
                                       dcrf_mask_info *info, dcrf_error *error) {
    const dcrf_grid cells = dcrf_mask_reduced_grid(&t->grid, CELL * dcrf_mask_unit(&t->grid));
    DCRF_AT_END(dcrf_mask_reduced_clear) struct dcrf_mask_reduced reduced = {0};
    if (memcmp(cells.size, t->grid.size, sizeof cells.size) == 0)
        return refine_whole(t, image, energies, info, error);
    TRY(dcrf_mask_reduce(&reduced, &t->grid, &cells, image, t->map, t->labels, t->confidence,
                         error));
    if (!dcrf_mask_reduced_is_faithful(&reduced, t->label_sizes, t->labels))
        return refine_whole(t, image, energies, info, error);
    TRY(refine_cells(t, &reduced, image, energies, info, error));
    bind(t, energies);
    describe_edge_kernels(&t->grid, &cells, info);
    return DCRF_OK;
}

dcrf_status dcrf_mask_energies(const dcrf_grid *grid, const dcrf_view *image, const dcrf_view *map,
                               size_t labels, const dcrf_view *confidence,
                               const dcrf_mask_settings *settings, dcrf_workspace *workspace,
                               float *energies, size_t count, dcrf_mask_info *info,
                               dcrf_error *error) {
    const double began_s = dcrf_time_s();
    struct task t = {.labels = labels, .workspace = workspace};
    dcrf_mask_info found = {0};
    dcrf_mask_settings_defaults(&t.settings);
    if (settings)
        t.settings = *settings;
    TRY(check_arguments(grid, image, map, labels, energies, count, workspace, error));
    TRY(check_settings(&t.settings, error));
    DCRF_ENTER(workspace, error);
    DCRF_AT_END(dcrf_disown) struct dcrf_owned inputs = {0};
    t.grid = *grid;
    t.variables = grid->size[0] * grid->size[1] * grid->size[2];
    TRY(read_inputs(&t, map, confidence, &inputs, &found, error));
    TRY(refine_at_best_size(&t, image, energies, &found, error));
    found.time_s = dcrf_time_s() - began_s;
    if (info)
        *info = found;
    return DCRF_OK;
}
