/* Joint bilateral upsampling (Kopf, Cohen, Lischinski, Uyttendaele 2007) of log-probabilities.
 *
 * A pixel takes the mean of the cells around it, with the weights
 *
 *   exp(-|x - c|^2 / (2 s^2)) exp(-|I(x) - J(c)|^2 / (2 t^2))
 *
 * where x is the pixel's position in cells, c that of a cell, I the image and J its mean over a
 * cell. This recovers edges of the image that run through a cell. s is in cells; t is a fraction of
 * the standard deviation of the image's colours (of their distance from the mean colour), so that
 * the scale of the image does not matter. docs/results/upscaling.md says how both were chosen. */
#include "core/error.h"
#include "core/owned.h"
#include "model/unary.h"
#include "model/view.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SIGMA_CELLS 0.5
#define REACH_CELLS 1
#define COLOUR_SHARE 0.3
#define CELLS_AROUND ((2 * REACH_CELLS + 1) * (2 * REACH_CELLS + 1) * (2 * REACH_CELLS + 1))

typedef struct guided {
    const dcrf_grid *from;
    const dcrf_grid *to;
    const float *rows;
    size_t labels;
    size_t channels;
    float *colours; /* of the image */
    float *means;   /* of the cells */
    double inverse; /* 1 / (2 t^2); 0: the image has one colour */
    double *sum;    /* room for the labels of a pixel */
} guided;

static size_t cell_index(const dcrf_grid *grid, const size_t cell[DCRF_MAX_AXES]) {
    return (cell[2] * grid->size[1] + cell[1]) * grid->size[0] + cell[0];
}

/* ---- colours -------------------------------------------------------------------------------- */

/* The cell that contains the centre of a pixel. */
static size_t cell_of(const guided *g, const size_t position[DCRF_MAX_AXES]) {
    size_t cell[DCRF_MAX_AXES];
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        cell[axis] = (2 * position[axis] + 1) * g->from->size[axis] / (2 * g->to->size[axis]);
    return cell_index(g->from, cell);
}

/* Sums in double, cell by cell; `sums` has room for the channels and a count per cell. */
static void average_cells(const guided *g, size_t cells, size_t variables, double *sums) {
    const size_t width = g->channels + 1;
    size_t position[DCRF_MAX_AXES];
    memset(sums, 0, cells * width * sizeof *sums);
    for (size_t a = 0; a < variables; a++) {
        dcrf_grid_position(g->to, a, position);
        double *cell = sums + cell_of(g, position) * width;
        for (size_t c = 0; c < g->channels; c++)
            cell[c] += (double)g->colours[a * g->channels + c];
        cell[g->channels]++;
    }
    for (size_t k = 0; k < cells; k++)
        for (size_t c = 0; c < g->channels; c++)
            g->means[k * g->channels + c] =
                (float)(sums[k * width + c] / fmax(sums[k * width + g->channels], 1));
}

/* The mean squared distance from the mean colour. */
static double colour_variance(const guided *g, size_t variables) {
    double variance = 0;
    for (size_t c = 0; c < g->channels; c++) {
        double sum = 0, squares = 0;
        for (size_t a = 0; a < variables; a++)
            sum += (double)g->colours[a * g->channels + c];
        const double mean = sum / (double)variables;
        for (size_t a = 0; a < variables; a++) {
            const double d = (double)g->colours[a * g->channels + c] - mean;
            squares += d * d;
        }
        variance += squares / (double)variables;
    }
    return variance;
}

/* ---- one pixel ------------------------------------------------------------------------------ */

/* The cells that count along an axis, and the position of the pixel. */
typedef struct neighbourhood {
    size_t first;
    size_t last;
    double place;
} neighbourhood;

static neighbourhood neighbours_at(size_t place, size_t image_size, size_t size) {
    neighbourhood n = {.place = dcrf_unary_place(place, image_size, size)};
    const size_t nearest = (size_t)fmin(fmax(round(n.place), 0), (double)size - 1);
    n.first = nearest > REACH_CELLS ? nearest - REACH_CELLS : 0;
    n.last = nearest + REACH_CELLS < size ? nearest + REACH_CELLS : size - 1;
    return n;
}

