/* The compatible mean field: declarations shared by its files.
 *
 *   densecrf.c     the object: unary energies, kernels, compatibilities; checks of every call
 *   host.c         kernels on the host
 *   order.c        the order of the variables
 *   active.c       which labels are filtered, and their rows
 *   spread.c       rows on the lattices, from one update to the next
 *   rings.c        messages from large lattices, which have no such rows
 *   update.c       the update
 *   divergence.c   the objective
 *   device.c       all of this on a device
 *
 * Unless set before, the first kernel determines where a model lives: on the device of the
 * workspace it is added with, or on the CPU. */
#ifndef DCRF_DENSECRF_DENSECRF_H
#define DCRF_DENSECRF_DENSECRF_H

#include "backend/device.h"
#include "core/timer.h"
#include "filter/lattice/lattice.h"

#include <dcrf/densecrf.h>
#include <math.h>

/* Scratch memory: rows of lattices. */
extern const struct dcrf_slot dcrf_spread_slot;

/* One kernel: message = sum_j mu(i, j) gain (K Q_j), mu with the signs of dcrf/densecrf.h. */
struct dcrf_densecrf_term {
    dcrf_operator *op;     /* a lattice with its normalization, or an operator of the device */
    float gain;            /* 1 / (1 + 2^-d); included in operators of the device */
    _Atomic float row_sum; /* largest entry of gain K 1; 0: not measured yet */
    dcrf_compatibility compatibility;
    float *mu; /* 1 (the same for all labels), labels, or labels x labels values */
    /* On a device, what the kernel was made of, for dcrf_densecrf_move_to_host, with its own copy
     * of the channels. */
    dcrf_kernel kernel;
    void *channels;
    dcrf_densecrf_normalization normalization;
};

static inline const struct dcrf_lattice *
dcrf_densecrf_lattice(const struct dcrf_densecrf_term *term) {
    return (const struct dcrf_lattice *)term->op;
}

/* Can its rows be as short as two floats? */
static inline bool dcrf_densecrf_has_short_rows(const struct dcrf_densecrf_term *term) {
    return !dcrf_densecrf_lattice(term)->runs.first;
}

static inline bool dcrf_densecrf_has_ring(const struct dcrf_densecrf_term *term) {
    return dcrf_densecrf_lattice(term)->ring.rows > 0;
}

static inline bool dcrf_densecrf_is_scalar(const struct dcrf_densecrf_term *term) {
    return term->compatibility == DCRF_COMPATIBILITY_POTTS;
}

struct dcrf_densecrf {
    dcrf_grid grid;
    size_t variables;
    size_t labels;
    size_t band; /* variables processed together */
    size_t bands;
    size_t sectors;       /* of bands, in every lattice */
    uint32_t *order;      /* the variable at each place; unary energies and rows are by place */
    uint32_t *segment;    /* the first place of each, then the number of variables */
    size_t *band_segment; /* bands + 1: the first segment of each band */
    float *unary;         /* see dcrf_densecrf_unary_at; NULL: zero */
    size_t term_count;
    struct dcrf_densecrf_term *terms;
    double message_error;
    const struct dcrf_densecrf_methods *methods; /* of the host or the device */
    /* On a device: `on_device` holds the unary energies, the compatibilities and Q, and keeps the
     * device open. */
    dcrf_backend_compat *on_device; /* NULL: the model is on the host */
    struct dcrf_device device;      /* on the host: a name only */
};

/* Updates of planes: label i of variable a at i * variables + a. */
struct dcrf_densecrf_call {
    const float *from; /* NULL: softmax(-unary) */
    size_t updates;
    float *to; /* may be `from` */
    double start_s;
    dcrf_progress_callback progress; /* may be NULL */
    void *user;
};

/* Where a model lives: the host, or a device. The arguments have been checked. */
struct dcrf_densecrf_methods {
    /* Copy contiguous planes of energies; DCRF_ERROR_NOT_FINITE changes nothing. NULL: they are
     * ordered first, for take_unary. */
    dcrf_status (*copy_planes)(const dcrf_densecrf *crf, const float *planes, dcrf_error *error);
    /* Energies in the order of the places, which are released or belong to the model afterwards. */
    dcrf_status (*take_unary)(dcrf_densecrf *crf, float *unary, dcrf_error *error);
    /* Make a new term's operator, without adding the term to the model. Can move the model to
     * the host. */
    dcrf_status (*build)(dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                         dcrf_workspace *workspace, const dcrf_kernel *kernel,
                         dcrf_densecrf_normalization normalization, dcrf_error *error);
    /* Use these terms from now on. */
    dcrf_status (*set_kernels)(const dcrf_densecrf *crf, const struct dcrf_densecrf_term *terms,
                               size_t count, dcrf_error *error);
    dcrf_status (*run)(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                       const struct dcrf_densecrf_call *run, dcrf_error *error);
    dcrf_status (*divergence)(const dcrf_densecrf *crf, dcrf_workspace *workspace, const float *q,
                              double *divergence, dcrf_error *error);
    /* Release what is held for the model there. */
    void (*leave)(dcrf_densecrf *crf);
};
extern const struct dcrf_densecrf_methods dcrf_densecrf_host;

