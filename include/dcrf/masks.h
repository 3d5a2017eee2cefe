/* Unary energies from a rough label map. The map is trusted far from its borders and less near
 * them. It provides the colours of its labels. If the image shows that a whole border lies a few
 * pixels further out or in, the border is shifted.
 *
 *   dcrf_mask_energies(&grid, &image, &map, label_count, NULL, NULL, workspace, energies,
 *                      variables * label_count, &found, &error);
 *   ... dcrf_model_set_unary with the energies, dcrf_mask_kernels for the kernels ...
 *
 * For images and volumes, with any number of labels. All lengths scale with the image and with the
 * thickness of its objects, so an image of twice the size gives the same borders at twice the size.
 * Images whose pixels are smaller than a third of a unit are worked on at a reduced size first; the
 * kernels then only follow edges at the size of the pixels.
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

/* The geometric mean of an image's sides, in the units of the lengths below: one unit is one pixel
 * of an image of 481 x 321. */
#define DCRF_MASK_EXTENT 393.0
/* What any other label costs where the map is certain. */
#define DCRF_MASK_BINDING_ENERGY 1e6
#define DCRF_MASK_KERNELS 2

/* See docs/explain/strokes-and-masks.md for the defaults. `reserved` must stay zero. */
typedef struct dcrf_mask_settings {
    size_t rounds;         /* rounds of energies and mean field; at least 1 */
    size_t iterations;     /* mean-field updates after each round except the last */
    double first_sigma;    /* standard deviation of a border's error in the first round, in units */
    double later_sigma;    /* the largest in later rounds, which measure it */
    double offset_factor;  /* factor on the offset that the first round measures; 0: no shift */
    double band;           /* colours are learned beyond this distance from a border, in units */
    double colour_weight;  /* factor on differences of log-likelihoods of colours */
    double colour_limit;   /* maximum cost of a colour, in nats, before weighting */
    double spatial_sigma;  /* the kernels: sigmas in units */
    double spatial_weight; /* normalized symmetrically */
    double bilateral_sigma;
    double bilateral_channel_sigma; /* for an image on the scale 0 to 255; see dcrf/scribbles.h */
    double bilateral_weight;
    unsigned char reserved[64];
} dcrf_mask_settings;

DCRF_API void dcrf_mask_settings_defaults(dcrf_mask_settings *settings);

/* What was found, and the parameters of the kernels. */
typedef struct dcrf_mask_info {
    double unit;        /* in the unit of the grid's spacing */
    double offset;      /* of the borders, the mean over labels, in the unit of the grid's spacing;
                         * positive is outwards. The later rounds correct for it. */
    size_t known;       /* variables with a known label in the map */
    size_t labels_used; /* labels that occur in the map; variables get no others */
    double spatial_sigma;
    double bilateral_sigma;
    double bilateral_channel_sigma;
    double spatial_weight;
    double bilateral_weight;
    double time_s;
    unsigned char reserved[64];
} dcrf_mask_info;

/* The energies for a map of one channel of an integer type: the label of each variable, or negative
 * if unknown. At least one label must occur. `confidence` (may be NULL) has one channel, from 0
 * (ignore the map here) to 1 (the label is binding). `energies` holds `count` floats and receives
 * `labels` per variable. Too few are an error, and nothing is written; after any other failure they
 * are unspecified. settings = NULL: the defaults. `info` may be NULL. */
DCRF_API dcrf_status dcrf_mask_energies(const dcrf_grid *grid, const dcrf_view *image,
                                        const dcrf_view *map, size_t labels,
                                        const dcrf_view *confidence,
                                        const dcrf_mask_settings *settings,
                                        dcrf_workspace *workspace, float *energies, size_t count,
                                        dcrf_mask_info *info, dcrf_error *error);

/* The kernels for such energies; returns their number. The image must outlive them. */
DCRF_API size_t dcrf_mask_kernels(const dcrf_mask_info *info, const dcrf_view *image,
                                  dcrf_kernel kernels[DCRF_MASK_KERNELS]);

/* How far a labelling differs from a map. */
typedef struct dcrf_mask_moves {
    size_t changed;     /* known variables whose label differs from the map's */
    size_t border;      /* variables at a border of the labelling */
    double mean_offset; /* mean distance of these from the nearest border of the map, in the unit of
                         * the grid's spacing */
    unsigned char reserved[64];
} dcrf_mask_moves;

DCRF_API dcrf_status dcrf_mask_compare(const dcrf_grid *grid, const dcrf_view *map,
                                       const uint16_t *labelling, dcrf_workspace *workspace,
                                       dcrf_mask_moves *moves, dcrf_error *error);

/* ---- what a map is -------------------------------------------------------------------------- */

/* A number that stands for no pixel. */
#define DCRF_MASK_MISSING INT32_MIN

/* What the numbers of a map look like; begin with zeros. A mask that was resized, blurred or saved
 * as JPEG has numbers between 0 and 255, and must not be taken for a map of 250 labels: in a label
 * map most pixels have the number of their neighbour; across a soft border the numbers change from
 * pixel to pixel, and there are many of them. */
typedef struct dcrf_mask_traits {
    size_t counts[256]; /* of the numbers from 0 to 255 */
    size_t pixels;
    size_t changes; /* pixels strictly between 0 and 255 whose right neighbour has another number */
    int is_wide;    /* there are numbers outside 0 to 255 */
    int is_rounded; /* set by the caller: the format rounds numbers, so it can only be a mask */
    unsigned char reserved[64];
} dcrf_mask_traits;

typedef enum dcrf_mask_kind {
    DCRF_MASK_LABELS = 0, /* the numbers are labels */
    DCRF_MASK_HARD,       /* 0 and 255 only */
    DCRF_MASK_SOFT,       /* with shades between them */
    DCRF_MASK_TRIMAP      /* with a single grey between them, which means unknown */
} dcrf_mask_kind;
/* "labels", "hard", "soft", "trimap". */
DCRF_API const char *dcrf_mask_kind_name(dcrf_mask_kind kind);
DCRF_API int dcrf_mask_kind_from_name(const char *name, dcrf_mask_kind *kind);

/* Add the numbers of some rows. */
DCRF_API void dcrf_mask_inspect(dcrf_mask_traits *traits, const int32_t *numbers, size_t width,
                                size_t rows);
DCRF_API dcrf_mask_kind dcrf_mask_kind_of(const dcrf_mask_traits *traits);

/* The label of a number in a map of this kind: of masks 0, 1, or -1 if unknown; else the number. */
DCRF_API int32_t dcrf_mask_label(dcrf_mask_kind kind, int32_t number);

#ifdef __cplusplus
}
#endif
#endif
