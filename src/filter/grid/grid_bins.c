/* Bins of the ordered filter for a part of a grid.
 *
 * If a part has few distinct values, it uses few bins, and convolving just those gives the same
 * result: the others are zero everywhere. As the LP converges, most labels have marginal 0 or 1 in
 * most parts of an image. If only one bin is in use, the output is zero since F(h, h) = 0. */
#include "filter/grid/grid.h"

#include <string.h>

/* Columns evaluated together. */
#define COLUMNS 64

void dcrf_grid_bins_all(struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered) {
    bins->count = ordered->bins;
    for (size_t h = 0; h < ordered->bins; h++)
        bins->number[h] = (uint8_t)h;
    bins->table = ordered->table;
}

void dcrf_grid_bins_find(struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         size_t first, size_t columns, size_t lines, size_t pitch, float *table) {
    uint8_t is_used[DCRF_MAX_BINS + 1] = {0}, used[DCRF_MAX_BINS];
    for (size_t y = 0; y < lines; y++, first += pitch) {
        const uint8_t *bin = ordered->bin + first;
        for (size_t x = 0; x < columns; x++)
            is_used[bin[x]] = 1;
        if (ordered->table)
            for (size_t x = 0; x < columns; x++)
                is_used[(size_t)bin[x] + (ordered->fraction[first + x] > 0)] = 1;
    }
    size_t count = 0;
    for (size_t h = 0; h < ordered->bins; h++) {
        bins->number[h] = (uint8_t)count;
        used[count] = (uint8_t)h;
        count += is_used[h];
    }
    bins->count = count;
    bins->table = ordered->table;
    if (!ordered->table || count == ordered->bins)
        return;
    const size_t row = dcrf_bin_row(count), whole_row = dcrf_bin_row(ordered->bins);
    for (size_t h = 0; h < count; h++) {
        const float *from = ordered->table + used[h] * whole_row;
        for (size_t k = 0; k < row; k++)
            table[h * row + k] = k < count ? from[used[k]] : 0;
    }
    bins->table = table;
}

void dcrf_grid_bins_fill(const struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         const float *scale, size_t variable, size_t count, size_t first_bin,
                         size_t width, float *rows) {
    memset(rows, 0, count * width * sizeof *rows);
    for (size_t a = variable; a < variable + count; a++, rows += width) {
        const float whole = scale ? scale[a] : 1;
        const float upper = ordered->table ? whole * ordered->fraction[a] : 0;
        const size_t bin = bins->number[ordered->bin[a]] - first_bin; /* wraps around if below
                                                                       * first_bin */
        if (bin < width)
            rows[bin] = whole - upper;
        if (bin + 1 < width && upper > 0)
            rows[bin + 1] = upper;
    }
}

void dcrf_grid_bins_read(const struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         const float *scale, size_t variable, size_t count, size_t first_bin,
                         size_t width, const float *rows) {
    struct dcrf_view_of_bins view = {.width = width,
                                     .first = first_bin,
                                     .table = bins->table,
                                     .table_row = dcrf_bin_row(bins->count)};
    for (size_t first = 0; first < count; first += COLUMNS) {
        const size_t a = variable + first,
                     columns = count - first < COLUMNS ? count - first : COLUMNS;
        uint8_t bin[COLUMNS];
        float seen[COLUMNS] = {0};
        for (size_t i = 0; i < columns; i++)
            bin[i] = bins->number[ordered->bin[a + i]];
        view.values = rows + first * width;
        dcrf_dsp()->read(&view, bin, ordered->table ? ordered->fraction + a : NULL, seen, columns);
        for (size_t i = 0; i < columns; i++)
            ordered->out[a + i] += scale ? scale[a + i] * seen[i] : seen[i];
    }
}
