/* The exact operator on the device: construction, methods, and error bounds.
 *
 * As in filter/exact/exact.c, errors are in units of 2^-24 of the row sum. A kernel value has the
 * error of its exponent (dsp/pairs.h) and that of the device's exp2, POWER_ROUNDINGS;
 * `row_roundings` bounds their effect on a row. The errors of the sums come on top: see
 * exact_product.cu and exact_line.cu. */
#include "backend/cuda/exact.cuh"

#include "dsp/dsp.h"

#include <cstdlib>
#include <math.h>
#include <vector>

/* 2^-22 (exact_tensor.cuh). */
#define POWER_ROUNDINGS 4
/* Rounding of a part and of the total. */
#define RESULT_ROUNDINGS 2
#define WHAT "an exact operator"
/* Enough blocks to keep any device busy to the end, without too many partial sums. */
#define WANTED_BLOCKS 8192
#define MOST_PARTS 32
#define LEAST_TILES 4 /* per part */

static struct exact_operator *exact_of(const dcrf_operator *base) {
    return (struct exact_operator *)base;
}

/* ---- errors --------------------------------------------------------------------------------- */

/* The rounding error of a kernel value exp(-exponent). */
static double value_roundings(const struct exact_operator *op, double exponent) {
    const struct exact_metric *metric = &op->metric;
    const double per_exponent =
        op->has_exact_squares ? metric->groups + 1 : metric->largest_group + metric->groups + 3;
    /* |f - (float)f| = e changes x by at most 2 e sqrt(2 x) <= e (2 x + 1). */
    return POWER_ROUNDINGS + exponent * per_exponent +
           op->rounded_features * 0x1p24 * (2 * exponent + 1);
}

/* Relative error of sums in double, including the pairs left out there; doubled for the scales. */
#define ERROR_OF_DOUBLES 0x1p-40
static double double_error(const dcrf_operator *base) {
    return ERROR_OF_DOUBLES * (exact_of(base)->is_normalized ? 2 : 1);
}

/* The effect of the kernel values' errors on a row: sum_b K_ab (c + x_ab e), K_ab = exp(-x). The
 * sum of K x is at most R ln(N / R), R the sum of K, by Jensen's inequality for -K ln K. */
static double row_roundings(const struct exact_operator *op) {
    const double n = (double)op->base.base.variables;
    return value_roundings(op, fmax(1, log(n / op->least_row_sum))) + ERROR_OF_DOUBLES * 0x1p24;
}

static size_t line_roundings(const dcrf_operator *base) {
    return (size_t)ceil(row_roundings(exact_of(base)) + exact_line_roundings());
}

/* The absolute errors of exact_product.cu: up to 2^-40 per kernel value, and 2^-39 of the largest
 * s_b y_b.
 *
 * The first adds up to 2^-40 sum_b s_b, relative to (K s)_a. If s = 1, (K s)_a is at least the
 * least row sum. If s_b = R_b^-1/2, R_b <= N, it is at least s_a and at least R_a N^-1/2, and one
 * of R^-1/2, R N^-1/2 is at least N^-1/6. The second adds up to 2^-39 R_a, relative to (K s)_a >=
 * R_a min s >= R_a N^-1/2. */
static double lost_roundings(const struct exact_operator *op) {
    const double n = (double)op->base.base.variables;
    const double least = op->is_normalized ? pow(n, -1.0 / 6) : op->least_row_sum;
    const double ratio = op->is_normalized ? sqrt(n) : 1;
    return 0x1p24 * (0x1p-40 * op->sum_of_scales / least + 0x1p-39 * ratio);
}

size_t exact_apply_roundings(const struct exact_operator *op) {
    return (size_t)ceil(row_roundings(op) + exact_product_roundings(op) + lost_roundings(op)) +
           RESULT_ROUNDINGS;
}

/* The sign uses a line. A table uses a product, then F interpolated between two nodes (four
 * roundings) and a sum over the bins. */
static size_t ordered_roundings(const dcrf_operator *base, size_t bins, bool) {
    const size_t line = line_roundings(base), product = exact_apply_roundings(exact_of(base));
    return (line > product ? line : product) + bins + 4;
}

