/* Cases for the loops over pairs, for one floating-point type: included by dsp_pair_cases.c with
 * REAL, LOOPS (of a table), LINE (the struct) and NAME (of a function) defined. */

static REAL *NAME(reals)(size_t count, double low, double high, uint64_t seed) {
    float *values = random_block(count, 1, low, high, seed);
    REAL *result = malloc(count * sizeof *result);
    for (size_t i = 0; i < count; i++)
        result[i] = (REAL)values[i];
    free(values);
    return result;
}

/* The difference between the results of an instruction set and of plain C, in units of the type's
 * rounding so that floats can hold it; zeros when plain C itself is run. */
static struct dsp_result NAME(result)(const REAL *value, const REAL *plain, const REAL *size,
                                      size_t count, size_t operations) {
    const double unit = sizeof(REAL) == sizeof(float) ? 1 : 0x1p29;
    struct dsp_result r = {.count = count, .operations = operations};
    r.value = malloc(count * sizeof *r.value);
    r.size = malloc(count * sizeof *r.size);
    for (size_t i = 0; i < count; i++) {
        r.value[i] = (float)(((double)value[i] - (double)plain[i]) * unit);
        r.size[i] = (float)fabs((double)size[i]);
    }
    return r;
}

/* The exponents are at most 13, in base e. */
#define LARGEST_EXPONENT 13

static struct dcrf_metric NAME(metric)(uint64_t number) {
    const size_t d = 1 + number % DCRF_MAX_FEATURES;
    struct dcrf_metric metric = {.features = d};
    for (size_t left = d; left > 0; metric.groups++) {
        metric.size[metric.groups] = number % 3 == 0 || left < 3 ? left : 2 + number / 3 % 2;
        metric.weight[metric.groups] =
            LARGEST_EXPONENT / log(2) / (16 * (double)d) / (1 + (double)metric.groups);
        left -= metric.size[metric.groups];
    }
    return metric;
}

static size_t NAME(value_roundings)(const struct dcrf_metric *metric) {
    return DCRF_PAIR_ROUNDINGS + LARGEST_EXPONENT * (metric->features + metric->groups + 6);
}

static struct dsp_result NAME(run_values)(const struct dcrf_dsp *dsp, uint64_t number,
                                          size_t repeats, double *time_s) {
    enum { COUNT = DCRF_TILE * DCRF_TILE };
    const struct dcrf_metric metric = NAME(metric)(number);
    const size_t d = metric.features;
    REAL *a = NAME(reals)(d * DCRF_TILE, -2, 2, number), *b = NAME(reals)(d * DCRF_TILE, -2, 2, 1);
    REAL *scale = NAME(reals)(2 * DCRF_TILE, 0.5, 1, number + 2);
    REAL *value = NAME(reals)(COUNT, 0, 1, 3), *plain = NAME(reals)(COUNT, 0, 1, 3);
    const REAL *scale_a = number / 5 % 2 ? scale : NULL;
    a[0] = b[0] = 1; /* one pair equal in the first feature */
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->LOOPS.values(&metric, a, b, scale_a, scale + DCRF_TILE, value);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    dcrf_dsp_for(DCRF_CPU_C)->LOOPS.values(&metric, a, b, scale_a, scale + DCRF_TILE, plain);
    struct dsp_result r = NAME(result)(value, plain, plain, COUNT, NAME(value_roundings)(&metric));
    free(a);
    free(b);
    free(scale);
    free(value);
    free(plain);
    return r;
}

static struct dsp_result NAME(run_sums)(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    enum { COUNT = 2 * DCRF_TILE };
    const struct dcrf_metric metric = NAME(metric)(number);
    const size_t d = metric.features;
    REAL *a = NAME(reals)(d * DCRF_TILE, -2, 2, number), *b = NAME(reals)(d * DCRF_TILE, -2, 2, 1);
    REAL *weight = NAME(reals)(2 * DCRF_TILE, 0, 1, number + 2);
    REAL *value = NAME(reals)(COUNT, 0, 1, 3), *plain = NAME(reals)(COUNT, 0, 1, 3);
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->LOOPS.sums(&metric, a, b, weight, weight + DCRF_TILE, value, value + DCRF_TILE);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    dcrf_dsp_for(DCRF_CPU_C)
        ->LOOPS.sums(&metric, a, b, weight, weight + DCRF_TILE, plain, plain + DCRF_TILE);
    struct dsp_result r =
        NAME(result)(value, plain, plain, COUNT, NAME(value_roundings)(&metric) + DCRF_TILE + 1);
    free(a);
    free(b);
    free(weight);
    free(value);
    free(plain);
    return r;
}

