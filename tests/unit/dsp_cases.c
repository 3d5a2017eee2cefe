#include "dsp_cases.h"

#include "dense.h"

#include <math.h>
#include <stdlib.h>

void free_dsp_result(struct dsp_result *result) {
    free(result->value);
    free(result->size);
}

static float *absolutes(const float *values, size_t count) {
    float *result = malloc(count * sizeof *result);
    for (size_t i = 0; i < count; i++)
        result[i] = fabsf(values[i]);
    return result;
}

/* Random numbers of either sign, with zeros and ones among them. */
static float *random_floats(size_t count, uint64_t seed) {
    float *values = random_block(count, 1, -2, 2, seed);
    for (size_t i = 0; i < count; i += 13)
        values[i] = (float)(i % 2);
    return values;
}

/* Rows of all lengths. */
static size_t row_width(uint64_t number) {
    return number % 5 == 4 ? DCRF_NARROW_LANES : 8 * (1 + number % 4);
}

/* Row widths that are multiples of four. */
static size_t fours_width(uint64_t number) {
    return 4 * (1 + number % (DCRF_DSP_WIDTH / 4));
}

/* Split rows of vertices into two pieces, as a ring stores them, or join them again. Returns the
 * offset of the second pieces. */
static size_t divide_rows(const struct dcrf_dsp *dsp, float *rows, size_t count, size_t width,
                          bool is_back) {
    const size_t piece = dsp->ring_piece, first = piece ? width / piece * piece : width;
    const size_t rest = width - first, last_pieces = count * first;
    float *divided = malloc((count * width + 1) * sizeof *divided);
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < width; i++) {
            const size_t whole = v * width + i;
            const size_t place = i < first ? v * first + i : last_pieces + v * rest + i - first;
            divided[is_back ? whole : place] = rows[is_back ? place : whole];
        }
    memcpy(rows, divided, count * width * sizeof *rows);
    free(divided);
    return last_pieces;
}

/* Splats if `splats`, otherwise slices; with or without a ring. */
static struct dsp_result run_runs(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                  double *time_s, bool splats, bool in_ring) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    const bool is_short = number % 3 == 0;             /* each variable is its own run, in order */
    const bool is_single = is_short || number % 5 < 2; /* the same, in any order */
    const bool is_narrow = is_short && (in_ring || number / 3 % 3 < 2);
    const size_t width = is_narrow  ? 2 + number / 3 % 3 % 2 * 2
                         : is_short ? 8 * (1 + number % 4)
                                    : fours_width(number);
    const size_t corners = 1 + number / 4 % 9;
    const size_t count = random_below(&rng, 20), stride = width + 8 * random_below(&rng, 3);
    const size_t vertices = 1 + random_below(&rng, 40);
    uint32_t *first = malloc((count + 1) * sizeof *first);
    first[0] = 0;
    for (size_t i = 0; i < count; i++)
        first[i + 1] = first[i] + 1 + (is_single ? 0 : (uint32_t)random_below(&rng, 7));
    const size_t places = first[count];
    uint32_t *variable = malloc((places + 1) * sizeof *variable);
    for (size_t i = 0; i < places; i++) /* each once, in reverse */
        variable[i] = (uint32_t)(places - 1 - i);
    uint32_t *vertex = malloc((count * corners + 1) * sizeof *vertex);
    for (size_t i = 0; i < count * corners; i++)
        vertex[i] = (uint32_t)random_below(&rng, vertices);
    const size_t in_count = splats ? places * stride + width : vertices * width;
    float *weight = random_floats(places * corners + 1, number + 1);
    float *in = random_floats(in_count, 2), *size_in = absolutes(in, in_count);
    float *size_weight = absolutes(weight, places * corners + 1);
    struct dsp_result r = {.count = splats ? vertices * width : places * stride + width,
                           .operations = (splats ? 2 * places + count * corners : corners) + 4};
    r.value = random_floats(r.count, 3);
    r.size = absolutes(r.value, r.count);
    struct dcrf_runs runs = {.corners = corners,
                             .first = is_short ? NULL : first,
                             .vertex = vertex,
                             .variable = is_short ? NULL : variable,
                             .weight = weight,
                             .places = places,
                             .is_single = is_single,
                             .vertices = splats ? r.value : in,
                             .variables = splats ? in : r.value,
                             .stride = stride,
                             .width = width,
                             .factor = splats ? 1 : -1.5f,
                             .accumulate = number / 8 % 2,
                             .is_near = number / 3 % 2};
    void (*work)(const struct dcrf_runs *, size_t, size_t) =
        in_ring  ? splats ? dsp->splat_ring : dsp->slice_ring
        : splats ? dsp->splat_runs
                 : dsp->slice_runs;
    if (in_ring)
        runs.last_pieces = divide_rows(dsp, runs.vertices, vertices, width, false);
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++) { /* in two parts */
        work(&runs, 0, count / 3);
        work(&runs, count / 3, count);
    }
    *time_s = clocked(start_s, repeats);
    if (in_ring)
        divide_rows(dsp, runs.vertices, vertices, width, true);
    runs.weight = size_weight;
    runs.vertices = splats ? r.size : size_in;
    runs.variables = splats ? size_in : r.size;
    runs.factor = splats ? 1 : 1.5f;
    const struct dcrf_dsp *plain = dcrf_dsp_for(DCRF_CPU_C);
    (splats ? plain->splat_runs : plain->slice_runs)(&runs, 0, count);
    free(first);
    free(variable);
    free(vertex);
    free(weight);
    free(size_weight);
    free(in);
    free(size_in);
    return r;
}