/* ---- host arrays ---------------------------------------------------------------------------- */

static dcrf_status apply_on_device(struct device_operator *op,
                                   const struct dcrf_application *application, dcrf_error *error) {
    return exact_apply((struct exact_operator *)op, application, error);
}

static dcrf_status line_on_device(struct device_operator *op, const struct dcrf_line *line,
                                  dcrf_error *error) {
    return exact_line((struct exact_operator *)op, line, error);
}

static dcrf_status line_double_on_device(struct device_operator *op, const struct dcrf_line *line,
                                         double *out, dcrf_error *error) {
    return exact_line_double((struct exact_operator *)op, line->epsilon, line->y, line->stride, out,
                             line->channels, error);
}

/* Copy only the wanted rows to the result; the others keep their values. */
static dcrf_status download_wanted(struct device_operator *op, const struct dcrf_line *line,
                                   dcrf_error *error) {
    const size_t n = op->base.variables;
    std::vector<float> all(n * line->stride);
    TRY(operator_download(op, all.data(), line->stride, error));
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; line->wanted[a] && c < line->channels; c++)
            line->out[a * line->stride + c] = all[a * line->stride + c];
    return DCRF_OK;
}

static dcrf_status line(const dcrf_operator *base, dcrf_workspace *workspace,
                        const struct dcrf_line *line, dcrf_error *error) {
    (void)workspace;
    struct exact_operator *op = exact_of(base);
    const device_turn turn(op->base.device);
    struct device_operator *device_op = &op->base;
    TRY(operator_upload(device_op, line->y, line->stride, error));
    if (line->stride > line->channels) /* so that padding is defined */
        TRY(check(cudaMemsetAsync(device_op->out, 0, base->variables * line->stride * sizeof(float),
                                  device_op->device->stream),
                  WHAT, error));
    struct dcrf_line inner = *line;
    inner.y = device_op->in;
    inner.out = device_op->out;
    inner.wanted = nullptr;
    TRY(exact_line(op, &inner, error));
    return line->wanted ? download_wanted(device_op, line, error)
                        : operator_download(device_op, line->out, line->stride, error);
}

static dcrf_status line_double(const dcrf_operator *base, dcrf_workspace *workspace,
                               const struct dcrf_line *line, double *out, dcrf_error *error) {
    (void)workspace;
    struct exact_operator *op = exact_of(base);
    const device_turn turn(op->base.device);
    dcrf_backend_device *device = op->base.device;
    const size_t n = base->variables, numbers = n * line->channels;
    scratch<double> result(device);
    TRY(operator_upload(&op->base, line->y, line->stride, error));
    TRY(result.take(numbers, WHAT, error));
    TRY(exact_line_double(op, line->epsilon, op->base.in, line->stride, result, line->channels,
                          error));
    if (!line->wanted)
        return device_download(device, out, result, numbers * sizeof *out, error);
    std::vector<double> all(numbers);
    TRY(device_download(device, all.data(), result, numbers * sizeof *out, error));
    for (size_t i = 0; i < numbers; i++)
        if (line->wanted[i / line->channels])
            out[i] = all[i];
    return DCRF_OK;
}

static dcrf_status apply_double_on_device(struct device_operator *op, const double *in, double *out,
                                          size_t channels, dcrf_error *error) {
    return exact_apply_double((const struct exact_operator *)op, in, out, channels,
                              1u << EXACT_IN_DOUBLE | 1u << EXACT_IN_BOTH, error);
}

/* ---- the ordered filter with bins ----------------------------------------------------------- */

/* As filter/exact/exact_ordered.c: the sign of bin[b] - bin[a] is their difference, clipped. A
 * table interpolated between nodes is bilinear: out_a = sum_hk hat_h(a) F_hk (K hat_k)_a with the
 * hat functions of the nodes, of which at most two are nonzero per variable. */
struct bins {
    const uint8_t *bin;
    const float *fraction, *table;
    size_t variables, count, stride; /* stride: of a row of bins */
};

static __global__ void fill_bins(bins b, float *y) {
    const size_t a = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (a < b.variables)
        y[a] = b.bin[a];
}

