/* From a rough label map to energies: a mask is an opinion about where things are, not about every
 * pixel. Near its borders it knows little, far from them much; the colours of its labels are known
 * from it; and where the picture says that all of a border lies some pixels further out or in, it
 * is believed.
 *
 *   dcrf_mask_energies(&grid, &image, &map, label_count, NULL, NULL, workspace, energies, &found,
 *                      &error);
 *   ... dcrf_model_set_unary with the energies, dcrf_mask_kernels for the kernels ...
 *
 * Images and volumes, any number of labels. All lengths are in proportion to the picture and to the
 * thickness of its objects, so a picture of twice the size has the same borders, twice as large.
 * The energies do not depend on the number of threads.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_MASKS_H
#define DCRF_MASKS_H

#include <dcrf/plan.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A picture of 481 x 321 pixels is this many units wide, by the geometric mean of its sides. All
 * lengths below are in such units. */
#define DCRF_MASK_EXTENT 393.0
/* What a pixel of which the map is certain pays for any other label. */
#define DCRF_MASK_BINDING_ENERGY 1e6
#define DCRF_MASK_KERNELS 2

/* The defaults are those of docs/masks.md; `reserved` must stay zero. */
typedef struct dcrf_mask_settings {
    size_t rounds;         /* of energies and mean field; at least 1 */
    size_t iterations;     /* of mean field after each round but the last */
    double first_sigma;    /* of the error of a border in the first round, in units, */
    double later_sigma;    /* and once its common offset is known */
    double offset_factor;  /* of the offset that was measured; 0: none */
    double band;           /* colours are learned beyond this from a border, in units */
    double colour_weight;  /* of a nat of the difference of log-likelihoods of colours */
    double colour_limit;   /* what colour costs at most, in nats, before it is weighted */
    double spatial_sigma;  /* the kernels: in units, */
    double spatial_weight; /* normalized symmetrically */
    double bilateral_sigma;
    double bilateral_channel_sigma; /* of a photograph from 0 to 255; see dcrf/scribbles.h */
    double bilateral_weight;
    unsigned char reserved[64];
} dcrf_mask_settings;

DCRF_API void dcrf_mask_settings_defaults(dcrf_mask_settings *settings);

/* What was found, and what belongs to the energies. */
typedef struct dcrf_mask_info {
    double unit;        /* in the unit of the grid's spacing */
    double offset;      /* of the borders, mean over the labels' own, outwards above zero, in the
                         * unit of the grid's spacing: what the later rounds allowed for */
    size_t known;       /* variables whose label the map knows */
    size_t labels_used; /* labels that the map has; no other is given to a variable */
    double spatial_sigma;
    double bilateral_sigma;
    double bilateral_channel_sigma;
    double spatial_weight;
    double bilateral_weight;
    double time_s;
    unsigned char reserved[64];
} dcrf_mask_info;

/* The energies of a map of one channel of an integer type: the label of each variable, negative
 * where it is not known. At least one label must occur. `confidence` may be NULL, or is a view of
 * one channel from 0 (the map says nothing here) to 1 (its label binds here). `energies` has room
 * for `labels` floats per variable; on failure they are unspecified. settings = NULL: the defaults.
 * `info` may be NULL. */
DCRF_API dcrf_status dcrf_mask_energies(const dcrf_grid *grid, const dcrf_view *image,
                                        const dcrf_view *map, size_t labels,
                                        const dcrf_view *confidence,
                                        const dcrf_mask_settings *settings,
                                        dcrf_workspace *workspace, float *energies,
                                        dcrf_mask_info *info, dcrf_error *error);

/* The kernels that belong to such energies; returns how many there are. The image must outlive
 * them. */
DCRF_API size_t dcrf_mask_kernels(const dcrf_mask_info *info, const dcrf_view *image,
                                  dcrf_kernel kernels[DCRF_MASK_KERNELS]);

/* How far a labelling has moved from a map. */
typedef struct dcrf_mask_moves {
    size_t changed;     /* variables whose label is another one than the map's, of those known */
    size_t border;      /* variables at a border of the labelling */
    double mean_offset; /* of these from the nearest border of the map, mean of the sizes, in the
                         * unit of the grid's spacing */
    unsigned char reserved[64];
} dcrf_mask_moves;

DCRF_API dcrf_status dcrf_mask_compare(const dcrf_grid *grid, const dcrf_view *map,
                                       const uint16_t *labelling, dcrf_workspace *workspace,
                                       dcrf_mask_moves *moves, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
