/* The exact operator of the device against its formula, and its speed.
 *
 *   exact_bench            check, then measure
 *   exact_bench check      check only
 *
 * The formula is a plain kernel in double below, which shares nothing with the operator. Results
 * must be within what the operator itself states: roundings and what is left out. Exits 77 where
 * there is no device. */
#include "cuda/exact.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

/* ---- problems ------------------------------------------------------------------------------- */

static uint64_t seed = 1;
static double uniform() {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

struct problem {
    char name[96];
    struct dcrf_features features;
    std::vector<double> channel;
    dcrf_normalization normalization;
};

/* Patches with soft edges, a gradient and grain: whole numbers from 0 to 255. */
static void fill_photograph(std::vector<double> &channel, size_t width, size_t height) {
    const size_t patches = 40;
    std::vector<double> centre(patches * 2), colour(patches * 3);
    for (double &x : centre)
        x = uniform();
    for (double &x : colour)
        x = 30 + 190 * uniform();
    channel.resize(width * height * 3);
    for (size_t a = 0; a < width * height; a++) {
        const double x = (double)(a % width) / (double)width;
        const double y = (double)(a / width) / (double)height;
        double sum = 0, mixed[3] = {0, 0, 0};
        for (size_t p = 0; p < patches; p++) {
            const double dx = x - centre[2 * p], dy = y - centre[2 * p + 1];
            const double weight = exp(-(dx * dx + dy * dy) * 400) + 1e-9;
            sum += weight;
            for (int c = 0; c < 3; c++)
                mixed[c] += weight * colour[3 * p + c];
        }
        const double texture = 15 * sin(40 * x) * cos(31 * y);
        const double grain = 24 * (uniform() + uniform() + uniform() - 1.5);
        for (int c = 0; c < 3; c++)
            channel[a * 3 + c] = std::min(
                255.0,
                std::max(0.0, floor(mixed[c] / sum + texture + grain + 6 * (uniform() - 0.5))));
    }
}

static void finish(problem &p, dcrf_kernel_kind kind, size_t axes, const size_t *size,
                   size_t channels, double sigma, double channel_sigma,
                   dcrf_normalization normalization) {
    p.normalization = normalization;
    p.features = {};
    p.features.kind = kind;
    p.features.grid.axes = axes;
    p.features.variables = 1;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        p.features.grid.size[axis] = axis < axes ? size[axis] : 1;
        p.features.grid.spacing[axis] = 1;
        p.features.variables *= p.features.grid.size[axis];
    }
    p.features.axes = kind == DCRF_KERNEL_FEATURES ? 0 : axes;
    p.features.channels = channels;
    p.features.dimension = p.features.axes + channels;
    for (size_t i = 0; i < p.features.axes; i++)
        p.features.axis_factor[i] = 1 / sigma;
    for (size_t c = 0; c < channels; c++)
        p.features.channel_factor[c] = kind == DCRF_KERNEL_FEATURES ? 1 : 1 / channel_sigma;
    p.features.channel = channels ? p.channel.data() : nullptr;
}

