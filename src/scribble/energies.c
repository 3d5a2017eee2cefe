/* The unary energies of scribbles. At a variable a with the colour c, for label l:
 *
 *   min(C, w ln(max_k p(c | k) / p(c | l)))                     colour, at most C
 * + D g_l / (g_l + g)                                           distance
 *
 * where g_l is the geodesic distance to the nearest stroke of label l and g that to the nearest
 * stroke of any other label. On a stroke: 0 for its label, DCRF_SCRIBBLES_BINDING_ENERGY for the
 * others. Labels without any stroke have that energy everywhere.
 *
 * The length of a step from a to b is the change in beliefs, plus a small cost for the Euclidean
 * distance (Bai and Sapiro: A Geodesic Framework for Fast Interactive Image and Video Segmentation
 * and Matting. ICCV 2007):
 *
 *   1/2 sum_l |P_a(l) - P_b(l)| + s |a - b|.
 *
 * The sum is the total variation distance; for two labels it is |P_a(1) - P_b(1)|. The beliefs P
 * are p(c | l) / sum_k p(c | k), from the colours, as in the paper, or, once available, the
 * marginals of the dense CRF, which are better: smooth where colours are noisy, yet sharp at the
 * edges of objects. */
#include "scribble/energies.h"

#include <math.h>
#include <stdbool.h>

#define UNITS 4096 /* integer units per length of 1 */
#define ROWS_PER_CHUNK 4
#define VARIABLES_PER_CHUNK 1024

int dcrf_stroke_energies_init(struct dcrf_stroke_energies *energies, const dcrf_grid *grid,
                              const dcrf_scribbles_settings *settings,
                              const struct dcrf_colour_model *colours, dcrf_pool *pool) {
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    const size_t workers = dcrf_pool_threads(pool);
    *energies = (struct dcrf_stroke_energies){
        .grid = grid, .settings = settings, .colours = colours, .variables = variables};
    dcrf_neighbourhood_of(grid, &energies->neighbourhood);
    const size_t steps = energies->neighbourhood.steps;
    struct dcrf_owned *owned = &energies->owned;
    energies->lengths = dcrf_own_zero(owned, variables, steps * sizeof *energies->lengths);
    energies->distances = dcrf_own(owned, variables, colours->labels * sizeof *energies->distances);
    energies->queue_count = workers < colours->labels ? workers : colours->labels;
    energies->queues = dcrf_own(owned, energies->queue_count, sizeof *energies->queues);
    for (size_t i = 0; !owned->is_short && i < energies->queue_count; i++)
        dcrf_geodesic_queue_init(&energies->queues[i], owned, variables);
    return !owned->is_short;
}

void dcrf_stroke_energies_clear(struct dcrf_stroke_energies *energies) {
    dcrf_disown(&energies->owned);
}

/* ---- lengths -------------------------------------------------------------------------------- */

static double total_variation(const struct dcrf_stroke_energies *e, size_t a, size_t b) {
    const float *first = e->beliefs + a * e->stride, *second = e->beliefs + b * e->stride;
    float sum = 0;
    for (size_t label = 0; label < e->colours->labels; label++)
        sum += fabsf(first[label] - second[label]);
    return 0.5 * (double)sum;
}

static void measure_steps(struct dcrf_stroke_energies *e, size_t k, const size_t position[3],
                          size_t first) {
    const struct dcrf_neighbourhood *n = &e->neighbourhood;
    const int *offset = n->offset[k];
    for (size_t i = 1; i < DCRF_MAX_AXES; i++)
        if (position[i] + (size_t)(ptrdiff_t)offset[i] >= e->grid->size[i])
            return; /* leads out of the grid; negative positions wrap around */
    const size_t begin = offset[0] < 0, end = e->grid->size[0] - (offset[0] > 0);
    const double way = e->settings->step_length * n->length[k];
    for (size_t x = begin; x < end; x++) {
        const size_t a = first + x, b = a + (size_t)n->distance[k];
        const double length = UNITS * (total_variation(e, a, b) + way) + 0.5;
        e->lengths[a * n->steps + k] = (uint16_t)fmin(fmax(length, 1), DCRF_GEODESIC_MOST_LENGTH);
    }
}

