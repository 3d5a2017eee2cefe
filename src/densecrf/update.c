/* The update Q <- softmax(-unary - message).
 *
 * An update is one pass over the bands of variables (order.c): the messages of a band are sliced
 * from the lattices, the softmax follows, and the new q is splat for the next update, all while the
 * rows of the band are in the cache. Between two passes the lattices are blurred (spread.c). So q
 * need not be in memory at all, and is stored only if something else reads it: while labels are
 * left out (so that the update can be undone), and for large lattices, which filter all variables
 * in one sweep (rings.c) before the pass. A single large lattice can do so in place; with two, or
 * with one whose compatibility is not a scalar, the message is in the spare rows, and the new q is
 * written over it. The last pass writes the caller's planes; the first has no message.
 *
 * A thread works on a sector of bands at a time (lattice_sectors.c). */
#include "core/error.h"
#include "core/timer.h"
#include "densecrf/densecrf.h"

#include <math.h>
#include <string.h>

static const struct dcrf_slot softmax_slot = {"a softmax of its threads"};
static const struct dcrf_slot band_slot = {"what its threads work on"};

struct update {
    struct dcrf_beliefs *beliefs;
    struct dcrf_spread spread;
    struct dcrf_rings rings;
    const float *from; /* planes to be splat */
    bool is_start;     /* q is softmax(-unary), and nothing holds it yet */
    bool is_spread;    /* the lattices hold q */
    bool is_stored;    /* beliefs->q holds q */
    bool has_total;    /* the sums of messages over all labels are known */
    float *rows;       /* per thread, those of a band */
    float *parts;      /* per thread: input to a compatibility that is not a scalar, or planes */
    float *work;       /* per thread: for the softmax */
    size_t work_floats;
    /* The current pass: */
    float *message; /* rows of the message and of the result; NULL: the thread's band */
    float *q;
    float *planes;    /* the caller's, for the result instead of rows; NULL: none */
    bool has_message; /* some terms have written their part to the rows */
    bool splats;
    bool sums_up; /* the total is written or read */
};

static bool has_short_rows(const dcrf_densecrf *crf) {
    bool has_them = true;
    for (size_t m = 0; m < crf->term_count; m++)
        has_them = has_them && dcrf_densecrf_has_short_rows(&crf->terms[m]);
    return has_them;
}

/* The floats of a row with `labels` labels, as filtered by the lattices. */
static size_t floats_for(const struct update *update, size_t labels) {
    if (labels <= 2 && has_short_rows(update->beliefs->crf))
        return 2;
    return (labels + 3) / 4 * 4;
}

/* Probabilities sum to one, so a kernel's output summed over all labels is the same in every
 * update: once it is known, the last label need not be filtered. This is done where it makes rows
 * shorter, for large lattices and for few labels; otherwise nothing is gained. */
static bool can_sum_up(const struct update *update) {
    const struct dcrf_beliefs *beliefs = update->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    return dcrf_rings_count(crf, true, true) + dcrf_rings_count(crf, false, true) ==
               crf->term_count &&
           crf->term_count > 0 && !dcrf_beliefs_has_rest(beliefs) && beliefs->active > 2 &&
           (dcrf_rings_any(crf) || has_short_rows(crf)) &&
           floats_for(update, beliefs->active - 1) < floats_for(update, beliefs->active);
}

/* The floats of a row that lattices filter, with the total known or not. */
static size_t filtered_floats(const struct update *update, bool has_total) {
    return floats_for(update, update->beliefs->active - (has_total ? 1 : 0));
}

