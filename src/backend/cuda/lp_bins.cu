/* The ordered filter of the LP in double, for operators without the clipped line, as in
 * backend/cpu/pair_dual.c. With w_a(h) the hat function of node h at y_a, compute K w(h) for a few
 * nodes at a time, and from it sum_h F(y_a, node h) (K w(h))_a. */
#include "backend/cuda/lp.cuh"

#define WHAT "the LP"
/* Nodes filtered at a time. */
#define CHANNELS 8

struct bins {
    const float *y; /* one label of the packed block */
    uint32_t stride;
    size_t variables;
    const float *table; /* F between the nodes */
    uint32_t count, row;
    uint32_t first, channels; /* nodes of the current pass */
};

/* The lower node of y, and the weight of the upper one, computed in float as everywhere else. */
static __device__ uint32_t find_node(float y, uint32_t bins, double *part) {
    const uint32_t last = bins - 1;
    uint32_t node = min((uint32_t)(y * (float)last), last);
    while (node > 0 && y < (float)node / (float)last)
        node--;
    while (node < last && (float)(node + 1) / (float)last <= y)
        node++;
    const float low = (float)node / (float)last;
    *part =
        node < last && y > low ? (double)((y - low) / ((float)(node + 1) / (float)last - low)) : 0;
    return node;
}

static __global__ void fill_hats(struct bins b, double *hats) {
    const size_t a = this_thread();
    double part;
    if (a >= b.variables)
        return;
    const uint32_t node = find_node(b.y[a * b.stride], b.count, &part);
    for (uint32_t h = 0; h < b.channels; h++)
        hats[a * b.channels + h] = b.first + h == node       ? 1 - part
                                   : b.first + h == node + 1 ? part
                                                             : 0;
}

/* Adds to one column of rows of `labels`. */
static __global__ void add_flows(struct bins b, const double *filtered, uint32_t labels,
                                 double *column) {
    const size_t a = this_thread();
    double part, sum = 0;
    if (a >= b.variables)
        return;
    const uint32_t node = find_node(b.y[a * b.stride], b.count, &part);
    const float *low = b.table + (size_t)node * b.row + b.first;
    const float *high = node + 1 < b.count ? low + b.row : low;
    for (uint32_t h = 0; h < b.channels; h++)
        sum +=
            ((1 - part) * (double)low[h] + part * (double)high[h]) * filtered[a * b.channels + h];
    column[a * labels] = b.first == 0 ? sum : column[a * labels] + sum;
}

dcrf_status lp_filter_by_bins(dcrf_backend_lp *lp, struct device_operator *op, size_t labels,
                              size_t stride, dcrf_error *error) {
    const size_t n = lp->variables;
    cudaStream_t stream = lp->device->stream;
    scratch<double> hats(lp->device);
    TRY(hats.take(2 * CHANNELS * n, WHAT, error));
    double *filtered = hats + CHANNELS * n;
    for (size_t label = 0; label < labels; label++) {
        struct bins b = {lp->packed + label,        (uint32_t)stride,         n, lp->levels.table,
                         (uint32_t)lp->levels.bins, (uint32_t)lp->levels.row, 0, 0};
        for (; b.first < b.count; b.first += b.channels) {
            b.channels = b.count - b.first < CHANNELS ? b.count - b.first : CHANNELS;
            fill_hats<<<blocks_for(n), THREADS, 0, stream>>>(b, hats);
            TRY(op->apply_double_on_device(op, hats, filtered, b.channels, error));
            add_flows<<<blocks_for(n), THREADS, 0, stream>>>(b, filtered, (uint32_t)labels,
                                                             lp->precise + label);
            TRY(check(cudaGetLastError(), WHAT, error));
        }
    }
    return DCRF_OK;
}
