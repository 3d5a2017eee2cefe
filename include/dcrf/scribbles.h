/* From strokes to a mask: the user draws over a few pixels of each label, and every pixel gets one.
 *
 *   dcrf_scribbles_new(&scribbles, &grid, &image, label_count, NULL, workspace, &error);
 *   dcrf_scribbles_set_strokes(scribbles, &strokes, &error);
 *   dcrf_scribbles_update(scribbles, &error);
 *   dcrf_scribbles_labels(scribbles, labels, width * height, &error);
 *   ... more strokes, another update ...
 *   dcrf_scribbles_free(&scribbles);
 *
 * A mixture of Gaussians models the colours of each label. The unary energies combine the mixtures
 * with geodesic distances to the strokes over the gradient of the mixtures' output. A dense CRF
 * with weak kernels gives the mask, the mixtures are refitted to it, and so on for a few rounds.
 * Strokes are binding: a pixel on a stroke keeps its label. Images and volumes, any number of
 * channels, 2 to 255 labels.
 *
 * What depends only on the image is kept between updates, so another stroke costs a fraction of the
 * first mask. The mask depends on the image, the current strokes and the settings, but not on
 * earlier strokes or the number of threads.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_SCRIBBLES_H
#define DCRF_SCRIBBLES_H

#include <dcrf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ------------------------------------------------------------------------------- */

#define DCRF_SCRIBBLES_MAX_LABELS 255
#define DCRF_SCRIBBLES_MAX_COMPONENTS 8
/* What any other label costs a pixel on a stroke: more than kernels of usual weights can outweigh,
 * and small enough for sums in double. */
#define DCRF_SCRIBBLES_BINDING_ENERGY 1e6

/* The stages of an update. */
typedef enum dcrf_scribbles_stage {
    DCRF_SCRIBBLES_COLOURS = 0, /* fit the mixtures */
    DCRF_SCRIBBLES_DISTANCES,   /* measure geodesic distances */
    DCRF_SCRIBBLES_MEAN_FIELD   /* run mean field */
} dcrf_scribbles_stage;
/* "colours", "distances", "mean field". */
DCRF_API const char *dcrf_scribbles_stage_name(dcrf_scribbles_stage stage);
DCRF_API int dcrf_scribbles_stage_from_name(const char *name, dcrf_scribbles_stage *stage);

/* Called before every stage of every round; rounds count from 0. A nonzero return cancels the
 * update. */
typedef int (*dcrf_scribbles_callback)(void *user, size_t round, dcrf_scribbles_stage stage);

/* See docs/explain/strokes-and-masks.md for the defaults. `reserved` must stay zero. */
typedef struct dcrf_scribbles_settings {
    size_t components;      /* maximum number of Gaussians per label */
    double colour_weight;   /* factor on differences of log-likelihoods of colours */
    double colour_limit;    /* maximum cost of a colour, in nats */
    double distance_weight; /* cost of the distance between the strokes of two labels, in nats */
    double step_length;     /* of a step over one pixel, if crossing from one label's colours to
                             * another's has length 1 */
    size_t refits;          /* how often the mixtures are refitted to the mask */
    size_t iterations;      /* mean-field updates after each fit */
    /* The kernels, with the units of dcrf_kernel_spatial and dcrf_kernel_bilateral, normalized
     * symmetrically; a weight of 0 disables one. The sigma of the channels is for images on the
     * scale 0 to 255. Other images are assumed to have the contrast of a photograph: a standard
     * deviation of DCRF_SCRIBBLES_CONTRAST. */
    double spatial_sigma;
    double spatial_weight;
    double bilateral_sigma;
    double bilateral_channel_sigma;
    double bilateral_weight;
    dcrf_scribbles_callback progress; /* NULL: none */
    void *progress_user;
    unsigned char reserved[64];
} dcrf_scribbles_settings;

#define DCRF_SCRIBBLES_CONTRAST 60.0

DCRF_API void dcrf_scribbles_settings_defaults(dcrf_scribbles_settings *settings);

/* ---- the object ----------------------------------------------------------------------------- */

typedef struct dcrf_scribbles dcrf_scribbles;

/* Create the object for an image, which is copied, and 2 or more labels. Three channels from 0 to
 * 255 are read as sRGB; the values of other images may have any unit. settings = NULL: the
 * defaults. Allocates all memory and builds the kernels; only the workspace, which the object keeps
 * alive, may still grow at the first update. */
DCRF_API dcrf_status dcrf_scribbles_new(dcrf_scribbles **scribbles, const dcrf_grid *grid,
                                        const dcrf_view *image, size_t labels,
                                        const dcrf_scribbles_settings *settings,
                                        dcrf_workspace *workspace, dcrf_error *error);
DCRF_API void dcrf_scribbles_free(dcrf_scribbles **scribbles);

/* Replace all strokes. The map has one channel of an integer type: the label of each pixel on a
 * stroke, a negative number or 255 elsewhere. At least two labels need strokes; a label without
 * strokes is given to no pixel. */
DCRF_API dcrf_status dcrf_scribbles_set_strokes(dcrf_scribbles *scribbles, const dcrf_view *strokes,
                                                dcrf_error *error);

/* Compute the mask, unless it is up to date. Returns DCRF_STOP_CANCELLED if the callback cancelled;
 * the results are then those of the previous update. */
DCRF_API dcrf_status dcrf_scribbles_update(dcrf_scribbles *scribbles, dcrf_error *error);

/* ---- results of the last completed update --------------------------------------------------- */

/* Whether an update has been completed. Until then the functions below fail or return nothing. */
DCRF_API int dcrf_scribbles_is_ready(const dcrf_scribbles *scribbles);

/* The mask: one label per variable. */
DCRF_API dcrf_status dcrf_scribbles_labels(const dcrf_scribbles *scribbles, uint16_t *labels,
                                           size_t count, dcrf_error *error);

/* The marginals: a block of distributions over labels, as in dcrf/grid.h. */
DCRF_API dcrf_status dcrf_scribbles_marginals(const dcrf_scribbles *scribbles, float *marginals,
                                              size_t count, size_t stride, dcrf_error *error);

/* The model behind the mask, with its unary energies and kernels, and its plan, for use with any
 * solver. Owned by the object; an update replaces the unary energies. */
DCRF_API const dcrf_model *dcrf_scribbles_model(const dcrf_scribbles *scribbles);
DCRF_API const dcrf_plan *dcrf_scribbles_plan(const dcrf_scribbles *scribbles);

/* The settings in use, with the sigma of the channels in the unit of the image. */
DCRF_API void dcrf_scribbles_get_settings(const dcrf_scribbles *scribbles,
                                          dcrf_scribbles_settings *settings);

typedef struct dcrf_scribbles_info {
    size_t strokes;      /* variables on strokes */
    size_t labels_drawn; /* labels that have strokes */
    size_t rounds;       /* how often the mixtures were fitted */
    size_t changed;      /* variables whose label changed in the last update */
    double prepare_s;    /* wall time in seconds: preparing the image */
    double colours_s;    /* last update: mixtures */
    double distances_s;  /* last update: geodesic distances and energies */
    double mean_field_s; /* last update: mean field */
    unsigned char reserved[64];
} dcrf_scribbles_info;

DCRF_API void dcrf_scribbles_get_info(const dcrf_scribbles *scribbles, dcrf_scribbles_info *info);

#ifdef __cplusplus
}
#endif
#endif