static dcrf_status update_init(struct update *update, struct dcrf_beliefs *beliefs,
                               dcrf_workspace *workspace, dcrf_error *error) {
    const dcrf_densecrf *crf = beliefs->crf;
    const size_t stride = dcrf_padded(crf->labels), threads = dcrf_workspace_threads(workspace);
    const size_t band = crf->band * stride * threads;
    *update = (struct update){.beliefs = beliefs, .is_stored = true};
    update->rows = dcrf_workspace_slot(workspace, &band_slot, 2 * band, sizeof(float));
    update->work_floats = (DCRF_SOFTMAX_WORK(crf->labels) + 15) / 16 * 16;
    update->work =
        dcrf_workspace_slot(workspace, &softmax_slot, threads * update->work_floats, sizeof(float));
    if (!update->rows || !update->work || !dcrf_rings_init(&update->rings, beliefs, workspace) ||
        !dcrf_spread_init(&update->spread, crf, workspace, stride))
        return dcrf_fail_memory(error, "mean field");
    update->parts = update->rows + band;
    return DCRF_OK;
}

/* ---- the pass over the bands ---------------------------------------------------------------- */

/* Write the message of the lattices without a ring to the rows of a band. */
static void slice_band(const struct update *update, struct dcrf_spread_place at, size_t band,
                       float *message, float *parts, size_t rows) {
    const struct dcrf_beliefs *beliefs = update->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    bool is_clear = update->has_message;
    for (size_t pass = 0; pass < 2; pass++) { /* scalars first: the first need not add */
        for (size_t m = 0; m < crf->term_count; m++) {
            const struct dcrf_densecrf_term *term = &crf->terms[m];
            if (dcrf_densecrf_has_ring(term) || dcrf_densecrf_is_scalar(term) != (pass == 0))
                continue;
            if (dcrf_densecrf_is_scalar(term)) {
                dcrf_spread_slice(&update->spread, m, at, band, term->gain * term->mu[0], is_clear,
                                  message);
                is_clear = true;
                continue;
            }
            dcrf_spread_slice(&update->spread, m, at, band, term->gain, false, parts);
            dcrf_densecrf_add_message(beliefs, term, parts, beliefs->stride, 0, beliefs->stride,
                                      message, rows);
        }
        if (!is_clear)
            memset(message, 0, rows * beliefs->stride * sizeof *message);
        is_clear = true;
    }
}

/* Copy the planes of a band to the caller's. */
static void deliver_band(const struct update *update, size_t band, const float *planes) {
    const dcrf_densecrf *crf = update->beliefs->crf;
    for (size_t i = 0; i < crf->labels; i++) {
        float *out = update->planes + i * crf->variables;
        const float *in = planes + i * crf->band;
        for (size_t k = crf->band_segment[band]; k < crf->band_segment[band + 1]; k++) {
            const size_t place = crf->segment[k], count = crf->segment[k + 1] - place;
            memcpy(out + crf->order[place], in + place - band * crf->band, count * sizeof *out);
        }
    }
}

static void update_band(const struct update *update, struct dcrf_spread_place at, size_t band) {
    const struct dcrf_beliefs *beliefs = update->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    const size_t worker = at.worker;
    const size_t begin = band * crf->band, own = worker * crf->band * beliefs->stride;
    const size_t rows = crf->variables - begin < crf->band ? crf->variables - begin : crf->band;
    const bool has_rest = dcrf_beliefs_has_rest(beliefs);
    float *message =
        update->message ? update->message + begin * beliefs->stride : update->rows + own;
    float *q = update->q ? update->q + begin * beliefs->stride : message;
    float *peak = beliefs->peak_part + worker * beliefs->peak_stride;
    if (!update->is_start)
        slice_band(update, at, band, message, update->parts + own, rows);
    const struct dcrf_shared_softmax softmax = {
        .labels = beliefs->active,
        .stride = beliefs->stride,
        .message_stride = beliefs->stride,
        .unary = beliefs->energies + dcrf_densecrf_unary_at(crf, begin, 0),
        .plane = beliefs->label,
        .plane_step = DCRF_LANES,
        .eight_step = DCRF_LANES * crf->labels,
        .message = update->is_start ? NULL : message,
        .total = update->sums_up ? beliefs->total + begin : NULL,
        .has_total = update->sums_up && update->has_total,
        .rest = has_rest ? beliefs->rest + begin : NULL,
        .rest_top = beliefs->rest_top + begin,
        .shift = has_rest ? beliefs->old_shift + begin : NULL,
        .scale = has_rest ? beliefs->old_scale + begin : NULL,
        .q = update->q || update->splats ? q : NULL,
        .q_planes = update->planes ? update->parts + own : NULL,
        .q_plane_step = crf->band,
        .peak = dcrf_beliefs_is_alive(beliefs, peak) ? NULL : peak,
        .rest_peak = peak + beliefs->peak_stride - 1,
        .work = update->work + worker * update->work_floats};
    dcrf_dsp()->shared_softmax(&softmax, rows);
    if (update->planes)
        deliver_band(update, band, update->parts + own);
    for (size_t m = 0; update->splats && m < crf->term_count; m++)
        dcrf_spread_splat(&update->spread, m, at, band, q);
}