/* The exponent of a weight, without its sign. */
static double exponent(const guided *g, const neighbourhood around[DCRF_MAX_AXES],
                       const size_t cell[DCRF_MAX_AXES], const float *colour) {
    const float *mean = g->means + cell_index(g->from, cell) * g->channels;
    double squares = 0, distance = 0;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        const double d = (double)cell[axis] - around[axis].place;
        squares += d * d;
    }
    for (size_t c = 0; c < g->channels; c++) {
        const double d = (double)colour[c] - (double)mean[c];
        distance += d * d;
    }
    return squares / (2 * SIGMA_CELLS * SIGMA_CELLS) + distance * g->inverse;
}

static void enlarge_at(const guided *g, size_t variable, float *out) {
    neighbourhood around[DCRF_MAX_AXES];
    size_t position[DCRF_MAX_AXES], cell[DCRF_MAX_AXES], index[CELLS_AROUND], count = 0;
    double exponents[CELLS_AROUND], smallest = INFINITY, total = 0;
    dcrf_grid_position(g->to, variable, position);
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        around[axis] = neighbours_at(position[axis], g->to->size[axis], g->from->size[axis]);
    for (cell[2] = around[2].first; cell[2] <= around[2].last; cell[2]++)
        for (cell[1] = around[1].first; cell[1] <= around[1].last; cell[1]++)
            for (cell[0] = around[0].first; cell[0] <= around[0].last; cell[0]++, count++) {
                exponents[count] = exponent(g, around, cell, g->colours + variable * g->channels);
                smallest = fmin(smallest, exponents[count]);
                index[count] = cell_index(g->from, cell);
            }
    memset(g->sum, 0, g->labels * sizeof *g->sum);
    for (size_t k = 0; k < count; k++) {
        const double weight = exp(smallest - exponents[k]);
        const float *row = g->rows + index[k] * g->labels;
        total += weight;
        for (size_t i = 0; i < g->labels; i++)
            g->sum[i] += weight * (double)row[i];
    }
    for (size_t i = 0; i < g->labels; i++)
        out[i] = (float)(g->sum[i] / total);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void *allocate(struct dcrf_owned *owned, size_t count, size_t each, size_t bytes) {
    size_t total = 0;
    return dcrf_own(owned, dcrf_multiply(count, each, &total) ? total : SIZE_MAX, bytes);
}

dcrf_status dcrf_unary_enlarge_guided(const dcrf_grid *from, const float *rows, size_t labels,
                                      const dcrf_grid *to, const dcrf_view *guide, float *energies,
                                      dcrf_error *error) {
    size_t cells = 0, variables = 0;
    TRY(dcrf_view_check(guide, "the image", error));
    TRY(dcrf_grid_check(from, &cells, error));
    TRY(dcrf_grid_check(to, &variables, error));
    guided g = {from, to, rows, labels, .channels = guide->channels};
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    g.colours = allocate(&owned, variables, g.channels, sizeof *g.colours);
    g.means = allocate(&owned, cells, g.channels, sizeof *g.means);
    g.sum = dcrf_own(&owned, labels, sizeof *g.sum);
    double *sums = allocate(&owned, cells, g.channels + 1, sizeof *sums);
    if (owned.is_short)
        return dcrf_fail_memory(error, "the unary");
    TRY(dcrf_view_copy(guide, to, "the image", NULL, g.colours, g.channels, error));
    average_cells(&g, cells, variables, sums);
    const double variance = colour_variance(&g, variables);
    g.inverse = variance > 0 ? 1 / (2 * COLOUR_SHARE * COLOUR_SHARE * variance) : 0;
    for (size_t a = 0; a < variables; a++)
        enlarge_at(&g, a, energies + a * labels);
    return DCRF_OK;
}
