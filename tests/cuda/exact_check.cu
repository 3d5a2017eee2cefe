/* The exact operator of the device against its formula.
 *
 * The formula is a plain kernel in double below, which shares nothing with the operator. Results
 * must be within what the operator itself states: roundings and what is left out. Exits 77 where
 * there is no device. */
#include "exact_scene.cuh"

#include "backend/cuda/exact_tensor.cuh"

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

/* |found - truth| <= (stated * row sum + (left out)) * magnitude of the channel, which is 1 where
 * none is given, and says how near it came. */
template <typename T>
static void compare(const checked &k, const char *what, const std::vector<T> &found, size_t stride,
                    const std::vector<double> &truth, size_t channels, double stated,
                    bool leaves_out, const std::vector<double> &magnitude = {}) {
    double worst = 0, relative = 0;
    for (size_t i = 0; i < k.rows.size(); i++)
        for (size_t c = 0; c < channels; c++) {
            const double error =
                fabs((double)found[k.rows[i] * stride + c] - truth[i * channels + c]);
            const double most = magnitude.empty() ? 1 : magnitude[c];
            const double allowed =
                (stated * k.row_sums[i] + (leaves_out ? k.left_out[i] : 0)) * most +
                0x1p-148; /* floats end at 2^-149 */
            worst = std::max(worst, error / allowed);
            if (most > 0x1p-100)
                relative = std::max(relative, error / k.row_sums[i] / most);
            if (!(error <= allowed))
                worst = INFINITY;
        }
    printf("  %-34s error %8.2e of the row sum, %6.4f of what is stated%s\n", what, relative, worst,
           worst <= 1 ? "" : "   FAILED");
    failures += !(worst <= 1);
}

/* Numbers that are hard to multiply: sums that cancel, very different magnitudes in a channel and
 * between channels, numbers below the normal ones, none at all, and those between two 11-bit ones.
 */
static std::vector<float> new_hard_block(size_t n, size_t stride) {
    std::vector<float> block(n * stride);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < stride; c++) {
            const double sign = a % 2 ? -1 : 1, x = uniform();
            const double kinds[] = {sign,
                                    sign * (1 + 1e-6 * x),
                                    sign * exp2(-40 * x),
                                    0x1p-140 * x,
                                    0,
                                    -x,
                                    a % 997 ? 1e-7 * x : 1,
                                    1e30 * (x - 0.5),
                                    sign * 0x1p-126 * x,
                                    1 + 0x1p-11 - 0x1p-23,
                                    sign * exp2(-20 * x) * (1 + 0x1p-11 - 0x1p-22)};
            block[a * stride + c] = (float)kinds[c % 11];
        }
    return block;
}

static void check_apply(const checked &k, size_t channels, bool is_hard) {
    const size_t n = k.p->features.variables, stride = (channels + 7) / 8 * 8;
    const std::vector<float> in = is_hard ? new_hard_block(n, stride) : new_block(n, stride, -1, 1);
    std::vector<float> out(n * stride, 0), again(n * stride, 0);
    std::vector<double> magnitude(channels, 0);
    for (size_t i = 0; i < n * stride; i++)
        if (i % stride < channels)
            magnitude[i % stride] = std::max(magnitude[i % stride], fabs((double)in[i]));
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
    const double stated = (double)exact_apply_roundings(k.op) * 0x1p-24;
    char what[64];
    snprintf(what, sizeof what, "apply, %zu channels%s", channels, is_hard ? ", hard" : "");
    compare(k, what, out, stride, truth, channels, stated, true, magnitude);
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
    compare(k, "  half of it, added up", again, stride, half, channels, stated, true, magnitude);
    std::vector<double> in_double(n * channels), out_double(n * channels);
    for (size_t i = 0; i < n * channels; i++)
        in_double[i] = in[i / channels * stride + i % channels];
    need(k.methods->apply_double(op, nullptr, in_double.data(), out_double.data(), channels, &why));
    compare(k, "  in double", out_double, channels, truth, channels, k.methods->double_error(op),
            false, magnitude);
    cudaFree(y);
}

/* The line with distances by tensor cores is, byte for byte, the one with distances by
 * differences. */