static __global__ void fill_hats(bins b, float *hats) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    const size_t a = i / b.stride, h = i % b.stride;
    if (a >= b.variables)
        return;
    const float fraction = b.fraction[a];
    hats[i] = h == b.bin[a] ? 1 - fraction : h == (size_t)b.bin[a] + 1 ? fraction : 0;
}

static __global__ void read_hats(bins b, const float *seen, float *out) {
    const size_t a = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (a >= b.variables)
        return;
    const double fraction = b.fraction[a];
    const float *low = b.table + b.bin[a] * b.stride;
    const float *high = fraction > 0 ? low + b.stride : low;
    double sum = 0;
    for (size_t h = 0; h < b.count; h++)
        sum += ((double)low[h] + fraction * ((double)high[h] - (double)low[h])) *
               (double)seen[a * b.stride + h];
    out[a] = (float)sum;
}

/* Device arrays; the result goes to `out`. */
static dcrf_status filter_bins(struct exact_operator *op, const struct bins *b, float *out,
                               dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const size_t n = b->variables;
    scratch<float> hats(device), seen(device);
    TRY(hats.take(n * b->stride, WHAT, error));
    if (!b->table) {
        fill_bins<<<blocks_for(n), THREADS, 0, device->stream>>>(*b, hats);
        struct dcrf_line line = {};
        line.epsilon = 1;
        line.y = hats;
        line.out = out;
        line.channels = line.stride = 1;
        TRY(exact_line(op, &line, error));
    } else {
        struct dcrf_application application = {};
        TRY(seen.take(n * b->stride, WHAT, error));
        application.in = hats;
        application.out = seen;
        application.channels = b->count;
        application.stride = b->stride;
        application.factor = 1;
        fill_hats<<<blocks_for(n * b->stride), THREADS, 0, device->stream>>>(*b, hats);
        TRY(exact_apply(op, &application, error));
        read_hats<<<blocks_for(n), THREADS, 0, device->stream>>>(*b, seen, out);
    }
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_ordered *ordered, dcrf_error *error) {
    (void)workspace;
    struct exact_operator *op = exact_of(base);
    const device_turn turn(op->base.device);
    dcrf_backend_device *device = op->base.device;
    const size_t n = base->variables;
    const size_t stride = dcrf_bin_row(ordered->bins);
    struct bins b = {nullptr, nullptr, nullptr, n, ordered->bins, ordered->table ? stride : 1};
    scratch<uint8_t> bin(device);
    scratch<float> fraction(device), table(device), out(device);
    TRY(device_enter(device, error));
    TRY(bin.take(n, WHAT, error));
    TRY(out.take(n, WHAT, error));
    TRY(device_upload(device, bin, ordered->bin, n, error));
    if (ordered->table) {
        TRY(fraction.take(n, WHAT, error));
        TRY(table.take(ordered->bins * stride, WHAT, error));
        TRY(device_upload(device, fraction, ordered->fraction, n * sizeof(float), error));
        TRY(device_upload(device, table, ordered->table, ordered->bins * stride * sizeof(float),
                          error));
    }
    b.bin = bin;
    b.fraction = fraction;
    b.table = table;
    TRY(filter_bins(op, &b, out, error));
    return device_download(device, ordered->out, out, n * sizeof(float), error);
}

/* ---- what is left out, and the diagonal ----------------------------------------------------- */

/* The bound from the boxes, plus, for float, the sum of the pairs that count only in double. */
static __global__ void add_mass(const uint32_t *order, const double *box_mass, const double *sums,
                                size_t variables, double *mass) {
    const size_t place = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (place < variables)
        mass[order[place]] = (box_mass[place] + (sums ? sums[order[place]] : 0)) * (1 + 0x1p-30);
}

