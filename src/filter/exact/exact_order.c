/* An implicit k-d tree: the variables are split near the median of their widest feature into two
 * halves of whole tiles, recursively down to one tile. */
#include "filter/exact/exact.h"

struct points {
    const float *rows;
    size_t dimension;
    uint32_t *order;
};

/* Does x come before y along a feature? Ties are broken by index, so the order is strict. */
static inline bool comes_before(const struct points *p, size_t feature, uint32_t x, uint32_t y) {
    const float at_x = p->rows[x * p->dimension + feature];
    const float at_y = p->rows[y * p->dimension + feature];
    return at_x < at_y || (at_x == at_y && x < y);
}

static inline void swap(uint32_t *x, uint32_t *y) {
    const uint32_t kept = *x;
    *x = *y;
    *y = kept;
}

/* Partition begin .. end - 1 along the feature at place `middle`: Hoare's quickselect with
 * median-of-three pivots. */
static void select_middle(const struct points *p, size_t feature, size_t begin, size_t end,
                          size_t middle) {
    uint32_t *order = p->order;
    while (end - begin > 1) {
        const size_t centre = begin + (end - begin) / 2, last = end - 1;
        if (comes_before(p, feature, order[centre], order[begin]))
            swap(&order[centre], &order[begin]);
        if (comes_before(p, feature, order[last], order[begin]))
            swap(&order[last], &order[begin]);
        if (comes_before(p, feature, order[last], order[centre]))
            swap(&order[last], &order[centre]);
        const uint32_t pivot = order[centre];
        size_t i = begin, j = last;
        for (;;) {
            while (comes_before(p, feature, order[i], pivot))
                i++;
            while (comes_before(p, feature, pivot, order[j]))
                j--;
            if (i >= j)
                break;
            swap(&order[i++], &order[j--]);
        }
        /* Everything before i is at most the pivot; everything from i on is at least the pivot. */
        const size_t cut = i > begin ? i : begin + 1;
        if (middle < cut)
            end = cut;
        else
            begin = cut;
    }
}

static size_t widest_feature(const struct points *p, size_t begin, size_t end) {
    size_t widest = 0;
    float width = -1;
    for (size_t f = 0; f < p->dimension; f++) {
        float low = p->rows[p->order[begin] * p->dimension + f], high = low;
        for (size_t i = begin + 1; i < end; i++) {
            const float value = p->rows[p->order[i] * p->dimension + f];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        if (high - low > width) {
            width = high - low;
            widest = f;
        }
    }
    return widest;
}

/* Returns false if interrupted. */
static bool cut(const struct points *p, size_t begin, size_t end, dcrf_workspace *workspace) {
    const size_t tiles = (end - begin + DCRF_TILE - 1) / DCRF_TILE;
    if (tiles < 2)
        return true;
    if (dcrf_workspace_is_interrupted(workspace))
        return false;
    const size_t middle = begin + (tiles + 1) / 2 * DCRF_TILE;
    select_middle(p, widest_feature(p, begin, end), begin, end, middle);
    return cut(p, begin, middle, workspace) && cut(p, middle, end, workspace);
}

dcrf_status dcrf_exact_order(const float *rows, size_t variables, size_t dimension, uint32_t *order,
                             dcrf_workspace *workspace, dcrf_error *error) {
    const struct points points = {rows, dimension, order};
    for (size_t a = 0; a < variables; a++)
        order[a] = (uint32_t)a;
    return cut(&points, 0, variables, workspace)
               ? DCRF_OK
               : dcrf_fail_interrupted(workspace, "ordering the pixels of an exact kernel", error);
}