static void measure_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_stroke_energies *e = context;
    for (size_t row = begin; row < end; row++) {
        const size_t position[DCRF_MAX_AXES] = {0, row % e->grid->size[1], row / e->grid->size[1]};
        for (size_t k = 0; k < e->neighbourhood.steps; k++)
            measure_steps(e, k, position, row * e->grid->size[0]);
    }
}

/* ---- distances and energies ----------------------------------------------------------------- */

static void search_labels(void *context, size_t begin, size_t end, size_t worker) {
    struct dcrf_stroke_energies *e = context;
    const bool has_one_for_each = e->queue_count == e->colours->labels;
    for (size_t label = begin; label < end; label++)
        dcrf_geodesic_distances(e->grid, &e->neighbourhood, e->lengths, e->strokes, (int32_t)label,
                                &e->queues[has_one_for_each ? label : worker],
                                e->distances + label * e->variables);
}

/* The distance to the nearest stroke, that stroke's label, and the distance to the nearest stroke
 * of any other label. */
struct nearest {
    uint32_t first, second;
    size_t label;
};

static struct nearest find_nearest(const struct dcrf_stroke_energies *e, size_t a) {
    struct nearest nearest = {DCRF_GEODESIC_FAR, DCRF_GEODESIC_FAR, 0};
    for (size_t label = 0; label < e->colours->labels; label++) {
        const uint32_t distance = e->distances[label * e->variables + a];
        if (distance < nearest.first) {
            nearest.second = nearest.first;
            nearest.first = distance;
            nearest.label = label;
        } else if (distance < nearest.second) {
            nearest.second = distance;
        }
    }
    return nearest;
}

static float energy_of_label(const struct dcrf_stroke_energies *e, size_t a, size_t label,
                             const struct nearest *nearest) {
    const struct dcrf_colour_model *colours = e->colours;
    if (e->strokes[a] >= 0)
        return (size_t)e->strokes[a] == label ? 0 : (float)DCRF_SCRIBBLES_BINDING_ENERGY;
    if (colours->mixtures[label].components == 0)
        return (float)DCRF_SCRIBBLES_BINDING_ENERGY;
    const double own = e->distances[label * e->variables + a];
    const double other = nearest->label == label ? nearest->second : nearest->first;
    const double deficit =
        (double)colours->deficit[colours->bins->bin_of[a] * colours->labels + label];
    return (float)(fmin(e->settings->colour_limit, e->settings->colour_weight * deficit) +
                   e->settings->distance_weight * own / (own + other));
}

static void write_energies(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_stroke_energies *e = context;
    for (size_t a = begin; a < end; a++) {
        const struct nearest nearest = find_nearest(e, a);
        for (size_t label = 0; label < e->colours->labels; label++)
            e->out[a * e->stride + label] = energy_of_label(e, a, label, &nearest);
    }
}

bool dcrf_stroke_energies_compute(struct dcrf_stroke_energies *energies, const int32_t *strokes,
                                  const float *beliefs, float *out, size_t stride,
                                  dcrf_workspace *workspace) {
    const size_t rows = energies->variables / energies->grid->size[0];
    energies->strokes = strokes;
    energies->beliefs = beliefs;
    energies->out = out;
    energies->stride = stride;
    return dcrf_parallel_while(workspace, rows, ROWS_PER_CHUNK, measure_rows, energies) &&
           dcrf_parallel_while(workspace, energies->colours->labels, 1, search_labels, energies) &&
           dcrf_parallel_while(workspace, energies->variables, VARIABLES_PER_CHUNK, write_energies,
                               energies);
}