/* The largest entry of gain K 1, measured on first use. */
dcrf_status dcrf_densecrf_row_sum(struct dcrf_densecrf_term *term, dcrf_pool *pool, float *row_sum,
                                  dcrf_error *error);

/* Tell the progress callback, if any. */
static inline bool dcrf_densecrf_is_cancelled(const struct dcrf_densecrf_call *run,
                                              size_t updates) {
    const dcrf_moment moment = {.time_s = dcrf_time_s() - run->start_s,
                                .iteration = updates,
                                .objective = (double)NAN,
                                .energy = (double)NAN,
                                .best_energy = (double)NAN,
                                .lower_bound = (double)NAN,
                                .relative_gap = (double)NAN,
                                .stage = DCRF_STAGE_SOLVE};
    return run->progress && run->progress(run->user, &moment) != 0;
}

/* Unary energies are clipped to this: the probability is zero either way, and -unary - message must
 * not overflow. */
#define DCRF_DENSECRF_LARGEST_UNARY 1e29f

/* Maximum number of kernels. */
#define DCRF_DENSECRF_MOST_TERMS 64

/* Variables per task. */
#define DCRF_DENSECRF_GRAIN 512

/* Index of the unary energy of a place and label: blocks of eight places, label by label, so that
 * an update reads a single stream for any number of labels. */
static inline size_t dcrf_densecrf_unary_at(const dcrf_densecrf *crf, size_t place, size_t label) {
    return (place / DCRF_LANES * crf->labels + label) * DCRF_LANES + place % DCRF_LANES;
}