/* The first band of a sector. */
static size_t first_band(const dcrf_densecrf *crf, size_t sector) {
    return sector * crf->bands / crf->sectors;
}

static void update_sectors(void *context, size_t begin, size_t end, size_t worker) {
    const struct update *update = context;
    const dcrf_densecrf *crf = update->beliefs->crf;
    for (size_t sector = begin; sector < end; sector++) {
        const struct dcrf_spread_place at = {sector, worker};
        if (!update->is_start)
            dcrf_spread_take(&update->spread, at);
        if (update->splats)
            dcrf_spread_begin(&update->spread, sector);
        for (size_t band = first_band(crf, sector); band < first_band(crf, sector + 1); band++)
            update_band(update, at, band);
        if (update->splats)
            dcrf_spread_end(&update->spread, sector);
    }
}

/* The first q of some bands, for its peaks. */
static void start_bands(void *context, size_t begin, size_t end, size_t worker) {
    for (size_t band = begin; band < end; band++)
        update_band(context, (struct dcrf_spread_place){.worker = worker}, band);
}

/* The rows of a band, from the caller's planes. */
static float *load_band(const struct update *update, size_t band, float *rows) {
    const dcrf_densecrf *crf = update->beliefs->crf;
    const size_t stride = update->beliefs->stride;
    for (size_t k = crf->band_segment[band]; k < crf->band_segment[band + 1]; k++) {
        const size_t place = crf->segment[k], count = crf->segment[k + 1] - place;
        float *out = rows + (place - band * crf->band) * stride;
        for (size_t i = 0; i < crf->labels; i++) {
            const float *in = update->from + i * crf->variables + crf->order[place];
            for (size_t a = 0; a < count; a++)
                out[a * stride + i] = in[a];
        }
    }
    return rows;
}

static void splat_sectors(void *context, size_t begin, size_t end, size_t worker) {
    const struct update *update = context;
    const dcrf_densecrf *crf = update->beliefs->crf;
    const size_t floats = crf->band * update->beliefs->stride; /* of a band */
    float *own = update->rows + worker * floats;
    if (update->from)
        memset(own, 0, floats * sizeof *own);
    for (size_t sector = begin; sector < end; sector++) {
        const struct dcrf_spread_place at = {sector, worker};
        dcrf_spread_begin(&update->spread, sector);
        for (size_t band = first_band(crf, sector); band < first_band(crf, sector + 1); band++) {
            const float *rows =
                update->from ? load_band(update, band, own) : update->beliefs->q + band * floats;
            for (size_t m = 0; m < crf->term_count; m++)
                dcrf_spread_splat(&update->spread, m, at, band, rows);
        }
        dcrf_spread_end(&update->spread, sector);
    }
}

