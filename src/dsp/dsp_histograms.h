/* Histograms of the ordered filter for one instruction set: a part of dsp_vector.h. */

/* Rows of histograms are multiples of eight floats; the vectors here are at most that long. */
#if DSP_LANES == 4
#define HISTOGRAM_LANES 4
#else
#define HISTOGRAM_LANES 8
#endif
typedef float bins_vector __attribute__((vector_size(HISTOGRAM_LANES * 4)));
typedef int32_t bins_integers __attribute__((vector_size(HISTOGRAM_LANES * 4)));

INLINE bins_vector load_bins(const float *at) {
    bins_vector value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* By columns of the antisymmetric table, which are its negated rows: no sum across a vector. */
#define WEIGH_VECTORS 4
INLINE void weigh_block(const struct dcrf_histograms *h, const float *row, float *seen, size_t at,
                        size_t vectors) {
    bins_vector sum[WEIGH_VECTORS];
    UNROLL
    for (size_t i = 0; i < vectors; i++)
        sum[i] = (bins_vector){0};
    for (size_t k = 0; k < h->bins; k++) {
        const float *table = h->table + k * h->row + at;
        UNROLL
        for (size_t i = 0; i < vectors; i++)
            sum[i] = FNMA(row[k], load_bins(table + i * HISTOGRAM_LANES), sum[i]);
    }
    UNROLL
    for (size_t i = 0; i < vectors; i++)
        memcpy(seen + at + i * HISTOGRAM_LANES, &sum[i], sizeof sum[i]);
}

static void weigh(const struct dcrf_histograms *h, size_t begin, size_t end) {
    float seen[DCRF_MAX_BINS];
    for (size_t r = begin; r < end; r++) {
        float *row = h->values + r * h->row;
        size_t at = 0;
        for (; at + WEIGH_VECTORS * HISTOGRAM_LANES <= h->row;
             at += WEIGH_VECTORS * HISTOGRAM_LANES)
            weigh_block(h, row, seen, at, WEIGH_VECTORS);
        for (; at < h->row; at += HISTOGRAM_LANES)
            weigh_block(h, row, seen, at, 1);
        memcpy(row, seen, h->bins * sizeof *row);
    }
}

INLINE float sum_of(bins_vector value) {
    float sum = 0;
    UNROLL
    for (size_t i = 0; i < HISTOGRAM_LANES; i++)
        sum += value[i];
    return sum;
}

static void read(const struct dcrf_view_of_bins *view, const uint8_t *bin, const float *fraction,
                 float *out, size_t count) {
    bins_integers first;
    for (int i = 0; i < HISTOGRAM_LANES; i++)
        first[i] = (int32_t)view->first + i;
    for (size_t a = 0; a < count; a++) {
        const float *row = view->values + a * view->width;
        bins_vector sum = {0};
        if (view->table) {
            /* If the fraction is zero, the next node may not exist. */
            const float *low = view->table + bin[a] * view->table_row + view->first;
            const float *high = fraction[a] > 0 ? low + view->table_row : low;
            for (size_t i = 0; i < view->width; i += HISTOGRAM_LANES) {
                const bins_vector at_low = load_bins(low + i);
                const bins_vector value = FMA(fraction[a], load_bins(high + i) - at_low, at_low);
                sum = FMA(value, load_bins(row + i), sum);
            }
        } else {
            bins_integers index = first - bin[a];
            for (size_t i = 0; i < view->width; i += HISTOGRAM_LANES, index += HISTOGRAM_LANES) {
                const bins_integers value = (bins_integers)load_bins(row + i);
                sum += (bins_vector)(value & (index > 0)) - (bins_vector)(value & (index < 0));
            }
        }
        out[a] += sum_of(sum);
    }
}