static dcrf_status left_out(const dcrf_operator *base, dcrf_workspace *workspace, bool in_double,
                            double *mass, dcrf_error *error) {
    (void)workspace;
    const struct exact_operator *op = exact_of(base);
    const device_turn turn(op->base.device);
    dcrf_backend_device *device = op->base.device;
    const size_t n = base->variables;
    scratch<double> box_mass(device), sums(device), all(device);
    TRY(device_enter(device, error));
    TRY(box_mass.take(exact_places(op), WHAT, error));
    if (!in_double)
        TRY(sums.take(n, WHAT, error));
    TRY(all.take(n, WHAT, error));
    TRY(exact_box_mass(op, box_mass, error));
    if (!in_double)
        TRY(exact_apply_double(op, nullptr, sums, 1, 1u << EXACT_IN_DOUBLE, error));
    add_mass<<<blocks_for(n), THREADS, 0, device->stream>>>(op->order, box_mass, sums, n, all);
    TRY(check(cudaGetLastError(), WHAT, error));
    return device_download(device, mass, all, n * sizeof *mass, error);
}

static __global__ void square_scales(const uint32_t *order, const double *scale, size_t variables,
                                     float *diagonal) {
    const size_t place = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (place < variables)
        diagonal[order[place]] = (float)(scale[place] * scale[place]);
}

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    const struct exact_operator *op = exact_of(base);
    const device_turn turn(op->base.device);
    dcrf_backend_device *device = op->base.device;
    const size_t n = base->variables;
    scratch<float> squares(device);
    TRY(device_enter(device, error));
    TRY(squares.take(n, WHAT, error));
    square_scales<<<blocks_for(n), THREADS, 0, device->stream>>>(op->order, op->scale, n, squares);
    TRY(check(cudaGetLastError(), WHAT, error));
    return device_download(device, out, squares, n * sizeof *out, error);
}

/* ---- construction --------------------------------------------------------------------------- */

static void free_exact(dcrf_operator *base) {
    struct exact_operator *op = exact_of(base);
    dcrf_backend_device *device = op->base.device;
    device_enter(device, nullptr);
    for (void *memory :
         {(void *)op->order, (void *)op->features, (void *)op->features_single, (void *)op->scale,
          (void *)op->scale_single, (void *)op->row_sums, (void *)op->box, (void *)op->limit,
          (void *)op->state, (void *)op->near_begin, (void *)op->near, (void *)op->row_digits,
          (void *)op->key_digits, (void *)op->keys, (void *)op->rows, (void *)op->partials,
          (void *)op->line_sums, (void *)op->largest, (void *)op->flag})
        device_release(device, memory);
    operator_clear(&op->base);
    free(op);
}

static struct dcrf_operator_methods make_methods() {
    struct dcrf_operator_methods made = {};
    made.kind = DCRF_OPERATOR_EXACT;
    made.apply = operator_apply;
    made.ordered = ordered;
    made.line = line;
    made.line_double = line_double;
    made.apply_double = operator_apply_double;
    made.disagreement = operator_disagreement;
    made.ordered_roundings = ordered_roundings;
    made.line_roundings = line_roundings;
    made.double_error = double_error;
    made.left_out = left_out;
    made.diagonal = diagonal;
    made.free = free_exact;
    return made;
}

static const struct dcrf_operator_methods methods = make_methods();

static double factor_of(const struct dcrf_features *features, size_t i) {
    return i < features->axes ? features->axis_factor[i]
                              : features->channel_factor[i - features->axes];
}

/* Features with the same sigma become a group. Values are scaled by a power of two so that no
 * relevant square overflows. */
static void arrange(const struct dcrf_features *features, struct exact_metric *metric,
                    struct exact_arrangement *arrangement) {
    bool is_taken[DCRF_MAX_FEATURES] = {};
    int count = 0;
    *metric = {};
    metric->features = (int)features->dimension;
    for (size_t i = 0; i < features->dimension; i++) {
        if (is_taken[i])
            continue;
        const double factor = factor_of(features, i);
        const double unit = exp2(floor(log2(factor)));
        const double weight = factor / unit * (factor / unit) * (1 / (2 * log(2.0)));
        const int first = count;
        for (size_t k = i; k < features->dimension; k++)
            if (!is_taken[k] && factor_of(features, k) == factor) {
                is_taken[k] = true;
                arrangement->feature[count] = (int)k;
                arrangement->unit[count] = unit;
                arrangement->root[count++] = sqrt(weight);
            }
        metric->ends |= 1u << (count - 1);
        metric->weight_double[count - 1] = weight;
        metric->weight[count - 1] = (float)weight;
        metric->largest_group =
            count - first > metric->largest_group ? count - first : metric->largest_group;
        metric->groups++;
    }
}

