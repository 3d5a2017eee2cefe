/* Energies from energies, probabilities and logits, resized to the image.
 *
 * Interpolation is linear along each axis. With n cells of the array along an axis over the N of
 * the image, the centre of cell X of the image lies at
 *
 *   x = (X + 1/2) n / N - 1/2
 *
 * among the centres 0, 1, ... n - 1 of the cells of the array, and beyond them the outermost one
 * counts: this is how networks that halve their resolution place their outputs. Log-probabilities
 * are interpolated. An image as a guide is better (unary_guided.c); the figures are in
 * docs/results/upscaling.md. */
#include "core/error.h"
#include "core/owned.h"
#include "dsp/dsp.h"
#include "model/unary.h"
#include "model/view.h"

#include <dcrf/unary.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- conversion ----------------------------------------------------------------------------- */

static dcrf_status probabilities_to_energies(const dcrf_grid *grid, size_t labels, float *rows,
                                             size_t variables, dcrf_error *error) {
    for (size_t a = 0; a < variables; a++)
        for (size_t i = 0; i < labels; i++) {
            const double p = (double)rows[a * labels + i];
            if (!(p >= 0 && p <= DCRF_PROBABILITY_MAX)) {
                char where[DCRF_PLACE_BYTES];
                return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                 "holds %g at %s, label %zu, which is not a probability", p,
                                 dcrf_place_text(grid, a, where), i);
            }
            rows[a * labels + i] = (float)-log(fmin(fmax(p, DCRF_PROBABILITY_MIN), 1));
        }
    return DCRF_OK;
}

#define ROWS_AT_ONCE 64

/* x_i -> ln sum_j exp(sign x_j) - sign x_i: sign 1 for logits, -1 for energies to be normalized. */
static void normalize(double sign, size_t labels, float *rows, size_t variables) {
    double shift[ROWS_AT_ONCE];
    for (size_t begin = 0; begin < variables; begin += ROWS_AT_ONCE) {
        const size_t count = variables - begin < ROWS_AT_ONCE ? variables - begin : ROWS_AT_ONCE;
        float *row = rows + begin * labels;
        dcrf_dsp()->log_sums(row, labels, count, sign, shift);
        for (size_t r = 0; r < count; r++, row += labels)
            for (size_t i = 0; i < labels; i++)
                row[i] = (float)(shift[r] - sign * (double)row[i]);
    }
}

/* Energies on the array's own grid. */
static dcrf_status convert(const dcrf_view *view, const dcrf_grid *grid, dcrf_unary_kind kind,
                           double scale, float *rows, size_t variables, dcrf_error *error) {
    DCRF_SCOPED double *factor = NULL;
    if (scale != 1) {
        factor = dcrf_allocate(view->channels, sizeof *factor);
        if (!factor)
            return dcrf_fail_memory(error, "the unary");
        for (size_t i = 0; i < view->channels; i++)
            factor[i] = scale;
    }
    TRY(dcrf_view_copy(view, grid, "the unary", factor, rows, view->channels, error));
    if (kind == DCRF_UNARY_PROBABILITIES)
        return probabilities_to_energies(grid, view->channels, rows, variables, error);
    if (kind == DCRF_UNARY_LOGITS)
        normalize(1, view->channels, rows, variables);
    return DCRF_OK;
}

/* ---- interpolation -------------------------------------------------------------------------- */

/* The two cells of an axis between which the centre of a cell of the image lies. */
typedef struct cell_pair {
    size_t first;
    size_t second;
    double second_share; /* in [0, 1] */
} cell_pair;

double dcrf_unary_place(size_t place, size_t image_size, size_t size) {
    return ((double)place + 0.5) * (double)size / (double)image_size - 0.5;
}

static cell_pair cells_at(size_t place, size_t image_size, size_t size) {
    const double inside =
        fmin(fmax(dcrf_unary_place(place, image_size, size), 0), (double)size - 1);
    const size_t first = (size_t)inside;
    return (cell_pair){first, first + 1 < size ? first + 1 : first, inside - floor(inside)};
}

/* Fill `sum` with the interpolated row at a position of the image. */
static void interpolate_row(const dcrf_grid *from, const float *rows, size_t labels,
                            const cell_pair pair[DCRF_MAX_AXES], double *sum) {
    memset(sum, 0, labels * sizeof *sum);
    for (unsigned corner = 0; corner < 1u << DCRF_MAX_AXES; corner++) {
        double weight = 1;
        size_t cell[DCRF_MAX_AXES];
        for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
            const bool second = corner >> axis & 1;
            weight *= second ? pair[axis].second_share : 1 - pair[axis].second_share;
            cell[axis] = second ? pair[axis].second : pair[axis].first;
        }
        if (weight == 0)
            continue;
        const float *row =
            rows + ((cell[2] * from->size[1] + cell[1]) * from->size[0] + cell[0]) * labels;
        for (size_t i = 0; i < labels; i++)
            sum[i] += weight * (double)row[i];
    }
}

