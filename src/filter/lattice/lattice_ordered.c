/* The ordered filter of the lattice: histograms of bins are accumulated at the vertices, blurred,
 * and read at each variable's own bin.
 *
 * Most variables are in the lowest bin, since most labels have a marginal of zero at most of them.
 * So all count as in that bin, as far as histograms go: the sums of all weights are found once for
 * the channels of a call, and a channel only moves the others from there to their own bins.
 *
 * Histograms are summed in double: a vertex may have thousands of variables, and float rounding
 * errors would loosen the lower bound. The doubles share memory with two of the blur's buffers. */
#include "core/error.h"
#include "filter/lattice/lattice.h"

/* Rows per task, about. */
#define USUAL_ROWS 128

static const struct dcrf_slot totals_slot = {"sums of the weights at vertices"};

struct histograms {
    const struct dcrf_lattice *lattice;
    const struct dcrf_ordered *ordered;
    struct dcrf_lattice_sums sums;   /* the bins first .. first + width - 1 of every vertex */
    struct dcrf_lattice_sums totals; /* of the weights at every vertex */
    float *splat;                    /* the same for every vertex, rounded */
    float *blurred;                  /* the same after the blur */
    size_t first, width;
    float *all; /* all bins of every vertex, `row` floats each; later multiplied by F */
    size_t row;
    float *lowest; /* the lowest bin of every vertex, multiplied by F; joint copies behind them */
    float *taken;  /* separate copies of the sectors */
};

static void for_vertices(struct histograms *h, dcrf_pool *pool, dcrf_task task) {
    const size_t count = h->lattice->vertices;
    dcrf_parallel_for(pool, count, dcrf_even_grain(count, USUAL_ROWS), task, h);
}

static inline float fraction_of(const struct histograms *h, size_t variable) {
    return h->ordered->table ? h->ordered->fraction[variable] : 0;
}

static inline bool is_lowest(const struct histograms *h, size_t variable) {
    return h->ordered->bin[variable] == 0 && !(fraction_of(h, variable) > 0);
}

/* ---- the sums of all weights ---------------------------------------------------------------- */

static void splat_weights(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    const size_t corners = h->lattice->corners;
    const struct dcrf_lattice_runs *runs = &h->lattice->runs;
    for (size_t sector = begin; sector < end; sector++) {
        double *rows = dcrf_lattice_sums_begin(&h->totals, sector);
        for (size_t k = dcrf_lattice_sector_begin(h->lattice, sector) * corners;
             k < dcrf_lattice_sector_begin(h->lattice, sector + 1) * corners; k++)
            rows[runs->vertex[k]] += (double)runs->weight[k];
        dcrf_lattice_sums_end(&h->totals, sector);
    }
}

/* They stay in the workspace for the next channels of the call. */
static dcrf_status sum_weights(struct histograms *h, dcrf_workspace *workspace, dcrf_error *error) {
    const struct dcrf_lattice *lattice = h->lattice;
    const size_t rows = dcrf_lattice_rows(lattice);
    double *memory = dcrf_workspace_slot(workspace, &totals_slot,
                                         rows + dcrf_lattice_copies(lattice), sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "a lattice filter");
    h->totals = (struct dcrf_lattice_sums){.lattice = lattice,
                                           .width = 1,
                                           .is_double = true,
                                           .is_alone = dcrf_workspace_threads(workspace) == 1,
                                           .vertices = memory,
                                           .copies = memory + rows};
    if (h->ordered->is_next)
        return DCRF_OK;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    dcrf_lattice_sums_start(&h->totals, 1, pool);
    if (!dcrf_parallel_while(workspace, lattice->runs.sectors.count, 1, splat_weights, h))
        return dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
    dcrf_lattice_sums_join(&h->totals, 1, pool);
    return DCRF_OK;
}

/* ---- histograms ----------------------------------------------------------------------------- */

/* Move a variable at its corners: its fraction to the upper of two bins, the rest to the lower.
 * Bins below the block wrap around to large values. */
static inline void move_variable(const struct histograms *h, size_t variable, double *rows) {
    const struct dcrf_lattice_runs *runs = &h->lattice->runs;
    const size_t low = h->ordered->bin[variable] - h->first, high = low + 1;
    const float fraction = fraction_of(h, variable);
    const size_t corners = h->lattice->corners;
    for (size_t k = variable * corners; k < (variable + 1) * corners; k++) {
        double *row = rows + runs->vertex[k] * h->width;
        const float weight = runs->weight[k], upper = fraction * weight;
        if (h->first == 0)
            row[0] -= (double)weight;
        if (low < h->width)
            row[low] += (double)(weight - upper);
        if (fraction > 0 && high < h->width)
            row[high] += (double)upper;
    }
}