/* 1, or 1 / sqrt(the row sum); zero beyond the end. */
static __global__ void fill_scales(const double *row_sums, size_t variables, size_t places,
                                   bool is_normalized, double *scale, float *scale_single) {
    const size_t place = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (place >= places)
        return;
    double value = place < variables ? 1 : 0;
    if (is_normalized && place < variables)
        value = 1 / sqrt(row_sums[place]);
    scale[place] = value;
    scale_single[place] = (float)value;
}

static dcrf_status take_memory(struct exact_operator *op, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const size_t places = exact_places(op), d = (size_t)op->metric.features, tiles = op->tiles;
    size_t bytes = sizeof *op;
    dcrf_status status = DCRF_OK;
    const auto take = [&](auto **array, size_t count) {
        bytes += count * sizeof **array;
        if (status == DCRF_OK)
            status = device_array(device, array, count, WHAT, error);
    };
    take(&op->order, places);
    take(&op->features, places * d);
    take(&op->features_single, places * d);
    take(&op->scale, places);
    take(&op->scale_single, places);
    take(&op->row_sums, places);
    take(&op->box, tiles * 2 * d);
    take(&op->limit, tiles);
    take(&op->state, tiles * tiles);
    take(&op->near_begin, tiles + 1);
    take(&op->keys, places * EXACT_CHANNELS);
    take(&op->rows, places * EXACT_CHANNELS);
    take(&op->partials, places * EXACT_CHANNELS * op->parts);
    take(&op->line_sums, places);
    take(&op->largest, EXACT_CHANNELS);
    take(&op->flag, 1);
    op->base.base.bytes = bytes;
    return status;
}

static unsigned parts_for(unsigned tiles) {
    const unsigned most = (tiles + LEAST_TILES - 1) / LEAST_TILES;
    unsigned parts = (WANTED_BLOCKS + tiles - 1) / tiles;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    return parts < most ? parts : most;
}

static dcrf_status plan(struct exact_operator *op, const struct dcrf_features *features,
                        const struct exact_arrangement *arrangement, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const size_t places = exact_places(op);
    scratch<uint8_t> steps(device);
    TRY(take_memory(op, error));
    TRY(exact_order(op, features, error));
    TRY(exact_fill_features(op, features, arrangement, error));
    TRY(exact_fill_digits(op, arrangement, error));
    TRY(exact_find_near(op, error));
    TRY(steps.take((size_t)op->tiles * op->tiles, WHAT, error));
    TRY(exact_measure(op, steps, error));
    TRY(exact_refine(op, steps, error));
    op->base.base.bytes += op->near_pairs * sizeof *op->near;
    fill_scales<<<blocks_for(places), THREADS, 0, device->stream>>>(
        op->row_sums, op->base.base.variables, places, op->is_normalized, op->scale,
        op->scale_single);
    return check(cudaGetLastError(), WHAT, error);
}

dcrf_status exact_new(struct device_operator **out, dcrf_backend_device *device,
                      const struct dcrf_features *features, dcrf_normalization normalization,
                      dcrf_error *error) {
    *out = nullptr;
    struct exact_operator *op =
        static_cast<struct exact_operator *>(calloc(1, sizeof(struct exact_operator)));
    if (!op)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for an exact operator");
    struct exact_arrangement arrangement;
    arrange(features, &op->metric, &arrangement);
    device_hold(device);
    op->base.base.device = device;
    op->base.device = device;
    op->base.apply_on_device = apply_on_device;
    op->base.line_on_device = line_on_device;
    op->base.line_double_on_device = line_double_on_device;
    op->base.apply_double_on_device = apply_double_on_device;
    op->base.base.methods = &methods;
    op->base.base.variables = features->variables;
    op->tiles = (unsigned)((features->variables + EXACT_TILE - 1) / EXACT_TILE);
    op->parts = parts_for(op->tiles);
    op->is_normalized = normalization == DCRF_NORMALIZE_SYMMETRIC;
    const dcrf_status status = plan(op, features, &arrangement, error);
    if (status < 0) {
        free_exact(&op->base.base);
        return status;
    }
    *out = &op->base;
    return DCRF_OK;
}