static struct dsp_result run_splat_runs(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    return run_runs(dsp, number, repeats, time_s, true, false);
}

static struct dsp_result run_slice_runs(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    return run_runs(dsp, number, repeats, time_s, false, false);
}

static struct dsp_result run_splat_ring(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    return run_runs(dsp, number, repeats, time_s, true, true);
}

static struct dsp_result run_slice_ring(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    return run_runs(dsp, number, repeats, time_s, false, true);
}

static struct dsp_result run_blurs(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                   double *time_s, bool in_ring) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    const bool is_short = number % 5 == 0;
    const size_t width = is_short ? 2 : fours_width(number), rows = 1 + random_below(&rng, 60);
    const bool two = number / 4 % 2 && !is_short && !in_ring;
    uint32_t *neighbour[2];
    float *in[2], *size_in[2];
    for (size_t k = 0; k < 2; k++) {
        neighbour[k] = malloc(2 * rows * sizeof *neighbour[k]);
        for (size_t i = 0; i < 2 * rows; i++) /* `rows` itself is the row of zeros */
            neighbour[k][i] = (uint32_t)random_below(&rng, rows + 1);
        in[k] = random_floats((rows + 1) * width, number + k);
        memset(in[k] + rows * width, 0, width * sizeof *in[k]);
        size_in[k] = absolutes(in[k], (rows + 1) * width);
    }
    struct dsp_result r = {.count = (rows + 1) * width, .operations = 8};
    r.value = random_floats(r.count, 3);
    r.size = absolutes(r.value, r.count);
    struct dcrf_blur b = {.neighbour = {neighbour[0], two ? neighbour[1] : NULL},
                          .in = {in[0], two ? in[1] : NULL},
                          .out = r.value,
                          .width = width,
                          .centre = 0.9f,
                          .side = 0.3f};
    if (in_ring) {
        b.last_pieces = divide_rows(dsp, in[0], rows + 1, width, false);
        divide_rows(dsp, r.value, rows + 1, width, false);
    }
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++) {
        (in_ring ? dsp->blur_ring : dsp->blur)(&b, 0, rows / 2);
        (in_ring ? dsp->blur_ring : dsp->blur)(&b, rows / 2, rows);
    }
    *time_s = clocked(start_s, repeats);
    if (in_ring)
        divide_rows(dsp, r.value, rows + 1, width, true);
    b.in[0] = size_in[0];
    b.in[1] = two ? size_in[1] : NULL;
    b.out = r.size;
    dcrf_dsp_for(DCRF_CPU_C)->blur(&b, 0, rows);
    for (size_t k = 0; k < 2; k++) {
        free(neighbour[k]);
        free(in[k]);
        free(size_in[k]);
    }
    return r;
}

static struct dsp_result run_blur(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                  double *time_s) {
    return run_blurs(dsp, number, repeats, time_s, false);
}