static void splat_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    for (size_t sector = begin; sector < end; sector++) {
        double *rows = dcrf_lattice_sums_begin(&h->sums, sector);
        for (size_t a = dcrf_lattice_sector_begin(h->lattice, sector);
             a < dcrf_lattice_sector_begin(h->lattice, sector + 1); a++)
            if (!is_lowest(h, a))
                move_variable(h, a, rows);
        dcrf_lattice_sums_end(&h->sums, sector);
    }
}

static void round_sums(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    const double *totals = h->totals.vertices;
    for (size_t v = begin; v < end; v++) {
        const double *row = (const double *)h->sums.vertices + v * h->width;
        float *splat = h->splat + v * h->width;
        for (size_t i = 0; i < h->width; i++)
            splat[i] = (float)row[i];
        if (h->first == 0)
            splat[0] = (float)(totals[v] + row[0]);
    }
}

/* Sum the bins of a block at every vertex. */
static bool sum_histograms(struct histograms *h, dcrf_workspace *workspace) {
    const struct dcrf_lattice *lattice = h->lattice;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    dcrf_lattice_sums_start(&h->sums, 1, pool);
    if (!dcrf_parallel_while(workspace, lattice->runs.sectors.count, 1, splat_histograms, h))
        return false;
    dcrf_lattice_sums_join(&h->sums, 1, pool);
    for_vertices(h, pool, round_sums);
    return true;
}

static void collect_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    for (size_t v = begin; v < end; v++)
        memcpy(h->all + v * h->row + h->first, h->blurred + v * h->width,
               h->width * sizeof *h->all);
}

/* Rows whose partial sums are computed together: each sum waits for the one before it. */
#define ROWS 8

/* sum_k sign(k - h) histogram_k = (all) - (below h) - (up to h), in double. */
static void weigh_by_sign(float *rows, size_t count, size_t row, size_t bins) {
    double all[ROWS] = {0}, below[ROWS] = {0};
    for (size_t i = 0; i < bins; i++)
        for (size_t r = 0; r < count; r++)
            all[r] += (double)rows[r * row + i];
    for (size_t i = 0; i < bins; i++)
        for (size_t r = 0; r < count; r++) {
            float *at = rows + r * row + i;
            const double up_to = below[r] + (double)*at;
            *at = (float)(all[r] - below[r] - up_to);
            below[r] = up_to;
        }
}

/* Replace the histogram of a vertex by the output for a variable in each of the bins: sum_k F(h, k)
 * histogram_k. */
static void weigh_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    const struct dcrf_ordered *ordered = h->ordered;
    const struct dcrf_histograms histograms = {ordered->bins, h->row, ordered->table, h->all};
    if (ordered->table && !ordered->is_sign)
        dcrf_dsp()->weigh(&histograms, begin, end);
    else
        for (size_t v = begin; v < end; v += ROWS)
            weigh_by_sign(h->all + v * h->row, end - v < ROWS ? end - v : ROWS, h->row,
                          ordered->bins);
    for (size_t v = begin; v < end; v++)
        h->lowest[v] = h->all[v * h->row];
}

/* ---- slicing -------------------------------------------------------------------------------- */

/* Of a variable in the lowest bin: most of them, and fewer cache lines than whole rows. */
static float slice_lowest(const struct dcrf_lattice *lattice, const float *lowest, size_t a) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    float sum = 0;
    for (size_t e = a * lattice->corners; e < (a + 1) * lattice->corners; e++)
        sum += runs->weight[e] * lowest[runs->vertex[e]];
    return 0.5f * sum;
}

static float slice_variable(const struct histograms *h, struct dcrf_lattice_names names, size_t a) {
    const struct dcrf_lattice *lattice = h->lattice;
    const size_t bin = h->ordered->bin[a];
    const float fraction = fraction_of(h, a);
    const size_t next = fraction > 0 ? bin + 1 : bin;
    float low = 0, high = 0;
    for (size_t e = a * lattice->corners; e < (a + 1) * lattice->corners; e++) {
        const uint32_t vertex = dcrf_lattice_vertex(names, lattice->runs.vertex[e]);
        const float *row = h->all + vertex * h->row;
        low += lattice->runs.weight[e] * row[bin];
        high += lattice->runs.weight[e] * row[next];
    }
    return 0.5f * (low + fraction * (high - low));
}

static void slice_sector(const struct histograms *h, size_t sector) {
    const struct dcrf_lattice *lattice = h->lattice;
    const size_t first = dcrf_lattice_sector_begin(lattice, sector);
    const struct dcrf_lattice_names names = dcrf_lattice_names_at(lattice, first);
    float *taken = h->taken + lattice->runs.sectors.sector[sector].first_row;
    const float *lowest = dcrf_lattice_take(lattice, sector, 1, h->lowest, taken);
    for (size_t a = first; a < dcrf_lattice_sector_begin(lattice, sector + 1); a++)
        h->ordered->out[a] =
            is_lowest(h, a) ? slice_lowest(lattice, lowest, a) : slice_variable(h, names, a);
}