/* Floats in that array, including the padding of the last block. */
static inline size_t dcrf_densecrf_unary_floats(const dcrf_densecrf *crf) {
    return (crf->variables + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES * crf->labels;
}

/* dcrf_densecrf_features: the features as the original computes them, to be cleared by the caller;
 * `is_given`: the channels are read in place, see model/kernel.h. */
dcrf_status dcrf_densecrf_features(struct dcrf_features *features, const dcrf_densecrf *crf,
                                   const dcrf_kernel *kernel, bool is_given, dcrf_error *error);

/* Are the variables `step` bytes apart, without gaps? */
static inline bool dcrf_densecrf_is_packed(const dcrf_view *view, const dcrf_grid *grid,
                                           size_t step) {
    bool is_packed = true;
    for (size_t axis = 0; axis < grid->axes; axis++) {
        is_packed = is_packed && (grid->size[axis] == 1 || view->stride[axis] == (ptrdiff_t)step);
        step *= grid->size[axis];
    }
    return is_packed;
}

/* Bytes, interleaved without gaps? */
static inline bool dcrf_densecrf_are_bytes(const dcrf_view *view, const dcrf_grid *grid) {
    return view->type == DCRF_U8 && (view->channels == 1 || view->channel_stride == 1) &&
           dcrf_densecrf_is_packed(view, grid, view->channels);
}

/* Copy planes of finite energies to the order of the places; false if one must be clipped. */
bool dcrf_densecrf_order_planes(const dcrf_densecrf *crf, const float *planes, float *unary);

/* 0 if none is positive. */
static inline float dcrf_densecrf_largest(const float *values, size_t count) {
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

/* The original embeds four variables at a time and pads the last four with zeros, whose vertices
 * then exist and pass on what reaches them. */
static inline bool dcrf_densecrf_has_origin(const dcrf_densecrf *crf) {
    return crf->variables % 4 != 0;
}

/* ---- order.c -------------------------------------------------------------------------------- */

/* Set up the order, the bands and the segments of crf; false: out of memory. */
bool dcrf_densecrf_order_new(dcrf_densecrf *crf);

/* ---- active.c ------------------------------------------------------------------------------- */

/* The distributions of all variables during updates. Rows hold the active labels only. The others
 * have no message, so only the denominator of the softmax changes their probabilities: an update
 * needs only log_rest_a = ln sum_i exp(-unary_ai) over them, and
 * q_ai = scale_a exp(-unary_ai - shift_a) restores them. */

struct dcrf_beliefs {
    const dcrf_densecrf *crf;
    dcrf_pool *pool;
    float threshold;    /* labels at or below it everywhere need no filter; negative: all do */
    bool has_threshold; /* else the threshold is only an upper bound */
    size_t active;      /* labels in the rows */
    size_t stride;
    size_t *label;         /* the label at each place in a row */
    size_t *place;         /* the place of each label, or SIZE_MAX */
    const float *energies; /* the unary energies, as crf->unary */
    float *zeros;          /* stands in for missing unary energies; else NULL */
    float *q;              /* rows */
    float *spare;          /* rows: the next q, the last one, or a message */
    float *rest;           /* per variable: log_rest, used while active < labels */
    float *rest_top;       /* per variable: the largest -unary of the rest */
    float *shift;          /* per variable, for the labels that are not active */
    float *scale;          /* same */
    float *old_shift;      /* before the last update, when `spare` holds the old q */
    float *old_scale;
    float *total;     /* per variable: sums of messages while all are active; shares `rest` */
    float *peak;      /* per label: its largest q anywhere, or a bound on it */
    float *peak_part; /* per thread: the peaks found by a loop, then that of the rest */
    size_t peak_stride;
    float rest_peak; /* the largest q of a label that is not active */
};

dcrf_status dcrf_beliefs_new(struct dcrf_beliefs **beliefs, const dcrf_densecrf *crf,
                             dcrf_workspace *workspace, dcrf_error *error);
void dcrf_beliefs_free(struct dcrf_beliefs **beliefs);

/* Make all labels active; the rows are not filled. */
void dcrf_beliefs_take_all(struct dcrf_beliefs *beliefs);

/* Set q to softmax(-unary), whose peaks are known, or to the caller's planes, in rows of the labels
 * that count. With *stores = false, planes whose labels all count are only checked, and nothing is
 * stored; *stores says whether something was. */
dcrf_status dcrf_beliefs_start(struct dcrf_beliefs *beliefs, dcrf_error *error);
dcrf_status dcrf_beliefs_load(struct dcrf_beliefs *beliefs, const float *q, bool *stores,
                              dcrf_error *error);

/* Would rows be shorter without the labels that have faded? If so, and still so once the threshold
 * is measured, dcrf_beliefs_adapt removes them from the rows. */
bool dcrf_beliefs_must_adapt(const struct dcrf_beliefs *beliefs);
dcrf_status dcrf_beliefs_measure_threshold(struct dcrf_beliefs *beliefs, dcrf_error *error);
dcrf_status dcrf_beliefs_adapt(struct dcrf_beliefs *beliefs, dcrf_error *error);

/* Swap q, shift and scale with those before the last update. */
void dcrf_beliefs_swap(struct dcrf_beliefs *beliefs);

/* If the last update raised a label above the threshold that it did not filter
 * (dcrf_beliefs_must_wake), it must be repeated with that label: dcrf_beliefs_wake restores the
 * state before the update, with such labels in the rows. `planes`: what dcrf_beliefs_load was
 * given, or NULL. */
dcrf_status dcrf_beliefs_wake(struct dcrf_beliefs *beliefs, const float *planes, dcrf_error *error);

/* Write q into planes. */
void dcrf_beliefs_store(const struct dcrf_beliefs *beliefs, float *q);

static inline bool dcrf_beliefs_has_rest(const struct dcrf_beliefs *beliefs) {
    return beliefs->active < beliefs->crf->labels;
}

static inline bool dcrf_beliefs_must_wake(const struct dcrf_beliefs *beliefs) {
    return dcrf_beliefs_has_rest(beliefs) && beliefs->rest_peak > beliefs->threshold;
}

/* Called before and after a loop that raises the peaks of its thread, by label or by place in the
 * rows. The last number of a part is for the rest; its maximum is returned. */
void dcrf_beliefs_clear_peaks(struct dcrf_beliefs *beliefs);
/* Do the peaks in a part, by place, already show that rows cannot be shorter? Then no more need to
 * be collected. */
bool dcrf_beliefs_is_alive(const struct dcrf_beliefs *beliefs, const float *peak_part);
float dcrf_beliefs_collect_peaks(struct dcrf_beliefs *beliefs, bool by_place);

/* ---- spread.c ------------------------------------------------------------------------------- */

struct dcrf_spread {
    const dcrf_densecrf *crf;
    dcrf_pool *pool;
    size_t stride;       /* of the rows of variables */
    size_t width;        /* floats of a row that are splat */
    size_t sliced_width; /* the width when the lattices were blurred */
    float *memory;
    struct dcrf_spread_rows {
        float *blurred;
        float *splat;
        float *copies; /* separate copies: of what is splat, by sector */
        float *taken;  /* and of what is sliced, by thread */
    } term[DCRF_DENSECRF_MOST_TERMS];
};

/* Allocate memory for rows of at most `most_stride` floats; false: out of memory. */
bool dcrf_spread_init(struct dcrf_spread *spread, const dcrf_densecrf *crf,
                      dcrf_workspace *workspace, size_t most_stride);

/* Start with rows of `stride` floats, of which `width` are filtered: all labels, or all but one.
 * What is on the lattices is lost. Changing only spread->width affects the splats after it. */
void dcrf_spread_layout(struct dcrf_spread *spread, size_t stride, size_t width);

/* A sector of bands, and the thread that works on it. */
struct dcrf_spread_place {
    size_t sector, worker;
};

/* Start, then splat all sectors: begin each, splat its bands in order, with the rows of their
 * variables, and end it. Sectors can be splat concurrently. */
void dcrf_spread_start(const struct dcrf_spread *spread);
void dcrf_spread_begin(const struct dcrf_spread *spread, size_t sector);
void dcrf_spread_splat(const struct dcrf_spread *spread, size_t term, struct dcrf_spread_place at,
                       size_t band, const float *rows);
void dcrf_spread_end(const struct dcrf_spread *spread, size_t sector);

/* Join the sectors once all are splat; and blur: slicing reads the result from then on. */
void dcrf_spread_join(const struct dcrf_spread *spread);
void dcrf_spread_blur(struct dcrf_spread *spread);

/* Before the bands of a sector are sliced; and rows = factor times what the variables of a band get
 * from a lattice without a ring, or += that if `accumulate`. */
void dcrf_spread_take(const struct dcrf_spread *spread, struct dcrf_spread_place at);
void dcrf_spread_slice(const struct dcrf_spread *spread, size_t term, struct dcrf_spread_place at,
                       size_t band, float factor, bool accumulate, float *rows);

/* ---- rings.c -------------------------------------------------------------------------------- */

struct dcrf_rings {
    const struct dcrf_beliefs *beliefs;
    float *ring; /* ring_floats in all; each task, a section of a share, has task_floats */
    size_t ring_floats, task_floats;
    size_t shares;                          /* into which the labels are divided */
    struct dcrf_lattice_sections *sections; /* per term */
    float *filtered; /* output of a lattice whose compatibility is not a scalar */
    /* The current filter: */
    size_t floats;
    float *message;
    bool has_message; /* some terms have written their part to the message */
};

/* The number of terms with or without a ring whose compatibility is a scalar or not; does any term
 * have a ring? */
size_t dcrf_rings_count(const dcrf_densecrf *crf, bool ring, bool scalar);
bool dcrf_rings_any(const dcrf_densecrf *crf);

/* Allocate memory; false: out of memory. */
bool dcrf_rings_init(struct dcrf_rings *rings, const struct dcrf_beliefs *beliefs,
                     dcrf_workspace *workspace);

/* Apply all lattices with a ring, of which there is at least one, to the first `floats` floats of
 * the rows of q, writing to `message`. dcrf_rings_in_place: can `message` be q itself? */
void dcrf_rings_filter(struct dcrf_rings *rings, size_t floats, float *message);
bool dcrf_rings_in_place(const struct dcrf_rings *rings);

/* message += mu filtered, for `rows` rows and the labels at .. at + width - 1, which `filtered`
 * holds in rows of `step` floats. */
void dcrf_densecrf_add_message(const struct dcrf_beliefs *beliefs,
                               const struct dcrf_densecrf_term *term, const float *filtered,
                               size_t step, size_t at, size_t width, float *message, size_t rows);

/* ---- update.c, divergence.c ----------------------------------------------------------------- */

/* Entries of dcrf_densecrf_host. */
dcrf_status dcrf_densecrf_run(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                              const struct dcrf_densecrf_call *run, dcrf_error *error);
dcrf_status dcrf_densecrf_find_divergence(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                          const float *q, double *divergence, dcrf_error *error);

/* ---- device.c ------------------------------------------------------------------------------- */

/* Move a model without kernels to the device of a workspace, if it has one that supports the model;
 * and move a model to the host, rebuilding all kernels there. A model that is already there
 * stays. */
dcrf_status dcrf_densecrf_move_to_device(dcrf_densecrf *crf, const dcrf_workspace *workspace,
                                         dcrf_error *error);
dcrf_status dcrf_densecrf_move_to_host(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                       dcrf_error *error);

/* ---- inside spread.c and rings.c ------------------------------------------------------------ */

/* The width of the block of labels that begins at `at`, of `floats` in all. */
static inline size_t dcrf_spread_block_width(size_t floats, size_t at) {
    return floats - at < DCRF_DSP_WIDTH ? floats - at : DCRF_DSP_WIDTH;
}

#endif