static struct dsp_result NAME(run_disagreement)(const struct dcrf_dsp *dsp, uint64_t number,
                                                size_t repeats, double *time_s) {
    const struct dcrf_metric metric = NAME(metric)(number);
    const size_t d = metric.features;
    REAL *a = NAME(reals)(d * DCRF_TILE, -2, 2, number), *b = NAME(reals)(d * DCRF_TILE, -2, 2, 1);
    REAL *scale = NAME(reals)(2 * DCRF_TILE, 0, 1, number + 2);
    REAL *labels = NAME(reals)(2 * DCRF_TILE, 0, 3, number + 4);
    for (size_t i = 0; i < 2 * DCRF_TILE; i++)
        labels[i] = (REAL)(int)labels[i];
    double sum = 0, plain_sum = 0;
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->LOOPS.disagreement(&metric, a, b, scale, scale + DCRF_TILE, labels, labels + DCRF_TILE,
                                &sum);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    for (size_t i = 0; i < repeats; i++)
        dcrf_dsp_for(DCRF_CPU_C)
            ->LOOPS.disagreement(&metric, a, b, scale, scale + DCRF_TILE, labels,
                                 labels + DCRF_TILE, &plain_sum);
    const REAL value = (REAL)(sum - plain_sum), size = (REAL)plain_sum, none = 0;
    struct dsp_result r =
        NAME(result)(&value, &none, &size, 1, NAME(value_roundings)(&metric) + 2 * DCRF_TILE + 4);
    free(a);
    free(b);
    free(scale);
    free(labels);
    return r;
}

static struct dsp_result NAME(run_product)(const struct dcrf_dsp *dsp, uint64_t number,
                                           size_t repeats, double *time_s) {
    const size_t channels = 1 + number % 32, count = (channels + 1) * DCRF_TILE;
    REAL *kernel = NAME(reals)(DCRF_TILE * DCRF_TILE, 0, 1, number);
    REAL *in = NAME(reals)(count, 0, 1, number + 1);
    REAL *value = NAME(reals)(count, 0, 1, 3), *plain = NAME(reals)(count, 0, 1, 3);
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->LOOPS.product(kernel, in, value, channels);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    for (size_t i = 0; i < repeats; i++)
        dcrf_dsp_for(DCRF_CPU_C)->LOOPS.product(kernel, in, plain, channels);
    struct dsp_result r = NAME(result)(value, plain, plain, count, DCRF_TILE + 1);
    free(kernel);
    free(in);
    free(value);
    free(plain);
    return r;
}

static struct dsp_result NAME(run_transpose)(const struct dcrf_dsp *dsp, uint64_t number,
                                             size_t repeats, double *time_s) {
    enum { COUNT = DCRF_TILE * DCRF_TILE };
    REAL *kernel = NAME(reals)(COUNT, 0, 1, number), *value = NAME(reals)(COUNT, 0, 1, 1);
    REAL *plain = NAME(reals)(COUNT, 0, 1, 2), *none = calloc(COUNT, sizeof *none);
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->LOOPS.transpose(kernel, value);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    dcrf_dsp_for(DCRF_CPU_C)->LOOPS.transpose(kernel, plain);
    struct dsp_result r = NAME(result)(value, plain, none, COUNT, 0); /* no rounding */
    free(kernel);
    free(value);
    free(plain);
    free(none);
    return r;
}

static struct dsp_result NAME(run_line)(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    const size_t tiles = 1 + number % DCRF_LINE_TILES, channels = 1 + number / 2 % 23;
    const size_t size = channels * DCRF_TILE, square = DCRF_TILE * DCRF_TILE;
    REAL *kernel = NAME(reals)(tiles * square, 0, 1, number);
    REAL *y = NAME(reals)((tiles + 1) * size, -1, 1, number + 1);
    /* The rows of b are last; one extra plane must not be touched. */
    const size_t count = (tiles + 1) * size + DCRF_TILE;
    REAL *value = NAME(reals)(count, -1, 1, 3), *plain = NAME(reals)(count, -1, 1, 3);
    REAL *most = malloc(count * sizeof *most);
    struct LINE line = {.tiles = tiles, .channels = channels, .y_b = y + tiles * size};
    for (size_t i = 0; i < count; i++) /* |F| <= 1, kernel values below 1 */
        most[i] = 1 + (REAL)(repeats * (i < tiles * size ? 1 : tiles) * DCRF_TILE);
    for (int set = 0; set < 2; set++) {
        REAL *out = set == 0 ? value : plain;
        for (size_t t = 0; t < tiles; t++) {
            line.kernel[t] = kernel + t * square;
            line.y[t] = y + t * size;
            line.out[t] = out + t * size;
        }
        line.out_b = number % 3 == 0 ? NULL : out + tiles * size;
        const double start_s = dcrf_time_s();
        for (size_t i = 0; i < repeats; i++)
            (set == 0 ? dsp : dcrf_dsp_for(DCRF_CPU_C))->LOOPS.line(&line);
        if (set == 0)
            *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    }
    struct dsp_result r = NAME(result)(value, plain, most, count, DCRF_TILE + DCRF_LINE_TILES + 2);
    free(kernel);
    free(y);
    free(value);
    free(plain);
    free(most);
    return r;
}
#undef LARGEST_EXPONENT
