/* The update Q <- softmax(-unary - message).
 *
 * Active labels go through the lattices in blocks of DCRF_DSP_WIDTH. When a block has been spread
 * in all lattices its part of q is not needed any more, so the message is sliced into its place;
 * after the last block the softmax follows in the same pass over the variables, while the rows are
 * in the cache. A matrix mixes blocks, so its message is collected in the spare rows. Where labels
 * are left out, message and result go to the spare rows, so that the update can be taken back.
 *
 * Large lattices filter all variables in one sweep (lattice_ring.c), before the others are sliced.
 * One of them can do so in place; where there are two, the message is in the spare rows. */
#include "compat/densecrf.h"
#include "core/error.h"
#include "core/timer.h"

#include <math.h>
#include <string.h>

static const struct dcrf_slot filtered_slot = {"what large lattices filtered"};
const struct dcrf_slot dcrf_spread_slot = {"lattices of the compatible mean field"};
static const struct dcrf_slot chunk_slot = {"what its threads work on"};

/* ---- one block of channels ------------------------------------------------------------------ */

struct update {
    struct dcrf_field *field;
    const float **spread; /* of each term: the lattice, or what it filtered if it has a ring and its
                           * compatibility is not a scalar */
    float *message;       /* rows, as long as those of q */
    bool has_matrix;      /* then the message is cleared before the first block */
    float *q;             /* rows of the result */
    float *shift, *scale; /* of the result */
    float *scratch;       /* for each thread, one chunk of a block */
    size_t first, width;  /* the block */
    bool has_some;        /* the message holds the part of some terms, sliced before the chunks */
    bool is_last;
};

/* message += mu (K Q), for the rows of a chunk; `filtered` holds K Q of the block. */
static void add_message(const struct update *update, const struct dcrf_densecrf_term *term,
                        const float *filtered, float *message, size_t rows) {
    const struct dcrf_field *field = update->field;
    const size_t end = update->first + update->width < field->active ? update->first + update->width
                                                                     : field->active;
    for (size_t r = 0; r < rows; r++) {
        const float *in = filtered + r * update->width;
        float *out = message + r * field->stride;
        for (size_t k = update->first; k < end; k++) {
            const float value = in[k - update->first];
            if (term->compatibility == DCRF_COMPATIBILITY_VECTOR) {
                out[k] += term->mu[field->label[k]] * value;
            } else {
                /* All labels are active, each in its own place. */
                const float *mu = term->mu + k * field->active;
                for (size_t i = 0; i < field->active; i++)
                    out[i] += mu[i] * value;
            }
        }
    }
}

static bool is_scalar(const struct dcrf_densecrf_term *term) {
    return term->compatibility == DCRF_COMPATIBILITY_POTTS;
}

static bool has_ring(const struct dcrf_densecrf_term *term) {
    return dcrf_densecrf_lattice(term)->ring.rows > 0;
}

static size_t count_rings(const dcrf_densecrf *crf, bool scalar) {
    size_t count = 0;
    for (size_t m = 0; m < crf->term_count; m++)
        count += has_ring(&crf->terms[m]) && is_scalar(&crf->terms[m]) == scalar;
    return count;
}

/* The terms whose lattices have a ring: the scalar ones into the message, after the others, which
 * still need q. */
static void filter_rings(struct update *update, float **result, float *scratch) {
    const struct dcrf_field *field = update->field;
    update->has_some = update->has_matrix;
    for (int scalar = 0; scalar < 2; scalar++)
        for (size_t m = 0; m < field->crf->term_count; m++) {
            const struct dcrf_densecrf_term *term = &field->crf->terms[m];
            if (!has_ring(term) || is_scalar(term) != (scalar == 1))
                continue;
            struct dcrf_lattice_filter filter = {.lattice = dcrf_densecrf_lattice(term),
                                                 .pool = field->pool,
                                                 .width = update->width,
                                                 .in = field->q + update->first,
                                                 .in_stride = field->stride,
                                                 .out = result[m],
                                                 .out_stride = update->width,
                                                 .factor = term->gain,
                                                 .scratch = scratch};
            if (scalar) {
                filter.out = update->message + update->first;
                filter.out_stride = field->stride;
                filter.factor = term->gain * term->mu[0];
                filter.accumulate = update->has_some;
                update->has_some = true;
            }
            dcrf_lattice_filter(&filter);
        }
}