static void slice_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t sector = begin; sector < end; sector++)
        slice_sector(context, sector);
}

/* ---- the filter ----------------------------------------------------------------------------- */

/* For the blur: one more if both orders are blurred together. */
static size_t count_buffers(const struct histograms *h, dcrf_workspace *workspace) {
    const bool is_whole =
        dcrf_lattice_is_whole(h->lattice, h->width, dcrf_workspace_threads(workspace));
    return DCRF_LATTICE_BUFFERS + is_whole;
}

/* The bins of a block, blurred. */
static dcrf_status filter_block(struct histograms *h, dcrf_workspace *workspace,
                                dcrf_error *error) {
    const struct dcrf_lattice *lattice = h->lattice;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t rows = dcrf_lattice_rows(lattice), copies = dcrf_lattice_copies(lattice);
    const size_t floats = rows * h->width, buffers = count_buffers(h, workspace);
    double *memory = dcrf_workspace_slot(workspace, &dcrf_operator_slot,
                                         2 * copies + buffers * rows, h->width * sizeof(float));
    if (!memory)
        return dcrf_fail_memory(error, "a lattice filter");
    float *one = (float *)(memory + copies * h->width), *other = one + floats;
    h->splat = other + floats;
    h->sums = (struct dcrf_lattice_sums){.lattice = lattice,
                                         .width = h->width,
                                         .is_double = true,
                                         .is_alone = dcrf_workspace_threads(workspace) == 1,
                                         .vertices = one,
                                         .copies = memory};
    if (!sum_histograms(h, workspace))
        return dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
    float *const buffer[DCRF_LATTICE_BUFFERS] = {h->splat, one, other};
    h->blurred = buffers > DCRF_LATTICE_BUFFERS
                     ? dcrf_lattice_blur_both(lattice, pool, h->width, buffer, h->splat + floats)
                     : dcrf_lattice_blur_all(lattice, pool, h->width, DCRF_SYMMETRIC, buffer);
    h->lowest = h->blurred == one ? other : one;
    h->taken = (float *)memory;
    return DCRF_OK;
}

dcrf_status dcrf_lattice_ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                                 const struct dcrf_ordered *channel, dcrf_error *error) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    struct histograms h = {
        .lattice = lattice, .ordered = channel, .row = dcrf_bin_row(channel->bins)};
    TRY(sum_weights(&h, workspace, error));
    /* If all bins fit in one block, they stay in the output buffer of the blur. */
    const bool is_one_block = h.row <= DCRF_DSP_WIDTH;
    if (!is_one_block && !(h.all = dcrf_workspace_slot(workspace, &dcrf_histogram_slot,
                                                       lattice->vertices, h.row * sizeof *h.all)))
        return dcrf_fail_memory(error, "the ordered filter");
    for (h.first = 0; h.first < h.row; h.first += h.width) {
        const size_t left = h.row - h.first;
        h.width = left < DCRF_DSP_WIDTH ? left : DCRF_DSP_WIDTH;
        TRY(filter_block(&h, workspace, error));
        if (is_one_block)
            h.all = h.blurred;
        else
            for_vertices(&h, pool, collect_histograms);
    }
    for_vertices(&h, pool, weigh_histograms);
    return dcrf_parallel_while(workspace, lattice->runs.sectors.count, 1, slice_histograms, &h)
               ? DCRF_OK
               : dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
}

/* Two for the fraction, one to float; two along each axis, and two more to combine both orders;
 * products and sums over the bins, or for the sign one to float and those in double; products and
 * sums over the corners; five to interpolate between two nodes.
 *
 * One more for the lowest bin, whose error is relative to the sum t of all weights at the vertex,
 * not to what is left of it. That suffices: an output's error is counted relative to (K 1)_a, which
 * is the same blur and slice of t. The lowest bin is the sum in double of at most n weights that
 * add up to t, n that are taken away, and n that come back, each at most what was taken away. So
 * each of fewer than 3 n + 1 additions is rounded to within 2^-53 of 2 t, which makes 6 n 2^-53 t:
 * less than 2^-24 t up to n = 2^26 variables, and no more than one rounding for each further 2^26.
 */
size_t dcrf_lattice_ordered_roundings(const dcrf_operator *base, size_t bins, bool is_sign) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    const size_t corners = lattice->corners, of_lowest = 1 + (base->variables >> 26);
    return of_lowest + 3 + 2 * corners + 2 + (is_sign ? 2 : bins + 1) + corners + 1 + 5;
}