static dcrf_status interpolate(const dcrf_grid *from, const float *rows, size_t labels,
                               const dcrf_grid *to, float *energies, dcrf_error *error) {
    DCRF_SCOPED double *sum = dcrf_allocate(labels, sizeof *sum);
    cell_pair pair[DCRF_MAX_AXES];
    if (!sum)
        return dcrf_fail_memory(error, "the unary");
    for (size_t z = 0; z < to->size[2]; z++) {
        pair[2] = cells_at(z, to->size[2], from->size[2]);
        for (size_t y = 0; y < to->size[1]; y++) {
            pair[1] = cells_at(y, to->size[1], from->size[1]);
            for (size_t x = 0; x < to->size[0]; x++) {
                pair[0] = cells_at(x, to->size[0], from->size[0]);
                interpolate_row(from, rows, labels, pair, sum);
                for (size_t i = 0; i < labels; i++)
                    *energies++ = (float)sum[i];
            }
        }
    }
    return DCRF_OK;
}

static dcrf_status convert_and_enlarge(const dcrf_view *view, const dcrf_grid *from, size_t cells,
                                       dcrf_unary_kind kind, double scale, const dcrf_grid *to,
                                       size_t variables, const dcrf_view *guide, float *energies,
                                       dcrf_error *error) {
    size_t count = 0;
    DCRF_SCOPED float *rows =
        dcrf_multiply(cells, view->channels, &count) ? dcrf_allocate(count, sizeof *rows) : NULL;
    if (!rows)
        return dcrf_fail_memory(error, "the unary");
    TRY(convert(view, from, kind, scale, rows, cells, error));
    TRY(guide ? dcrf_unary_enlarge_guided(from, rows, view->channels, to, guide, energies, error)
              : interpolate(from, rows, view->channels, to, energies, error));
    if (kind != DCRF_UNARY_ENERGIES)
        normalize(-1, view->channels, energies, variables);
    return DCRF_OK;
}

/* Networks divide sizes by up to 32; an array that is much smaller belongs to another image. */
#define MOST_DIVISION 64

/* ---- the interface -------------------------------------------------------------------------- */

static bool same_size(const dcrf_grid *a, const dcrf_grid *b) {
    return memcmp(a->size, b->size, sizeof a->size) == 0;
}

int dcrf_unary_fits(const dcrf_grid *from, const dcrf_grid *to) {
    size_t variables;
    if (dcrf_grid_check(from, &variables, NULL) < 0 || dcrf_grid_check(to, &variables, NULL) < 0 ||
        from->axes != to->axes)
        return 0;
    if (same_size(from, to))
        return 1;
    /* One divisor for all axes; a divided size may be off by one, rounded either way. */
    double least = 1, most = MOST_DIVISION;
    for (size_t axis = 0; axis < to->axes; axis++) {
        const double small = (double)from->size[axis], large = (double)to->size[axis];
        if (small > large)
            return 0;
        least = fmax(least, large / (small + 1));
        most = fmin(most, small > 1 ? large / (small - 1) : INFINITY);
    }
    return least <= most;
}

dcrf_status dcrf_unary_energies(const dcrf_view *view, const dcrf_grid *from, dcrf_unary_kind kind,
                                double scale, const dcrf_grid *to, const dcrf_view *guide,
                                float *energies, size_t count, dcrf_error *error) {
    size_t cells = 0, variables = 0;
    TRY(dcrf_grid_check(from, &cells, error));
    TRY(dcrf_grid_check(to, &variables, error));
    TRY(dcrf_view_check(view, "the unary", error));
    if (kind < DCRF_UNARY_ENERGIES || kind > DCRF_UNARY_LOGITS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "energies, probabilities or logits must be said");
    if (!(scale >= 0) || !isfinite(scale))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the scale of the unary is %g; it must be positive", scale);
    if (from->axes != to->axes)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "the unary has %zu axes and the image %zu",
                         from->axes, to->axes);
    for (size_t axis = 0; axis < to->axes; axis++)
        if (from->size[axis] > to->size[axis])
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "the unary is larger than the image: %zu to %zu along axis %zu",
                             from->size[axis], to->size[axis], axis);
    TRY(dcrf_check_rows(energies, count, variables, view->channels, view->channels, "the energies",
                        error));
    if (scale == 0)
        scale = 1;
    if (same_size(from, to))
        return convert(view, from, kind, scale, energies, variables, error);
    return convert_and_enlarge(view, from, cells, kind, scale, to, variables, guide, energies,
                               error);
}