static void slice_chunk(const struct update *update, size_t begin, size_t end, size_t worker) {
    const struct dcrf_field *field = update->field;
    const dcrf_densecrf *crf = field->crf;
    float *rows = update->message + begin * field->stride;
    float *scratch = update->scratch + worker * DCRF_DENSECRF_GRAIN * update->width;
    bool is_clear = update->has_some;
    for (size_t pass = 0; pass < 2; pass++) /* scalars first: they need not add */
        for (size_t m = 0; m < crf->term_count; m++) {
            const struct dcrf_densecrf_term *term = &crf->terms[m];
            const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(term);
            if (is_scalar(term) != (pass == 0) || (is_scalar(term) && has_ring(term)))
                continue;
            if (is_scalar(term)) {
                dcrf_lattice_slice(lattice, update->spread[m], update->width, begin, end,
                                   term->gain * term->mu[0], is_clear, rows + update->first,
                                   field->stride);
                is_clear = true;
                continue;
            }
            for (size_t r = 0; !is_clear && r < end - begin; r++)
                memset(rows + r * field->stride + update->first, 0, update->width * sizeof *rows);
            is_clear = true;
            const float *filtered = scratch;
            if (has_ring(term))
                filtered = update->spread[m] + begin * update->width;
            else
                dcrf_lattice_slice(lattice, update->spread[m], update->width, begin, end,
                                   term->gain, false, scratch, update->width);
            add_message(update, term, filtered, rows, end - begin);
        }
    for (size_t r = 0; !is_clear && r < end - begin; r++)
        memset(rows + r * field->stride + update->first, 0, update->width * sizeof *rows);
}

static void update_chunk(void *context, size_t begin, size_t end, size_t worker) {
    const struct update *update = context;
    const struct dcrf_field *field = update->field;
    slice_chunk(update, begin, end, worker);
    if (!update->is_last)
        return;
    const bool has_rest = dcrf_field_has_rest(field);
    float *peak = field->peak_part + worker * field->peak_stride;
    const struct dcrf_shared_softmax softmax = {.labels = field->active,
                                                .stride = field->stride,
                                                .message_stride = field->stride,
                                                .unary = field->unary + begin * field->stride,
                                                .message = update->message + begin * field->stride,
                                                .rest = has_rest ? field->rest + begin : NULL,
                                                .rest_top = field->rest_top + begin,
                                                .shift = update->shift + begin,
                                                .scale = update->scale + begin,
                                                .q = update->q + begin * field->stride,
                                                .peak = peak,
                                                .rest_peak = peak + field->peak_stride - 1};
    dcrf_dsp()->shared_softmax(&softmax, end - begin);
}

/* ---- all blocks ----------------------------------------------------------------------------- */

/* Memory for the lattices: one buffer a term and one that they share. */
static bool take_buffers(const dcrf_densecrf *crf, dcrf_workspace *workspace, size_t width,
                         float **result, float **shared) {
    size_t floats = 0, most = 0;
    for (size_t m = 0; m < crf->term_count; m++) {
        const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(&crf->terms[m]);
        const size_t both = dcrf_lattice_filter_floats(lattice, width);
        const size_t scratch = has_ring(&crf->terms[m]) ? both : both / 2;
        floats += both - scratch;
        most = scratch > most ? scratch : most;
    }
    float *memory =
        dcrf_workspace_slot(workspace, &dcrf_spread_slot, floats + most, sizeof *memory);
    float *filtered =
        dcrf_workspace_slot(workspace, &filtered_slot, crf->variables * count_rings(crf, false),
                            width * sizeof *filtered);
    if (!memory || !filtered)
        return false;
    *shared = memory;
    memory += most;
    for (size_t m = 0; m < crf->term_count; m++) {
        const struct dcrf_densecrf_term *term = &crf->terms[m];
        if (!has_ring(term)) {
            result[m] = memory;
            memory += dcrf_lattice_filter_floats(dcrf_densecrf_lattice(term), width) / 2;
        } else if (!is_scalar(term)) {
            result[m] = filtered;
            filtered += crf->variables * width;
        } else {
            result[m] = NULL;
        }
    }
    return true;
}

static bool has_matrix(const dcrf_densecrf *crf) {
    for (size_t m = 0; m < crf->term_count; m++)
        if (crf->terms[m].compatibility == DCRF_COMPATIBILITY_MATRIX)
            return true;
    return false;
}