static struct dsp_result run_blur_ring(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                       double *time_s) {
    return run_blurs(dsp, number, repeats, time_s, true);
}

static struct dsp_result run_convolve(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                      double *time_s) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    /* Rows of adjacent variables, possibly many. */
    const size_t width = row_width(number) * (1 + number / 3 % 3), radius = number / 4 % 19;
    const size_t inputs = 2 * radius + DCRF_CONVOLVE_ROWS, offset = 8 * random_below(&rng, 3);
    const size_t length = offset + width, out_step = width + 8 * random_below(&rng, 3);
    float *in = random_floats(inputs * length, number), *size_in = absolutes(in, inputs * length);
    float *tap = random_floats(radius + 1, 7), *size_tap = absolutes(tap, radius + 1);
    /* Rows in any order, passed by pointer. */
    const float **rows = malloc(inputs * sizeof *rows), **size_rows = malloc(inputs * sizeof *rows);
    for (size_t i = 0; i < inputs; i++) {
        const size_t from = random_below(&rng, inputs);
        rows[i] = in + from * length;
        size_rows[i] = size_in + from * length;
    }
    struct dsp_result r = {.count = DCRF_CONVOLVE_ROWS * out_step, .operations = 3 * radius + 4};
    r.value = random_floats(r.count, 3);
    r.size = absolutes(r.value, r.count);
    struct dcrf_convolve c = {.in = rows,
                              .in_offset = offset,
                              .tap = tap,
                              .radius = radius,
                              .out = r.value,
                              .out_step = out_step,
                              .rows = 1 + random_below(&rng, DCRF_CONVOLVE_ROWS),
                              .floats = width,
                              .factor = 0.8f,
                              .accumulate = number / 2 % 2};
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->convolve(&c);
    *time_s = clocked(start_s, repeats);
    c.in = size_rows;
    c.tap = size_tap;
    c.out = r.size;
    dcrf_dsp_for(DCRF_CPU_C)->convolve(&c);
    free(in);
    free(size_in);
    free(tap);
    free(size_tap);
    free(rows);
    free(size_rows);
    return r;
}

static struct dsp_result run_scale(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                   double *time_s) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    const size_t width = row_width(number), rows = random_below(&rng, 50);
    const size_t in_stride = width + random_below(&rng, 20);
    const size_t out_stride = width + random_below(&rng, 20);
    float *in = random_floats(rows * in_stride + 1, number), *scale = random_floats(rows + 1, 5);
    float *size_in = absolutes(in, rows * in_stride + 1), *size_scale = absolutes(scale, rows + 1);
    struct dsp_result r = {.count = (rows + 1) * out_stride, .operations = 3};
    r.value = random_floats(r.count, 3);
    r.size = absolutes(r.value, r.count);
    struct dcrf_scaling s = {.in = in,
                             .in_stride = in_stride,
                             .scale = number % 3 ? scale : NULL,
                             .factor = 0.8f,
                             .out = r.value,
                             .out_stride = out_stride,
                             .width = width,
                             .accumulate = number / 2 % 2};
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->scale(&s, rows);
    *time_s = clocked(start_s, repeats);
    s.in = size_in;
    s.scale = s.scale ? size_scale : NULL;
    s.out = r.size;
    dcrf_dsp_for(DCRF_CPU_C)->scale(&s, rows);
    free(in);
    free(scale);
    free(size_in);
    free(size_scale);
    return r;
}

/* An antisymmetric table of padded rows, and histograms with zeros in the padding. */
static struct dcrf_histograms random_histograms(size_t bins, size_t rows, uint64_t number,
                                                float **table) {
    struct dcrf_histograms h = {.bins = bins, .row = dcrf_bin_row(bins)};
    h.values = random_block(rows + 1, h.row, 0, 1, number);
    *table = calloc(bins * h.row, sizeof **table);
    float *numbers = random_floats(bins * bins, number + 1);
    for (size_t i = 0; i < bins; i++)
        for (size_t k = 0; k < i; k++) {
            (*table)[i * h.row + k] = numbers[i * bins + k];
            (*table)[k * h.row + i] = -numbers[i * bins + k];
        }
    for (size_t a = 0; a <= rows; a++)
        for (size_t i = bins; i < h.row; i++)
            h.values[a * h.row + i] = 0;
    free(numbers);
    return h;
}