/* Splat the stored q, or the caller's planes band by band, without rows of all variables. */
static void splat_all(struct update *update, const float *planes) {
    update->from = planes;
    dcrf_spread_layout(&update->spread, update->beliefs->stride,
                       filtered_floats(update, !planes && update->has_total && can_sum_up(update)));
    dcrf_spread_start(&update->spread);
    dcrf_parallel_for(update->beliefs->pool, update->beliefs->crf->sectors, 1, splat_sectors,
                      update);
    dcrf_spread_join(&update->spread);
    update->is_spread = true;
}

/* Compute the new q from the lattices, or the first q; optionally stored in rows and splat, or
 * written as planes. */
static void pass_over_bands(struct update *update, bool stores, bool splats, float *planes) {
    struct dcrf_beliefs *beliefs = update->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    const bool is_kept = dcrf_beliefs_has_rest(beliefs); /* never with a matrix */
    update->q = update->message = NULL;
    if (stores)
        update->q = update->message = is_kept ? beliefs->spare : beliefs->q;
    update->planes = planes;
    update->splats = splats;
    update->has_message = false;
    update->sums_up = !update->is_start && can_sum_up(update);
    update->has_total = update->has_total && update->sums_up;
    if (splats)
        update->spread.width = filtered_floats(update, update->sums_up);
    if (dcrf_rings_any(crf) && !update->is_start) {
        update->message =
            is_kept || !dcrf_rings_in_place(&update->rings) ? beliefs->spare : beliefs->q;
        if (stores)
            update->q = update->message; /* whose rows are in the cache */
        dcrf_rings_filter(&update->rings, filtered_floats(update, update->has_total),
                          update->message);
        update->has_message = true;
    }
    if (splats)
        dcrf_spread_start(&update->spread);
    dcrf_beliefs_clear_peaks(beliefs);
    dcrf_parallel_for(beliefs->pool, crf->sectors, 1, update_sectors, update);
    if (splats)
        dcrf_spread_join(&update->spread);
    beliefs->rest_peak = dcrf_beliefs_collect_peaks(beliefs, true);
    if (is_kept || update->q == beliefs->spare)
        dcrf_beliefs_swap(beliefs);
    update->has_total = update->sums_up;
    update->is_stored = stores;
    update->is_spread = update->splats;
}

/* Are the rows of q after an update read by anything? */
static bool must_store(const struct update *update) {
    const struct dcrf_beliefs *beliefs = update->beliefs;
    return dcrf_rings_any(beliefs->crf) || dcrf_beliefs_has_rest(beliefs);
}

/* The last update writes to `planes` if that can be done directly. */
static void update_beliefs(struct update *update, float *planes) {
    const bool is_last = planes, is_kept = dcrf_beliefs_has_rest(update->beliefs);
    if (update->is_start) {
        dcrf_spread_layout(&update->spread, update->beliefs->stride,
                           filtered_floats(update, false));
        pass_over_bands(update, must_store(update), true, NULL);
        update->is_start = false;
    }
    if (!update->is_spread)
        splat_all(update, NULL);
    dcrf_spread_blur(&update->spread);
    pass_over_bands(update, is_last ? is_kept : must_store(update), !is_last,
                    is_kept ? NULL : planes);
}

/* Ensure that beliefs->q holds q, by repeating the pass: its inputs are still there. */
static void store_q(struct update *update) {
    const bool was_spread = update->is_spread;
    if (update->is_stored)
        return;
    pass_over_bands(update, true, false, NULL);
    update->is_spread = was_spread;
}

/* Bands that usually suffice to see that no label has faded. */
#define PROBED_BANDS 8

/* May labels have faded, judging by softmax(-unary) in the first `bands` bands? */
static bool fades(struct update *update, size_t bands) {
    struct dcrf_beliefs *beliefs = update->beliefs;
    update->q = update->message = update->planes = NULL;
    update->splats = update->sums_up = false;
    dcrf_beliefs_clear_peaks(beliefs);
    dcrf_parallel_for(beliefs->pool, bands < beliefs->crf->bands ? bands : beliefs->crf->bands, 1,
                      start_bands, update);
    dcrf_beliefs_collect_peaks(beliefs, true);
    return dcrf_beliefs_must_adapt(beliefs);
}