static dcrf_status update_field(struct dcrf_field *field, dcrf_workspace *workspace,
                                dcrf_error *error) {
    const dcrf_densecrf *crf = field->crf;
    const size_t n = crf->variables;
    const size_t most = field->stride < DCRF_DSP_WIDTH ? field->stride : DCRF_DSP_WIDTH;
    float *result[DCRF_DENSECRF_MOST_TERMS], *shared;
    const bool is_kept = dcrf_field_has_rest(field); /* a matrix leaves no label out */
    struct update update = {.field = field,
                            .spread = (const float **)result,
                            .has_matrix = has_matrix(crf),
                            .q = is_kept ? field->spare : field->q,
                            .shift = is_kept ? field->old_shift : field->shift,
                            .scale = is_kept ? field->old_scale : field->scale};
    update.message = update.has_matrix || count_rings(crf, true) > 1 ? field->spare : update.q;
    update.scratch = dcrf_workspace_slot(workspace, &chunk_slot, dcrf_workspace_threads(workspace),
                                         DCRF_DENSECRF_GRAIN * most * sizeof *update.scratch);
    if (!update.scratch || !take_buffers(crf, workspace, most, result, &shared))
        return dcrf_fail_memory(error, "mean field");
    if (update.has_matrix)
        memset(field->spare, 0, n * field->stride * sizeof *field->spare);
    dcrf_field_clear_peaks(field);
    for (update.first = 0; update.first < field->stride; update.first += update.width) {
        const size_t left = field->stride - update.first;
        update.width = left < DCRF_DSP_WIDTH ? left : DCRF_DSP_WIDTH;
        update.is_last = update.width == left;
        for (size_t m = 0; m < crf->term_count; m++)
            if (!has_ring(&crf->terms[m]))
                dcrf_lattice_spread(dcrf_densecrf_lattice(&crf->terms[m]), field->pool,
                                    field->q + update.first, field->stride, update.width, result[m],
                                    shared);
        filter_rings(&update, result, shared);
        dcrf_parallel_for(field->pool, n, DCRF_DENSECRF_GRAIN, update_chunk, &update);
    }
    field->rest_peak = dcrf_field_collect_peaks(field, true);
    if (is_kept)
        dcrf_field_swap(field);
    return DCRF_OK;
}

/* The update, made again while it raises labels that it left out: every time more are in, so that
 * comes to an end. `planes` is what the field was loaded from, or NULL. */
static dcrf_status update_woken(struct dcrf_field *field, const float *planes,
                                dcrf_workspace *workspace, dcrf_error *error) {
    dcrf_status status = update_field(field, workspace, error);
    while (status == DCRF_OK && dcrf_field_must_wake(field)) {
        status = dcrf_field_wake(field, planes, error);
        if (status == DCRF_OK)
            status = update_field(field, workspace, error);
    }
    return status;
}

/* ---- the public calls ----------------------------------------------------------------------- */

dcrf_status dcrf_densecrf_infer(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                size_t iterations, float *q, dcrf_progress_callback progress,
                                void *progress_user, dcrf_error *error) {
    if (!crf || !workspace || !q)
        return dcrf_fail_null(error, "the model, the workspace or the block of marginals");
    const double start_s = dcrf_time_s();
    struct dcrf_field *field;
    dcrf_status status = dcrf_field_new(&field, crf, workspace, error);
    if (status < 0)
        return status;
    status = dcrf_field_start(field, error);
    for (size_t i = 0; i < iterations && status == DCRF_OK; i++) {
        if (i > 0)
            status = dcrf_field_adapt(field, error);
        if (status == DCRF_OK)
            status = update_woken(field, NULL, workspace, error);
        const dcrf_moment moment = {.time_s = dcrf_time_s() - start_s,
                                    .iteration = i + 1,
                                    .objective = (double)NAN,
                                    .energy = (double)NAN,
                                    .best_energy = (double)NAN,
                                    .lower_bound = (double)NAN};
        if (status == DCRF_OK && progress && progress(progress_user, &moment) != 0)
            status = DCRF_STOP_CANCELLED;
    }
    if (status >= 0)
        dcrf_field_store(field, q);
    dcrf_field_free(&field);
    return status;
}

dcrf_status dcrf_densecrf_start(const dcrf_densecrf *crf, dcrf_workspace *workspace, float *q,
                                dcrf_error *error) {
    return dcrf_densecrf_infer(crf, workspace, 0, q, NULL, NULL, error);
}

dcrf_status dcrf_densecrf_step(const dcrf_densecrf *crf, dcrf_workspace *workspace, float *q,
                               dcrf_error *error) {
    if (!crf || !workspace || !q)
        return dcrf_fail_null(error, "the model, the workspace or the block of marginals");
    struct dcrf_field *field;
    dcrf_status status = dcrf_field_new(&field, crf, workspace, error);
    if (status < 0)
        return status;
    status = dcrf_field_load(field, q, error);
    if (status == DCRF_OK)
        status = update_woken(field, q, workspace, error);
    if (status == DCRF_OK)
        dcrf_field_store(field, q);
    dcrf_field_free(&field);
    return status;
}
