/* Unary energies from a model of colours and from geodesic distances to strokes. */
#ifndef DCRF_SCRIBBLE_ENERGIES_H
#define DCRF_SCRIBBLE_ENERGIES_H

#include "core/workspace.h"
#include "scribble/colour_model.h"
#include "scribble/geodesic.h"

#include <dcrf/scribbles.h>

struct dcrf_stroke_energies {
    const dcrf_grid *grid;
    const dcrf_scribbles_settings *settings;
    const struct dcrf_colour_model *colours;
    size_t variables;
    struct dcrf_neighbourhood neighbourhood;
    uint16_t *lengths;   /* of the steps to neighbours of larger index */
    uint32_t *distances; /* of all variables, label by label */
    struct dcrf_geodesic_queue
        *queues; /* one per label, or per worker if there are fewer of these */
    size_t queue_count;
    struct dcrf_owned owned;
    const int32_t *strokes; /* set during a computation */
    const float *beliefs;
    float *out;
    size_t stride;
};

/* Everything pointed to must outlive the energies. False: out of memory; they can be cleared in any
 * case. */
int dcrf_stroke_energies_init(struct dcrf_stroke_energies *energies, const dcrf_grid *grid,
                              const dcrf_scribbles_settings *settings,
                              const struct dcrf_colour_model *colours, dcrf_pool *pool);
void dcrf_stroke_energies_clear(struct dcrf_stroke_energies *energies);

/* Measure distances to the strokes, given a block of current beliefs (a distribution over labels
 * per variable), and write the energies, a block with the same stride. False if the workspace was
 * interrupted. */
bool dcrf_stroke_energies_compute(struct dcrf_stroke_energies *energies, const int32_t *strokes,
                                  const float *beliefs, float *out, size_t stride,
                                  dcrf_workspace *workspace);

#endif