/* Numbers of bins with every remainder, and the maximum. */
static size_t bins_of(uint64_t number) {
    return number % 50 == 49 ? DCRF_MAX_BINS : 2 + (size_t)number % 80;
}

static struct dsp_result run_weigh(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                   double *time_s) {
    const size_t bins = bins_of(number), rows = 1 + number % 9;
    float *table;
    struct dcrf_histograms h = random_histograms(bins, rows, number, &table);
    struct dsp_result r = {.value = h.values, .count = (rows + 1) * h.row, .operations = bins + 1};
    r.size = malloc(r.count * sizeof *r.size);
    for (size_t a = 0; a <= rows; a++)
        for (size_t i = 0; i < h.row; i++) {
            float *size = &r.size[a * h.row + i];
            *size = 0;
            for (size_t k = 0; k < bins && i < bins; k++)
                *size += fabsf(table[i * h.row + k]) * h.values[a * h.row + k];
        }
    h.table = table;
    float *start = malloc(r.count * sizeof *start);
    memcpy(start, h.values, r.count * sizeof *start);
    *time_s = 0;
    for (size_t i = 0; i < repeats; i++) {
        memcpy(h.values, start, r.count * sizeof *start); /* it works in place */
        const double start_s = dcrf_time_s();
        dsp->weigh(&h, 0, rows / 2);
        dsp->weigh(&h, rows / 2, rows);
        *time_s += (dcrf_time_s() - start_s) / (double)repeats;
    }
    free(start);
    free(table);
    return r;
}

/* One block of the bins of some variables, added to the results of the other blocks. */
static struct dsp_result run_read(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                  double *time_s) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    enum { ROWS = 20 };
    const size_t bins = bins_of(number), padded = dcrf_bin_row(bins);
    const size_t blocks = (padded + DCRF_DSP_WIDTH - 1) / DCRF_DSP_WIDTH;
    const size_t first = DCRF_DSP_WIDTH * random_below(&rng, blocks);
    const size_t width = padded - first < DCRF_DSP_WIDTH ? padded - first : DCRF_DSP_WIDTH;
    float *table, fraction[ROWS];
    uint8_t bin[ROWS];
    struct dcrf_histograms h = random_histograms(bins, ROWS, number, &table);
    for (size_t a = 0; a < ROWS; a++) {
        bin[a] = (uint8_t)random_below(&rng, bins);
        const bool last = bin[a] + (size_t)1 == bins;
        fraction[a] = last || a % 4 == 0 ? 0 : (float)dcrf_rng_uniform(&rng);
    }
    bin[0] = 0;
    bin[1] = (uint8_t)(bins - 1);
    fraction[0] = fraction[1] = 0;
    float *values = malloc(ROWS * width * sizeof *values);
    struct dsp_result r = {.count = ROWS, .operations = width + 5};
    r.value = random_floats(ROWS, 3);
    r.size = absolutes(r.value, ROWS);
    for (size_t a = 0; a < ROWS; a++)
        for (size_t i = 0; i < width; i++) {
            values[a * width + i] = h.values[a * h.row + first + i];
            r.size[a] += 2 * values[a * width + i]; /* the table's entries are at most 2 */
        }
    const struct dcrf_view_of_bins view = {.values = values,
                                           .width = width,
                                           .first = first,
                                           .table = number % 2 ? table : NULL,
                                           .table_row = padded};
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->read(&view, bin, number % 2 ? fraction : NULL, r.value, ROWS);
    *time_s = clocked(start_s, repeats);
    free(values);
    free(h.values);
    free(table);
    return r;
}

const struct dsp_entry dsp_filter_entries[DSP_FILTER_ENTRIES] = {
    {"splat_runs", run_splat_runs},
    {"slice_runs", run_slice_runs},
    {"blur", run_blur},
    {"splat_ring", run_splat_ring},
    {"slice_ring", run_slice_ring},
    {"blur_ring", run_blur_ring},
    {"convolve", run_convolve},
    {"scale", run_scale},
    {"weigh", run_weigh},
    {"read", run_read},
};