static void make_photograph(problem &p, size_t width, size_t height, double sigma,
                            double channel_sigma, dcrf_normalization normalization) {
    snprintf(p.name, sizeof p.name, "photograph %zux%zu, %g/%g%s", width, height, sigma,
             channel_sigma, normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    const size_t size[] = {width, height};
    fill_photograph(p.channel, width, height);
    finish(p, DCRF_KERNEL_BILATERAL, 2, size, 3, sigma, channel_sigma, normalization);
}

/* Clouds of points in `dimension` features that are no whole numbers. */
static void make_clouds(problem &p, size_t count, size_t dimension, double width,
                        dcrf_normalization normalization) {
    snprintf(p.name, sizeof p.name, "%zu points in %zu dimensions%s", count, dimension,
             normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    std::vector<double> centre(20 * dimension);
    for (double &x : centre)
        x = width * uniform();
    p.channel.resize(count * dimension);
    for (size_t a = 0; a < count; a++)
        for (size_t i = 0; i < dimension; i++)
            p.channel[a * dimension + i] =
                centre[a * 7919 % 20 * dimension + i] + 2 * (uniform() + uniform() - 1);
    finish(p, DCRF_KERNEL_FEATURES, 1, &count, dimension, 1, 1, normalization);
}

static void make_space(problem &p, size_t x, size_t y, size_t z, double sigma,
                       dcrf_normalization normalization) {
    const size_t size[] = {x, y, z}, axes = z > 1 ? 3 : 2;
    snprintf(p.name, sizeof p.name, "space %zux%zux%zu, %g%s", x, y, z, sigma,
             normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    finish(p, DCRF_KERNEL_SPATIAL, axes, size, 0, sigma, 1, normalization);
}

/* ---- the formula ---------------------------------------------------------------------------- */

#define SOME_THREADS 256

struct formula {
    const double *features; /* variables x dimension, divided by sigma */
    size_t variables, dimension;
    const double *scale;
};

static __device__ double kernel_value(const formula &f, size_t a, size_t b) {
    double squared = 0;
    for (size_t i = 0; i < f.dimension; i++) {
        const double difference = f.features[a * f.dimension + i] - f.features[b * f.dimension + i];
        squared += difference * difference;
    }
    return exp(-squared / 2) * (f.scale ? f.scale[a] * f.scale[b] : 1);
}

enum what { ROW_SUM, APPLY, CLIPPED, SIGN, TABLE, LEFT_OUT };

struct question {
    what kind;
    const float *y; /* variables x stride */
    size_t stride;
    const float *table; /* TABLE: y is node + fraction, nodes in rows of table_stride */
    size_t table_stride;
    double epsilon;
    const uint32_t *tile_of; /* LEFT_OUT */
    const uint8_t *state;
    size_t tiles;
};

static __device__ double at_table(const question &q, float u, float v) {
    const size_t h = (size_t)u, k = (size_t)v;
    const double s = u - (float)h, t = v - (float)k;
    double sum = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            const double weight = (i ? s : 1 - s) * (j ? t : 1 - t);
            if (weight > 0)
                sum += weight * (double)q.table[(h + i) * q.table_stride + k + j];
        }
    return sum;
}

/* One block for a row and a channel. */
static __global__ void answer(formula f, question q, const uint32_t *rows, double *out) {
    __shared__ double part[SOME_THREADS];
    const size_t a = rows[blockIdx.x], c = blockIdx.y;
    double sum = 0;
    for (size_t b = threadIdx.x; b < f.variables; b += SOME_THREADS) {
        double factor = 1;
        if (q.kind == LEFT_OUT) {
            factor = q.state[q.tile_of[a] * q.tiles + q.tile_of[b]] != EXACT_IN_BOTH;
        } else if (q.kind != ROW_SUM) {
            const float u = q.y[a * q.stride + c], v = q.y[b * q.stride + c];
            if (q.kind == APPLY)
                factor = v;
            else if (q.kind == SIGN)
                factor = (v > u) - (v < u);
            else if (q.kind == TABLE)
                factor = at_table(q, u, v);
            else
                factor = fmin(1.0, fmax(-1.0, (double)(float)((double)v / q.epsilon) -
                                                  (double)(float)((double)u / q.epsilon)));
        }
        if (factor != 0)
            sum += kernel_value(f, a, b) * factor;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (size_t i = 1; i < SOME_THREADS; i++)
            part[0] += part[i];
        out[blockIdx.x * gridDim.y + c] = part[0];
    }
}

/* ---- checks --------------------------------------------------------------------------------- */

static int failures;
static dcrf_error why;

static void need(dcrf_status status) {
    if (status < 0) {
        printf("FAILED: %s\n", why.message);
        exit(1);
    }
}

static void need_cuda(cudaError_t result) {
    need(check(result, "the check", &why));
}

template <typename T> static T *to_device(const std::vector<T> &from) {
    T *memory;
    need_cuda(cudaMalloc(&memory, std::max<size_t>(1, from.size() * sizeof(T))));
    need_cuda(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

struct checked {
    const problem *p;
    struct exact_operator *op;
    const struct dcrf_operator_methods *methods;
    struct formula formula;
    std::vector<uint32_t> rows; /* those that are checked */
    uint32_t *rows_on_device;
    std::vector<double> row_sums, left_out; /* of those rows */
};

static std::vector<double> ask(const checked &k, const question &q, size_t channels) {
    double *out;
    std::vector<double> result(k.rows.size() * channels);
    need_cuda(cudaMalloc(&out, result.size() * sizeof(double)));
    answer<<<dim3((unsigned)k.rows.size(), (unsigned)channels), SOME_THREADS>>>(
        k.formula, q, k.rows_on_device, out);
    need_cuda(
        cudaMemcpy(result.data(), out, result.size() * sizeof(double), cudaMemcpyDeviceToHost));
    cudaFree(out);
    return result;
}

/* |found - truth| <= stated * row sum + (left out), and says how near it came. */
template <typename T>
static void compare(const checked &k, const char *what, const std::vector<T> &found, size_t stride,
                    const std::vector<double> &truth, size_t channels, double stated,
                    bool leaves_out) {
    double worst = 0, relative = 0;
    for (size_t i = 0; i < k.rows.size(); i++)
        for (size_t c = 0; c < channels; c++) {
            const double error =
                fabs((double)found[k.rows[i] * stride + c] - truth[i * channels + c]);
            const double allowed =
                stated * k.row_sums[i] + (leaves_out ? k.left_out[i] : 0) + 1e-30;
            worst = std::max(worst, error / allowed);
            relative = std::max(relative, error / k.row_sums[i]);
            if (!(error <= allowed))
                worst = INFINITY;
        }
    printf("  %-34s error %8.2e of the row sum, %6.4f of what is stated%s\n", what, relative, worst,
           worst <= 1 ? "" : "   FAILED");
    failures += !(worst <= 1);
}

static std::vector<float> new_block(size_t n, size_t stride, double low, double high) {
    std::vector<float> block(n * stride);
    for (float &x : block)
        x = (float)(low + (high - low) * uniform());
    return block;
}

/* Marginals: some 0 and some 1, in whole stretches and alone. */
static std::vector<float> new_marginals(size_t n, size_t stride) {
    std::vector<float> y = new_block(n, stride, 0, 1);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < stride; c++)
            if (c % 3 == 1 || (c % 3 == 2 && a % 5 < 3))
                y[a * stride + c] = (float)((a / 70 + c) % 2);
    return y;
}

static void check_apply(const checked &k, size_t channels) {
    const size_t n = k.p->features.variables, stride = (channels + 7) / 8 * 8;
    const std::vector<float> in = new_block(n, stride, -1, 1);
    std::vector<float> out(n * stride, 0.5f), again(n * stride, 0.5f);
    question q = {};
    float *y = to_device(in);
    q.kind = APPLY;
    q.y = y;
    q.stride = stride;
    const std::vector<double> truth = ask(k, q, channels);
    struct dcrf_application application = {};
    application.in = in.data();
    application.out = out.data();
    application.channels = channels;
    application.stride = stride;
    application.factor = 1;
    const dcrf_operator *op = &k.op->base.base;
    need(k.methods->apply(op, nullptr, &application, &why));
    application.out = again.data();
    need(k.methods->apply(op, nullptr, &application, &why));
    const double stated = (double)k.methods->ordered_roundings(op, 0) * 0x1p-24;
    char what[64];
    snprintf(what, sizeof what, "apply, %zu channels", channels);
    compare(k, what, out, stride, truth, channels, stated, true);
    if (memcmp(out.data(), again.data(), n * stride * sizeof(float)) != 0) {
        printf("  FAILED: apply is not the same twice\n");
        failures++;
    }
    /* With a factor, added to what is there. */
    application.factor = -0.5f;
    application.accumulate = true;
    need(k.methods->apply(op, nullptr, &application, &why));
    std::vector<double> half = truth;
    for (double &x : half)
        x *= 0.5;
    compare(k, "  half of it, added up", again, stride, half, channels, stated, true);
    std::vector<double> in_double(n * channels), out_double(n * channels);
    for (size_t i = 0; i < n * channels; i++)
        in_double[i] = in[i / channels * stride + i % channels];
    need(k.methods->apply_double(op, nullptr, in_double.data(), out_double.data(), channels, &why));
    compare(k, "  in double", out_double, channels, truth, channels, k.methods->double_error(op),
            false);
    cudaFree(y);
}

static void check_line(const checked &k, double epsilon, bool has_negatives, size_t channels) {
    const size_t n = k.p->features.variables, stride = (channels + 7) / 8 * 8;
    std::vector<float> in = new_marginals(n, stride);
    for (size_t i = 0; has_negatives && i < in.size(); i++)
        in[i] -= 0.5f;
    std::vector<float> out(n * stride, 7), wanted_out(n * stride, 7);
    std::vector<uint8_t> wanted(n);
    for (size_t a = 0; a < n; a++)
        wanted[a] = a / 90 % 2 == 0;
    question q = {};
    float *y = to_device(in);
    q.kind = epsilon > 0 ? CLIPPED : SIGN;
    q.y = y;
    q.stride = stride;
    q.epsilon = epsilon;
    const std::vector<double> truth = ask(k, q, channels);
    struct dcrf_line line = {};
    line.epsilon = epsilon;
    line.y = in.data();
    line.out = out.data();
    line.channels = channels;
    line.stride = stride;
    const dcrf_operator *op = &k.op->base.base;
    need(k.methods->line(op, nullptr, &line, &why));
    char what[64];
    snprintf(what, sizeof what, "line %g%s, %zu channels", epsilon,
             has_negatives ? ", both signs" : "", channels);
    compare(k, what, out, stride, truth, channels, (double)k.methods->line_roundings(op) * 0x1p-24,
            true);
    line.out = wanted_out.data();
    line.wanted = wanted.data();
    need(k.methods->line(op, nullptr, &line, &why));
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < channels; c++)
            if (wanted_out[a * stride + c] != (wanted[a] ? out[a * stride + c] : 7)) {
                printf("  FAILED: row %zu, which is%s wanted\n", a, wanted[a] ? "" : " not");
                failures++;
                a = n;
                break;
            }
    line.wanted = nullptr;
    std::vector<double> out_double(n * channels);
    need(k.methods->line_double(op, nullptr, &line, out_double.data(), &why));
    compare(k, "  in double", out_double, channels, truth, channels, k.methods->double_error(op),
            false);
    cudaFree(y);
}

static void check_ordered(const checked &k) {
    const size_t n = k.p->features.variables, bins = 11, stride = 16;
    std::vector<uint8_t> bin(n);
    std::vector<float> fraction(n), table(bins * stride), node(n), out(n);
    for (size_t h = 0; h < bins; h++)
        for (size_t i = 0; i < h; i++) {
            table[h * stride + i] = (float)(2 * uniform() - 1);
            table[i * stride + h] = -table[h * stride + i];
        }
    for (size_t a = 0; a < n; a++) {
        bin[a] = (uint8_t)(uniform() * bins);
        fraction[a] = bin[a] + 1u < bins && a % 3 ? (float)(floor(uniform() * 64) / 64) : 0;
        node[a] = (float)bin[a] + fraction[a];
    }
    question q = {};
    float *y = to_device(node), *values = to_device(table);
    q.kind = TABLE;
    q.y = y;
    q.stride = 1;
    q.table = values;
    q.table_stride = stride;
    struct dcrf_ordered ordered = {bins, table.data(), bin.data(), fraction.data(), out.data()};
    const dcrf_operator *op = &k.op->base.base;
    const double stated = (double)k.methods->ordered_roundings(op, bins) * 0x1p-24;
    need(k.methods->ordered(op, nullptr, &ordered, &why));
    compare(k, "ordered, a table", out, 1, ask(k, q, 1), 1, stated, true);
    for (size_t a = 0; a < n; a++)
        node[a] = bin[a];
    need_cuda(cudaMemcpy(y, node.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    q.kind = SIGN;
    ordered.table = ordered.fraction = nullptr;
    need(k.methods->ordered(op, nullptr, &ordered, &why));
    compare(k, "ordered, the sign", out, 1, ask(k, q, 1), 1, stated, true);
    cudaFree(y);
    cudaFree(values);
}

/* What is stated is at least the truth, and little; the diagonal is that of the formula. */
static void check_left_out(checked &k) {
    const size_t n = k.p->features.variables;
    std::vector<double> stated(n);
    std::vector<uint32_t> order(exact_places(k.op)), tile_of(n);
    const dcrf_operator *op = &k.op->base.base;
    need(k.methods->left_out(op, nullptr, false, stated.data(), &why));
    need_cuda(cudaMemcpy(order.data(), k.op->order, order.size() * sizeof(uint32_t),
                         cudaMemcpyDeviceToHost));
    std::vector<uint8_t> seen(n);
    for (size_t place = 0; place < n; place++) {
        tile_of[order[place]] = (uint32_t)(place / EXACT_TILE);
        failures += seen[order[place]]++ != 0;
    }
    uint32_t *tiles = to_device(tile_of);
    question q = {};
    q.kind = LEFT_OUT;
    q.tile_of = tiles;
    q.state = k.op->state;
    q.tiles = k.op->tiles;
    const std::vector<double> truth = ask(k, q, 1);
    /* 2^-22 of a row sum without the scales; they can change that by their ratio. */
    std::vector<double> scale(n, 1);
    if (k.formula.scale)
        need_cuda(
            cudaMemcpy(scale.data(), k.formula.scale, n * sizeof(double), cudaMemcpyDeviceToHost));
    const double promised = 0x1p-22 * (1 + 1e-4) * *std::max_element(scale.begin(), scale.end()) /
                            *std::min_element(scale.begin(), scale.end());
    double most = 0, most_true = 0;
    bool is_bound = true;
    for (size_t i = 0; i < k.rows.size(); i++) {
        const double mass = stated[k.rows[i]];
        is_bound &= mass >= truth[i] * (1 - 1e-9);
        most = std::max(most, mass / k.row_sums[i]);
        most_true = std::max(most_true, truth[i] / k.row_sums[i]);
        k.left_out.push_back(mass);
    }
    const bool is_fine = is_bound && most <= promised;
    printf("  left out: %.2e of a row sum, %.2e stated, %.2e promised%s\n", most_true, most,
           promised, is_fine ? "" : "   FAILED");
    failures += !is_fine;
    std::vector<float> diagonal(n);
    need(k.methods->diagonal(op, nullptr, diagonal.data(), &why));
    double worst = 0;
    for (size_t a = 0; a < n; a++)
        worst = std::max(worst, fabs((double)diagonal[a] / (scale[a] * scale[a]) - 1));
    printf("  diagonal: error %.2e%s\n", worst, worst <= 0x1p-22 ? "" : "   FAILED");
    failures += !(worst <= 0x1p-22);
    cudaFree(tiles);
}

static struct exact_operator *build(dcrf_backend_device *device, const problem &p) {
    struct device_operator *op = nullptr;
    need(exact_new(&op, device, &p.features, p.normalization, &why));
    return (struct exact_operator *)op;
}

static double shown_fraction(const struct exact_operator *op) {
    return (double)op->near_pairs / ((double)op->tiles * (double)op->tiles);
}

static void check_problem(dcrf_backend_device *device, const problem &p, size_t most_rows) {
    const size_t n = p.features.variables, d = p.features.dimension;
    checked k = {};
    k.p = &p;
    k.op = build(device, p);
    k.methods = k.op->base.base.methods;
    printf("%s: %.1f %% of the pairs of tiles, %zu roundings\n", p.name, 100 * shown_fraction(k.op),
           k.methods->line_roundings(&k.op->base.base));
    std::vector<double> features(n * d);
    for (size_t a = 0; a < n; a++) {
        size_t rest = a;
        for (size_t i = 0; i < d; i++) {
            if (i < p.features.axes) {
                features[a * d + i] =
                    (double)(rest % p.features.grid.size[i]) * p.features.axis_factor[i];
                rest /= p.features.grid.size[i];
            } else {
                features[a * d + i] = p.channel[a * p.features.channels + i - p.features.axes] *
                                      p.features.channel_factor[i - p.features.axes];
            }
        }
    }
    double *features_on_device = to_device(features), *scale = nullptr;
    k.formula = {features_on_device, n, d, nullptr};
    question q = {};
    q.kind = ROW_SUM;
    if (p.normalization == DCRF_NORMALIZE_SYMMETRIC) {
        for (size_t a = 0; a < n; a++)
            k.rows.push_back((uint32_t)a);
        k.rows_on_device = to_device(k.rows);
        std::vector<double> sums = ask(k, q, 1);
        for (double &sum : sums)
            sum = 1 / sqrt(sum);
        scale = to_device(sums);
        k.formula.scale = scale;
        cudaFree(k.rows_on_device);
        k.rows.clear();
    }
    for (size_t i = 0; i < std::min(n, most_rows); i++)
        k.rows.push_back((uint32_t)(n <= most_rows ? i : (i * (n - 1)) / (most_rows - 1)));
    k.rows_on_device = to_device(k.rows);
    k.row_sums = ask(k, q, 1);
    check_left_out(k);
    for (size_t channels : {1, 5, 9, 21, 37})
        if (channels == 21 || n < 10000)
            check_apply(k, channels);
    check_line(k, 0.25, false, 21);
    check_line(k, 1.0 / 256, false, n < 10000 ? 37 : 21);
    check_line(k, 0, false, 21);
    check_line(k, 1.0 / 32, true, n < 10000 ? 6 : 21);
    check_ordered(k);
    cudaFree(k.rows_on_device);
    cudaFree(features_on_device);
    cudaFree(scale);
    k.methods->free(&k.op->base.base);
}

/* ex2.approx of every float from -126 to 0. */
static __global__ void measure_power(unsigned long long *worst) {
    double largest = 0;
    const unsigned last = __float_as_uint(126.0f);
    for (uint64_t bits = blockIdx.x * blockDim.x + threadIdx.x; bits <= last;
         bits += gridDim.x * blockDim.x) {
        const float x = -__uint_as_float((unsigned)bits);
        float value;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
        largest = fmax(largest, fabs((double)value / exp2((double)x) - 1));
    }
    atomicMax(worst, (unsigned long long)__double_as_longlong(largest));
}

static void check_power() {
    unsigned long long *worst, bits;
    double error;
    need_cuda(cudaMalloc(&worst, sizeof *worst));
    need_cuda(cudaMemset(worst, 0, sizeof *worst));
    measure_power<<<1024, 256>>>(worst);
    need_cuda(cudaMemcpy(&bits, worst, sizeof bits, cudaMemcpyDeviceToHost));
    memcpy(&error, &bits, sizeof error);
    printf("ex2.approx: error %.3f of 2^-22%s\n", error * 0x1p22,
           error <= 0x1p-22 ? "" : "   FAILED");
    failures += !(error <= 0x1p-22);
    cudaFree(worst);
}

/* ---- speed ---------------------------------------------------------------------------------- */

template <typename F> static double median_ms(cudaStream_t stream, int runs, F work) {
    std::vector<float> times;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int i = -3; i < runs; i++) {
        cudaEventRecord(begin, stream);
        work();
        cudaEventRecord(end, stream);
        need_cuda(cudaEventSynchronize(end));
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (i >= 0)
            times.push_back(ms);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static void measure(dcrf_backend_device *device, size_t width, size_t height, double sigma,
                    double channel_sigma) {
    problem p;
    make_photograph(p, width, height, sigma, channel_sigma, DCRF_NORMALIZE_SYMMETRIC);
    const size_t n = width * height, channels = 21, stride = 24;
    struct exact_operator *op = nullptr;
    const double set_up = median_ms(device->stream, 3, [&] {
        if (op)
            op->base.base.methods->free(&op->base.base);
        op = build(device, p);
    });
    const std::vector<float> y = new_marginals(n, stride);
    float *in = to_device(y), *out = to_device(y);
    double *precise;
    need_cuda(cudaMalloc(&precise, n * channels * sizeof(double)));
    struct dcrf_application application = {};
    application.in = in;
    application.out = out;
    application.channels = channels;
    application.stride = stride;
    application.factor = 1;
    struct dcrf_line line = {};
    line.epsilon = 1.0 / 64;
    line.y = in;
    line.out = out;
    line.channels = channels;
    line.stride = stride;
    const int runs = n < 100000 ? 21 : 9;
    const double apply_ms = median_ms(device->stream, runs, [&] {
        need(op->base.apply_on_device(&op->base, &application, &why));
    });
    application.channels = 1;
    const double one_ms = median_ms(device->stream, runs, [&] {
        need(op->base.apply_on_device(&op->base, &application, &why));
    });
    const double line_ms =
        median_ms(device->stream, runs, [&] { need(exact_line(op, &line, &why)); });
    line.epsilon = 0;
    const double sign_ms =
        median_ms(device->stream, runs, [&] { need(exact_line(op, &line, &why)); });
    const double double_ms = median_ms(device->stream, 3, [&] {
        need(exact_apply_double(op, nullptr, precise, 1,
                                1u << EXACT_IN_DOUBLE | 1u << EXACT_IN_BOTH, &why));
    });
    const double line_double_ms = median_ms(device->stream, 3, [&] {
        need(exact_line_double(op, 1.0 / 64, in, stride, precise, channels, &why));
    });
    printf("%s, 21 labels: %.1f %% of the pairs of tiles, %u parts, %zu MiB\n"
           "  set-up %.2f ms; apply %.3f ms (one channel %.3f ms); line %.3f ms, sign %.3f ms; in "
           "double: one channel %.2f ms, line %.2f ms\n",
           p.name, 100 * shown_fraction(op), op->parts, op->base.base.bytes >> 20, set_up, apply_ms,
           one_ms, line_ms, sign_ms, double_ms, line_double_ms);
    op->base.base.methods->free(&op->base.base);
    cudaFree(in);
    cudaFree(out);
    cudaFree(precise);
}

int main(int argc, char **argv) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("skipped: there is no CUDA device\n");
        return 77;
    }
    dcrf_backend_device device = {};
    cudaDeviceProp properties;
    need_cuda(cudaGetDeviceProperties(&properties, 0));
    device.multiprocessors = properties.multiProcessorCount;
    device.holders = 1;
    need_cuda(cudaSetDevice(0));
    need_cuda(
        cudaStreamCreate(&device.stream)); /* waits for the checks' own work, and they for it */
    cudaMemPool_t pool;
    unsigned long long all = ~0ull;
    need_cuda(cudaDeviceGetDefaultMemPool(&pool, 0));
    need_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    printf("%s\n", properties.name);

    check_power();
    problem p;
    make_photograph(p, 71, 53, 20, 13, DCRF_NORMALIZE_NONE);
    check_problem(&device, p, 700);
    make_photograph(p, 71, 53, 8, 5, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(&device, p, 700);
    make_photograph(p, 1, 1, 8, 5, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(&device, p, 700);
    make_photograph(p, 13, 5, 3, 3, DCRF_NORMALIZE_NONE);
    check_problem(&device, p, 700);
    make_clouds(p, 3001, 1, 40, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(&device, p, 700);
    make_clouds(p, 2500, 7, 10, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(&device, p, 700);
    make_clouds(p, 2000, 16, 5, DCRF_NORMALIZE_NONE);
    check_problem(&device, p, 700);
    make_space(p, 80, 61, 1, 3, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(&device, p, 700);
    make_space(p, 21, 17, 13, 2.5, DCRF_NORMALIZE_NONE);
    check_problem(&device, p, 700);
    make_photograph(p, 320, 213, 80, 13, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(&device, p, 400);
    printf("%s: %d failures\n", failures ? "FAILED" : "all checks passed", failures);
    fflush(stdout);

    if (argc < 2 || strcmp(argv[1], "check") != 0) {
        measure(&device, 320, 213, 80, 13);
        measure(&device, 320, 213, 50, 5);
        measure(&device, 500, 375, 80, 13);
    }
    return failures ? 1 : 0;
}
