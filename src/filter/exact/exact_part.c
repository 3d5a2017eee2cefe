/* The exact operator restricted to some of the variables.
 *
 * The kept variables stay in tree order, so those of a tile are still near each other, and keep
 * their scales: the normalization is that of the whole operator. The pairs to omit are chosen again
 * from the row sums of the part, so that their share is small there too. */
#include "core/error.h"
#include "filter/exact/exact.h"

static void take_places(struct dcrf_exact *op, const struct dcrf_exact *whole, const uint8_t *kept,
                        const uint32_t *number) {
    const size_t d = op->metric.features, n = op->base.variables;
    size_t place = 0;
    for (size_t from = 0; from < whole->base.variables; from++) {
        if (!kept[whole->order[from]])
            continue;
        op->order[place] = number[whole->order[from]];
        op->scale[place] = whole->scale[from];
        op->scale_single[place] = whole->scale_single[from];
        for (size_t k = 0; k < d; k++) {
            const size_t at = dcrf_exact_at(op, place, k), before = dcrf_exact_at(whole, from, k);
            op->features[at] = whole->features[before];
            op->features_single[at] = whole->features_single[before];
        }
        place++;
    }
    for (; place < op->tiles * DCRF_TILE; place++) {
        op->order[place] = op->order[n - 1];
        for (size_t k = 0; k < d; k++) {
            const size_t at = dcrf_exact_at(op, place, k), last = dcrf_exact_at(op, n - 1, k);
            op->features[at] = op->features[last];
            op->features_single[at] = op->features_single[last];
        }
    }
}

dcrf_status dcrf_exact_part(const dcrf_operator *base, const uint8_t *kept,
                            dcrf_workspace *workspace, dcrf_operator **out, dcrf_error *error) {
    const struct dcrf_exact *whole = dcrf_exact_of(base);
    const size_t n = base->variables;
    struct dcrf_exact *op = NULL;
    DCRF_SCOPED uint32_t *number = dcrf_allocate(n, sizeof *number);
    size_t count = 0;
    *out = NULL;
    if (!number)
        return dcrf_fail_memory(error, "a part of an exact operator");
    for (size_t a = 0; a < n; a++) {
        number[a] = (uint32_t)count;
        count += kept[a] != 0;
    }
    TRY(dcrf_exact_allocate(&op, count, &whole->metric, error));
    take_places(op, whole, kept, number);
    op->rounded_features = whole->rounded_features;
    op->has_exact_squares = whole->has_exact_squares;
    const dcrf_status status = dcrf_exact_measure_tiles(op, workspace, error);
    if (status < 0) {
        op->base.methods->free(&op->base);
        return status;
    }
    op->is_normalized = whole->is_normalized;
    op->row_sum_error = whole->row_sum_error; /* of the scales, which are copied */
    *out = &op->base;
    return DCRF_OK;
}