/* softmax(-unary): all labels are active if none has faded; otherwise the rows are filled with the
 * remaining ones. */
static dcrf_status start(struct update *update, dcrf_error *error) {
    struct dcrf_beliefs *beliefs = update->beliefs;
    dcrf_beliefs_take_all(beliefs);
    update->is_start = true;
    update->is_stored = false;
    if (beliefs->threshold <= 0 || !fades(update, PROBED_BANDS) ||
        !fades(update, beliefs->crf->bands))
        return DCRF_OK;
    const dcrf_status status = dcrf_beliefs_measure_threshold(beliefs, error);
    if (status < 0 || !dcrf_beliefs_must_adapt(beliefs))
        return status;
    update->is_start = false;
    update->is_stored = true;
    return dcrf_beliefs_start(beliefs, error);
}

/* q is the caller's planes: in the lattices, if an update follows and nothing else reads it, or in
 * rows. */
static dcrf_status load(struct update *update, const float *planes, bool is_updated,
                        dcrf_error *error) {
    dcrf_beliefs_take_all(update->beliefs);
    update->is_stored = !is_updated || must_store(update);
    const dcrf_status status =
        dcrf_beliefs_load(update->beliefs, planes, &update->is_stored, error);
    if (status == DCRF_OK && !update->is_stored)
        splat_all(update, planes);
    return status;
}

/* The update, repeated while it raises labels that it left out. Each time more labels are included,
 * so this ends. `planes` is what the beliefs were loaded from, or NULL; `result` is passed to
 * update_beliefs. */
static dcrf_status update_woken(struct update *update, const float *planes, float *result,
                                dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    update_beliefs(update, result);
    while (status == DCRF_OK && dcrf_beliefs_must_wake(update->beliefs)) {
        status = dcrf_beliefs_wake(update->beliefs, planes, error);
        update->is_spread = false;
        if (status == DCRF_OK)
            update_beliefs(update, result);
    }
    return status;
}

static dcrf_status adapt(struct update *update, dcrf_error *error) {
    if (!dcrf_beliefs_must_adapt(update->beliefs))
        return DCRF_OK;
    const dcrf_status status = dcrf_beliefs_measure_threshold(update->beliefs, error);
    if (status < 0 || !dcrf_beliefs_must_adapt(update->beliefs))
        return status;
    store_q(update);
    update->is_spread = false;
    return dcrf_beliefs_adapt(update->beliefs, error);
}

/* ---- the run -------------------------------------------------------------------------------- */

dcrf_status dcrf_densecrf_run(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                              const struct dcrf_densecrf_call *run, dcrf_error *error) {
    struct dcrf_beliefs *beliefs;
    struct update update;
    dcrf_status status = dcrf_beliefs_new(&beliefs, crf, workspace, error);
    if (status < 0)
        return status;
    status = update_init(&update, beliefs, workspace, error);
    if (status == DCRF_OK)
        status =
            run->from ? load(&update, run->from, run->updates > 0, error) : start(&update, error);
    for (size_t i = 0; i < run->updates && status == DCRF_OK; i++) {
        if (i > 0)
            status = adapt(&update, error);
        if (status == DCRF_OK)
            status = update_woken(&update, i == 0 ? run->from : NULL,
                                  i + 1 == run->updates ? run->to : NULL, error);
        if (status == DCRF_OK && dcrf_densecrf_is_cancelled(run, i + 1))
            status = DCRF_STOP_CANCELLED;
    }
    if (status >= 0 && !update.planes) {
        store_q(&update);
        dcrf_beliefs_store(beliefs, run->to);
    }
    dcrf_beliefs_free(&beliefs);
    return status;
}