static void check_digits(const checked &k) {
    const size_t n = k.p->features.variables, stride = 24;
    const std::vector<float> in = new_marginals(n, stride);
    std::vector<float> out[2];
    struct dcrf_line line = {};
    line.epsilon = 1.0 / 8;
    line.y = in.data();
    line.channels = line.stride = stride;
    const int groups = k.op->digit_groups;
    for (std::vector<float> &o : out) {
        o.resize(n * stride);
        line.out = o.data();
        need(exact_fill_line_sums(k.op, &why));
        need(k.methods->line(&k.op->base.base, nullptr, &line, &why));
        k.op->digit_groups = 0;
    }
    k.op->digit_groups = groups;
    need(exact_fill_line_sums(k.op, &why));
    const bool is_same = memcmp(out[0].data(), out[1].data(), n * stride * sizeof(float)) == 0;
    printf("  %d groups of digits%s\n", groups, is_same ? "" : ": not as by differences   FAILED");
    failures += !is_same;
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
    const double stated = (double)k.methods->ordered_roundings(op, bins, false) * 0x1p-24;
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

static void check_problem(dcrf_backend_device *device, const problem &p, size_t most_rows) {
    const size_t n = p.features.variables, d = p.features.dimension;
    checked k = {};
    k.p = &p;
    k.op = build(device, p);
    k.methods = k.op->base.base.methods;
    printf("%s: %.1f %% of the pairs of tiles; %zu roundings of a product, %zu of a line\n", p.name,
           100 * shown_fraction(k.op), exact_apply_roundings(k.op),
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
            check_apply(k, channels, false);
    check_apply(k, 22, true);
    check_digits(k);
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

/* One product of 16-bit floats for each warp: C + A B against the same in double. */
#define TENSOR_TRIALS 4096
static __global__ void measure_tensor(const __half *a, const __half *b, const float *c,
                                      unsigned long long *worst) {
    const unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4;
    a += blockIdx.x * 256, b += blockIdx.x * 128, c += blockIdx.x * 128;
    uint32_t a_words[4], b_words[2];
    float sum[4];
    for (unsigned i = 0; i < 4; i++)
        a_words[i] = *(const uint32_t *)(a + (g + i % 2 * 8) * 16 + i / 2 * 8 + 2 * t);
    for (unsigned i = 0; i < 2; i++)
        b_words[i] =
            word_of(__halves2half2(b[(8 * i + 2 * t) * 8 + g], b[(8 * i + 2 * t + 1) * 8 + g]));
    for (unsigned i = 0; i < 4; i++)
        sum[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
    multiply_16(sum, a_words, b_words[0], b_words[1]);
    double most = 0;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
        double truth = c[row * 8 + column], magnitude = fabs(truth);
        for (unsigned k = 0; k < 16; k++) {
            const double product =
                (double)__half2float(a[row * 16 + k]) * (double)__half2float(b[k * 8 + column]);
            truth += product;
            magnitude += fabs(product);
        }
        most = fmax(most, magnitude > 0 ? fabs((double)sum[i] - truth) / magnitude : 0);
    }
    atomicMax(worst, (unsigned long long)__double_as_longlong(most));
}

/* Products just below what 24, 25 and 26 bits of the sum so far can hold, and random ones of
 * magnitudes that are near and far apart. */
static void check_tensor() {
    const char *const names[] = {"2^-23", "2^-24", "2^-25", "near", "far"};
    for (int kind = 0; kind < 5; kind++) {
        std::vector<__half> a(TENSOR_TRIALS * 256), b(TENSOR_TRIALS * 128);
        std::vector<float> c(TENSOR_TRIALS * 128);
        const double low = kind == 3 ? -2 : -14;
        for (__half &x : a)
            x = __float2half((float)(kind < 3
                                         ? 1 - 0x1p-11
                                         : (uniform() < 0.5 ? -1 : 1) * exp2(low * uniform())));
        for (__half &x : b)
            x = __float2half((float)(kind < 3
                                         ? exp2(-9 - kind)
                                         : (uniform() < 0.5 ? -1 : 1) * exp2(low * uniform())));
        for (float &x : c)
            x = kind < 3 ? 0x1p14f : (float)(uniform() * exp2(2 * low * uniform() + 2));
        __half *a_on_device = to_device(a), *b_on_device = to_device(b);
        float *c_on_device = to_device(c);
        unsigned long long *worst, bits;
        double error;
        need_cuda(cudaMalloc(&worst, sizeof *worst));
        need_cuda(cudaMemset(worst, 0, sizeof *worst));
        measure_tensor<<<TENSOR_TRIALS, 32>>>(a_on_device, b_on_device, c_on_device, worst);
        need_cuda(cudaMemcpy(&bits, worst, sizeof bits, cudaMemcpyDeviceToHost));
        memcpy(&error, &bits, sizeof error);
        const bool is_fine = error > 0 && error <= 40 * 0x1p-24;
        printf("tensor cores, products %s: error %.2f of 2^-24%s\n", names[kind], error * 0x1p24,
               is_fine || (kind < 3 && error == 0) ? "" : "   FAILED");
        failures += !(is_fine || (kind < 3 && error == 0));
        for (void *memory :
             {(void *)a_on_device, (void *)b_on_device, (void *)c_on_device, (void *)worst})
            cudaFree(memory);
    }
}

int main() {
    dcrf_backend_device *device = open_device();
    if (!device)
        return 77;
    check_power();
    check_tensor();
    problem p;
    make_photograph(p, 71, 53, 20, 13, DCRF_NORMALIZE_NONE);
    check_problem(device, p, 700);
    make_photograph(p, 71, 53, 8, 5, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 700);
    make_photograph(p, 1, 1, 8, 5, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 700);
    make_photograph(p, 13, 5, 3, 3, DCRF_NORMALIZE_NONE);
    check_problem(device, p, 700);
    make_clouds(p, 3001, 1, 40, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 700);
    make_clouds(p, 2500, 7, 10, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 700);
    make_clouds(p, 2000, 16, 5, DCRF_NORMALIZE_NONE);
    check_problem(device, p, 700);
    make_whole(p, 3000, 3, 1180, 300, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 700);
    make_space(p, 2047, 2, 1, 400, DCRF_NORMALIZE_NONE);
    check_problem(device, p, 700);
    make_space(p, 80, 61, 1, 3, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 700);
    make_space(p, 21, 17, 13, 2.5, DCRF_NORMALIZE_NONE);
    check_problem(device, p, 700);
    make_photograph(p, 320, 213, 80, 13, DCRF_NORMALIZE_SYMMETRIC);
    check_problem(device, p, 400);
    printf("%s: %d failures\n", failures ? "FAILED" : "all checks passed", failures);
    return failures ? 1 : 0;
}
