/* From strokes to a mask: somebody draws over a few pixels of each label, and every pixel gets one.
 *
 *   dcrf_scribbles_new(&scribbles, &grid, &image, label_count, NULL, workspace, &error);
 *   dcrf_scribbles_set_strokes(scribbles, &strokes, &error);
 *   dcrf_scribbles_update(scribbles, &error);
 *   dcrf_scribbles_labels(scribbles, labels, &error);
 *   ... more strokes, another update ...
 *   dcrf_scribbles_free(&scribbles);
 *
 * The unary energies come from a mixture of Gaussians for the colours of each label, and from the
 * geodesic distances to its strokes over the gradient of what the mixtures say; a dense CRF with
 * weak kernels makes the mask; the mixtures are fitted again to that mask, and so on, some times.
 * Strokes bind: a pixel that was drawn on keeps its label. Images and volumes, any number of
 * channels, 2 to 255 labels.
 *
 * What depends on the image alone is kept between updates, so one more stroke costs a fraction of
 * the first mask. The mask depends on the image, the strokes and the settings, and not on the
 * strokes that were there before, nor on the number of threads.
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
/* What a stroke's pixel pays for any label but its own: more than kernels of usual weights could
 * win back, and little enough for sums in double. */
#define DCRF_SCRIBBLES_BINDING_ENERGY 1e6

/* What an update is doing. */
typedef enum dcrf_scribbles_stage {
    DCRF_SCRIBBLES_COLOURS = 0, /* fitting the mixtures */
    DCRF_SCRIBBLES_DISTANCES,   /* measuring geodesic distances */
    DCRF_SCRIBBLES_FIELD        /* mean field */
} dcrf_scribbles_stage;
/* "colours", "distances", "field". */
DCRF_API const char *dcrf_scribbles_stage_name(dcrf_scribbles_stage stage);
DCRF_API int dcrf_scribbles_stage_from_name(const char *name, dcrf_scribbles_stage *stage);

/* Called before every stage of every round, counted from 0; a value other than 0 cancels the
 * update. */
typedef int (*dcrf_scribbles_callback)(void *user, size_t round, dcrf_scribbles_stage stage);

/* The defaults are those of docs/scribbles.md; `reserved` must stay zero. */
typedef struct dcrf_scribbles_settings {
    size_t components;      /* Gaussians per label, at most */
    double colour_weight;   /* of a nat of the difference of log-likelihoods, in nats */
    double colour_limit;    /* what colour costs at most, in nats */
    double distance_weight; /* between the strokes of one label and those of another, in nats */
    double step_length;     /* of a step over one pixel, where crossing from one label's colours to
                             * another's is 1 */
    size_t refits;          /* of the mixtures to the mask */
    size_t iterations;      /* of mean field after each fit */
    /* The kernels, with the units of dcrf_kernel_spatial and dcrf_kernel_bilateral, normalized
     * symmetrically; a weight of 0 leaves one out. The sigma of the channels is for images on the
     * scale 0 to 255: other images are taken to have the contrast of a photograph, a standard
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

/* For an image, which is copied, and 2 or more labels. Three channels between 0 and 255 are taken
 * for sRGB; the values of other images may have any unit. settings = NULL: the defaults. Takes all
 * memory and builds the kernels; only the workspace, which must outlive the object, may still grow
 * at the first update. */
DCRF_API dcrf_status dcrf_scribbles_new(dcrf_scribbles **scribbles, const dcrf_grid *grid,
                                        const dcrf_view *image, size_t labels,
                                        const dcrf_scribbles_settings *settings,
                                        dcrf_workspace *workspace, dcrf_error *error);
DCRF_API void dcrf_scribbles_free(dcrf_scribbles **scribbles);

/* Replace all strokes by a map of labels, of one channel of an integer type: the label of each
 * pixel that was drawn on, a negative number or 255 elsewhere. Strokes of two labels are needed; a
 * label without any is not given to a pixel. */
DCRF_API dcrf_status dcrf_scribbles_set_strokes(dcrf_scribbles *scribbles, const dcrf_view *strokes,
                                                dcrf_error *error);

/* Compute the mask, unless it is that of the strokes already. DCRF_STOP_CANCELLED: the callback
 * said so, and results are those of the update before. */
DCRF_API dcrf_status dcrf_scribbles_update(dcrf_scribbles *scribbles, dcrf_error *error);

/* ---- results of the last update that was completed ------------------------------------------ */

/* Has there been one? The functions below fail or give nothing while there was none. */
DCRF_API int dcrf_scribbles_is_ready(const dcrf_scribbles *scribbles);

/* The mask: one label per variable. */
DCRF_API dcrf_status dcrf_scribbles_labels(const dcrf_scribbles *scribbles, uint16_t *labels,
                                           dcrf_error *error);

/* How sure it is: a block of distributions over labels, as in dcrf/experimental.h. */
DCRF_API dcrf_status dcrf_scribbles_marginals(const dcrf_scribbles *scribbles, float *marginals,
                                              size_t stride, dcrf_error *error);

/* The model behind the mask, with its unary energies and kernels, and its plan, for any solver.
 * They belong to the object; an update replaces the unary energies. */
DCRF_API const dcrf_model *dcrf_scribbles_model(const dcrf_scribbles *scribbles);
DCRF_API const dcrf_plan *dcrf_scribbles_plan(const dcrf_scribbles *scribbles);

/* The settings in use, the sigma of the channels in the unit of the image. */
DCRF_API void dcrf_scribbles_get_settings(const dcrf_scribbles *scribbles,
                                          dcrf_scribbles_settings *settings);

typedef struct dcrf_scribbles_info {
    size_t strokes;      /* variables that were drawn on */
    size_t labels_drawn; /* labels that have strokes */
    size_t rounds;       /* fits of the mixtures */
    size_t changed;      /* variables whose label the last update changed */
    double prepare_s;    /* seconds: what depends on the image alone; */
    double colours_s;    /* of the last update: mixtures, */
    double distances_s;  /* geodesic distances and the energies, */
    double field_s;      /* mean field */
    unsigned char reserved[64];
} dcrf_scribbles_info;

DCRF_API void dcrf_scribbles_get_info(const dcrf_scribbles *scribbles, dcrf_scribbles_info *info);

#ifdef __cplusplus
}
#endif
#endif
