/* The loops over pairs in plain C, for one floating-point type: included by dsp_c.c with REAL, LINE
 * (the struct), POWER (2^x) and NAME (of a function) defined. */

static REAL NAME(value)(const struct dcrf_metric *metric, const REAL *a, const REAL *b) {
    REAL exponent = 0;
    size_t feature = 0;
    for (size_t g = 0; g < metric->groups; g++) {
        REAL squared = 0;
        for (size_t k = 0; k < metric->size[g]; k++, feature++) {
            const REAL difference = a[feature * DCRF_TILE] - b[feature * DCRF_TILE];
            squared += difference * difference;
        }
        exponent += (REAL)metric->weight[g] * squared;
    }
    /* As in the other sets: smaller values are negligible. */
    return POWER(exponent < 126 ? -exponent : -126);
}

static void NAME(values)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                         const REAL *scale_a, const REAL *scale_b, REAL *kernel) {
    for (size_t j = 0; j < DCRF_TILE; j++)
        for (size_t i = 0; i < DCRF_TILE; i++) {
            REAL value = NAME(value)(metric, a + i, b + j);
            if (scale_a)
                value *= scale_a[i] * scale_b[j];
            kernel[j * DCRF_TILE + i] = value;
        }
}

static void NAME(sums)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                       const REAL *weight_a, const REAL *weight_b, REAL *out_a, REAL *out_b) {
    for (size_t i = 0; i < DCRF_TILE; i++)
        out_a[i] = out_b[i] = 0;
    for (size_t j = 0; j < DCRF_TILE; j++)
        for (size_t i = 0; i < DCRF_TILE; i++) {
            const REAL value = NAME(value)(metric, a + i, b + j);
            out_a[i] += value * weight_b[j];
            out_b[j] += value * weight_a[i];
        }
}

static void NAME(disagreement)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                               const REAL *scale_a, const REAL *scale_b, const REAL *labels_a,
                               const REAL *labels_b, double *sum) {
    for (size_t j = 0; j < DCRF_TILE; j++) {
        REAL part = 0;
        for (size_t i = 0; i < DCRF_TILE; i++)
            if (labels_a[i] != labels_b[j])
                part += NAME(value)(metric, a + i, b + j) * scale_a[i];
        *sum += (double)(part * scale_b[j]);
    }
}

static void NAME(product)(const REAL *kernel, const REAL *in, REAL *out, size_t channels) {
    for (size_t c = 0; c < channels; c++) {
        REAL sum[DCRF_TILE] = {0};
        for (size_t b = 0; b < DCRF_TILE; b++)
            for (size_t a = 0; a < DCRF_TILE; a++)
                sum[a] += kernel[b * DCRF_TILE + a] * in[c * DCRF_TILE + b];
        for (size_t a = 0; a < DCRF_TILE; a++)
            out[c * DCRF_TILE + a] += sum[a];
    }
}

static void NAME(transpose)(const REAL *kernel, REAL *transposed) {
    for (size_t b = 0; b < DCRF_TILE; b++)
        for (size_t a = 0; a < DCRF_TILE; a++)
            transposed[a * DCRF_TILE + b] = kernel[b * DCRF_TILE + a];
}

static void NAME(line)(const struct LINE *line) {
    for (size_t c = 0; c < line->channels; c++) {
        REAL sum_b[DCRF_TILE] = {0};
        for (size_t t = 0; t < line->tiles; t++) {
            const REAL *y = line->y[t] + c * DCRF_TILE, *y_b = line->y_b + c * DCRF_TILE;
            REAL *out = line->out[t] + c * DCRF_TILE, sum[DCRF_TILE] = {0};
            REAL part_b[DCRF_TILE] = {0};
            for (size_t b = 0; b < DCRF_TILE; b++)
                for (size_t a = 0; a < DCRF_TILE; a++) {
                    const REAL difference = y_b[b] - y[a];
                    const REAL clipped = difference < -1 ? -1 : difference > 1 ? 1 : difference;
                    const REAL term = line->kernel[t][b * DCRF_TILE + a] * clipped;
                    sum[a] += term;
                    part_b[b] += term;
                }
            for (size_t a = 0; a < DCRF_TILE; a++) {
                out[a] += sum[a];
                sum_b[a] += part_b[a];
            }
        }
        for (size_t b = 0; b < DCRF_TILE && line->out_b; b++)
            line->out_b[c * DCRF_TILE + b] -= sum_b[b];
    }
}
