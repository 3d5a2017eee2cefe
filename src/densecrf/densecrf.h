/* The compatible mean field: what its files share.
 *
 *   densecrf.c     the object: unary energies, kernels, compatibilities
 *   order.c        the order of the variables
 *   active.c       which labels are filtered, and their rows
 *   spread.c       rows on the lattices, from one update to the next
 *   rings.c        messages from large lattices, which have no such rows
 *   update.c       the update, and the public calls that make updates
 *   divergence.c   the objective
 *   device.c       all of that on a device
 *
 * Unless it was set before, the first kernel decides where a model lives: on the device of the
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
    dcrf_operator *op;     /* a lattice, with its normalization; or one of the device's */
    float gain;            /* 1 / (1 + 2^-d); the device's has it in itself */
    _Atomic float row_sum; /* largest entry of gain K 1; 0: not measured yet */
    dcrf_compatibility compatibility;
    float *mu; /* 1 (all labels alike), labels, or labels x labels values */
    /* What it was made of, as long as it is on a device (dcrf_densecrf_move_to_host), with channels
     * of its own. */
    dcrf_kernel kernel;
    void *channels;
    dcrf_densecrf_normalization normalization;
};

static inline const struct dcrf_lattice *
dcrf_densecrf_lattice(const struct dcrf_densecrf_term *term) {
    return (const struct dcrf_lattice *)term->op;
}

/* Can its rows have two floats? */
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
    size_t band; /* variables that are worked on together */
    size_t bands;
    uint32_t *order;      /* the variable of each place; unary energies and rows are by place */
    uint32_t *segment;    /* the first place of each, and the number of variables */
    size_t *band_segment; /* bands + 1: the first segment of each */
    float *unary;         /* by dcrf_densecrf_unary_at; NULL: zero */
    size_t term_count;
    struct dcrf_densecrf_term *terms;
    double message_error;
    /* On a device: unary energies, compatibilities and Q are in `on_device`, which holds the
     * device. */
    dcrf_backend_compat *on_device; /* NULL: the model is here */
    struct dcrf_device device;      /* where it is, if it is there */
};

/* The largest entry of gain K 1, measured when it is first asked for. */
dcrf_status dcrf_densecrf_row_sum(struct dcrf_densecrf_term *term, dcrf_pool *pool, float *row_sum,
                                  dcrf_error *error);

/* What a progress callback receives. */
static inline dcrf_moment dcrf_densecrf_moment(double start_s, size_t iteration) {
    return (dcrf_moment){.time_s = dcrf_time_s() - start_s,
                         .iteration = iteration,
                         .objective = (double)NAN,
                         .energy = (double)NAN,
                         .best_energy = (double)NAN,
                         .lower_bound = (double)NAN};
}

/* Unary energies are clipped to this: the probability is zero either way, and -unary - message must
 * stay a float. */
#define DCRF_DENSECRF_LARGEST_UNARY 1e29f

/* The most kernels. */
#define DCRF_DENSECRF_MOST_TERMS 64

/* Variables a task takes. */
#define DCRF_DENSECRF_GRAIN 512

/* Where the unary energy of a place and label is: eights of places, label by label, so that an
 * update reads one stream whatever the number of labels. */
static inline size_t dcrf_densecrf_unary_at(const dcrf_densecrf *crf, size_t place, size_t label) {
    return (place / DCRF_LANES * crf->labels + label) * DCRF_LANES + place % DCRF_LANES;
}

/* Floats of all of them, the last eight filled up. */
static inline size_t dcrf_densecrf_unary_floats(const dcrf_densecrf *crf) {
    return (crf->variables + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES * crf->labels;
}

/* The features as the original computes them, to be cleared; `is_given`: of channels that are left
 * where they are, see model/kernel.h. And the kernel of them here. */
dcrf_status dcrf_densecrf_features(struct dcrf_features *features, const dcrf_densecrf *crf,
                                   const dcrf_kernel *kernel, bool is_given, dcrf_error *error);
dcrf_status dcrf_densecrf_build(const dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                                dcrf_workspace *workspace, const dcrf_kernel *kernel,
                                dcrf_densecrf_normalization normalization, dcrf_error *error);

/* Bring planes of finite energies into the order of the places; false where one must be clipped. */
bool dcrf_densecrf_order_planes(const dcrf_densecrf *crf, const float *planes, float *unary);

/* The original embeds four variables at a time and fills the last four up with zeros, whose
 * vertices then exist and pass on what reaches them. */
static inline bool dcrf_densecrf_has_origin(const dcrf_densecrf *crf) {
    return crf->variables % 4 != 0;
}

/* ---- order.c -------------------------------------------------------------------------------- */

/* Make what crf has of this; false: no memory. */
bool dcrf_densecrf_order_new(dcrf_densecrf *crf);

/* ---- active.c: a distribution on its way through updates
 * --------------------------------------------------
 *
 * Rows hold the active labels only. The others have no message, so their share of a softmax changes
 * with nothing but its denominator: log_rest_a = ln sum_i exp(-unary_ai) over them is all that an
 * update needs of them, and q_ai = scale_a exp(-unary_ai - shift_a) gives them back. */

struct dcrf_field {
    const dcrf_densecrf *crf;
    dcrf_pool *pool;
    float threshold; /* labels that are at or below it everywhere need no filter; negative: all do
                      */
    bool has_threshold; /* else it is at most that, and not measured yet */
    size_t active;      /* labels in the rows */
    size_t stride;
    size_t *label;         /* of each place in a row */
    size_t *place;         /* of each label, or SIZE_MAX */
    const float *energies; /* the unary energies, as crf->unary */
    float *zeros;          /* the same where none were given; else NULL */
    float *q;              /* rows */
    float *spare;          /* rows: the next q, the last one, or a message */
    float *rest;           /* per variable; used while active < labels */
    float *rest_top;       /* the logarithm of their largest part */
    float *shift;          /* of all labels that are not active */
    float *scale;          /* the same */
    float *old_shift;      /* before the last update, as `spare` then holds the old q */
    float *old_scale;
    float *total;     /* per variable, in the same memory: sums of messages, while all are active */
    float *peak;      /* per label: its largest q anywhere, or a bound on it */
    float *peak_part; /* per thread, labels padded: what a loop collects; then one more number */
    size_t peak_stride;
    float rest_peak; /* the largest q of a label that is not active */
};

dcrf_status dcrf_field_new(struct dcrf_field **field, const dcrf_densecrf *crf,
                           dcrf_workspace *workspace, dcrf_error *error);
void dcrf_field_free(struct dcrf_field **field);

/* All labels are active; no rows are filled. */
void dcrf_field_take_all(struct dcrf_field *field);

/* q = softmax(-unary), whose peaks are known, or the planes of the caller, in rows of the labels
 * that count. */
dcrf_status dcrf_field_start(struct dcrf_field *field, dcrf_error *error);
dcrf_status dcrf_field_load(struct dcrf_field *field, const float *q, dcrf_error *error);

/* Would rows be shorter without the labels that have faded? Then take those out of the rows, once
 * the threshold is measured and they still would. */
bool dcrf_field_must_adapt(const struct dcrf_field *field);
dcrf_status dcrf_field_measure_threshold(struct dcrf_field *field, dcrf_error *error);
dcrf_status dcrf_field_adapt(struct dcrf_field *field, dcrf_error *error);

/* Exchange this q (and shift and scale) for those before the last update. */
void dcrf_field_swap(struct dcrf_field *field);

/* Did the last update raise a label above the threshold that it did not filter? Then the update is
 * to be made again with that label: dcrf_field_wake goes back to where it began, with such labels
 * in the rows. `planes` is what dcrf_field_load was given, or NULL. */
dcrf_status dcrf_field_wake(struct dcrf_field *field, const float *planes, dcrf_error *error);

/* Write q into planes. */
void dcrf_field_store(const struct dcrf_field *field, float *q);

static inline bool dcrf_field_has_rest(const struct dcrf_field *field) {
    return field->active < field->crf->labels;
}

static inline bool dcrf_field_must_wake(const struct dcrf_field *field) {
    return dcrf_field_has_rest(field) && field->rest_peak > field->threshold;
}

/* Before and after a loop that raises the peaks of its thread, by label or by place in the rows;
 * the last number of a part is that of the rest, which is returned. */
void dcrf_field_clear_peaks(struct dcrf_field *field);
/* Do the peaks in a part, by place, show already that rows cannot be shorter? Then no more of them
 * need to be collected. */
bool dcrf_field_is_alive(const struct dcrf_field *field, const float *peak_part);
float dcrf_field_collect_peaks(struct dcrf_field *field, bool by_place);

/* ---- spread.c ------------------------------------------------------------------------------- */

struct dcrf_spread {
    const dcrf_densecrf *crf;
    dcrf_pool *pool;
    size_t stride;       /* of the rows of variables */
    size_t width;        /* floats of them that are splat */
    size_t sliced_width; /* that were, when the lattices were blurred */
    float *memory;
    struct dcrf_spread_rows {
        float *blurred;
        float *splat;
    } term[DCRF_DENSECRF_MOST_TERMS];
};

/* Take memory for rows of at most so many floats; false: there is none. */
bool dcrf_spread_init(struct dcrf_spread *spread, const dcrf_densecrf *crf,
                      dcrf_workspace *workspace, size_t most_stride);

/* Begin with rows of `stride` floats, of which `width` are filtered: all labels but one, perhaps.
 * What is on the lattices is lost. A change of the width alone concerns the splats after it. */
void dcrf_spread_layout(struct dcrf_spread *spread, size_t stride, size_t width);

/* Splat: clear the rows, then the bands of each group in their order, each with the rows of its
 * variables. Different terms and groups can do so at the same time. */
void dcrf_spread_clear(const struct dcrf_spread *spread);
void dcrf_spread_splat(const struct dcrf_spread *spread, size_t term, size_t band,
                       const float *rows);

/* The same with the rows of all variables: so many tasks of a term, in any order or at the same
 * time. */
size_t dcrf_spread_tasks(const struct dcrf_spread *spread, size_t term);
void dcrf_spread_splat_task(const struct dcrf_spread *spread, size_t term, size_t task,
                            const float *rows);

/* Blur what was splat, once all groups are; from then on that is sliced. */
void dcrf_spread_blur(struct dcrf_spread *spread);

/* rows = factor times what the variables of a band get from a lattice without a ring, or += that.
 */
void dcrf_spread_slice(const struct dcrf_spread *spread, size_t term, size_t band, float factor,
                       bool accumulate, float *rows);

/* ---- rings.c -------------------------------------------------------------------------------- */

struct dcrf_rings {
    const struct dcrf_field *field;
    float *ring; /* ring_floats, of which each segment of a share has task_floats */
    size_t ring_floats, task_floats;
    size_t shares;                          /* of the labels */
    struct dcrf_lattice_segments *segments; /* of each term */
    float *filtered;                        /* by a lattice whose compatibility is not a scalar */
    /* One filter: */
    size_t floats;
    float *message;
    bool has_message; /* some terms have put theirs there */
};

/* The terms with a ring or without one, whose compatibility is a scalar or not; has any a ring? */
size_t dcrf_rings_count(const dcrf_densecrf *crf, bool ring, bool scalar);
bool dcrf_rings_any(const dcrf_densecrf *crf);

/* Take memory; false: there is none. */
bool dcrf_rings_init(struct dcrf_rings *rings, const struct dcrf_field *field,
                     dcrf_workspace *workspace);

/* Put what the lattices with a ring, of which there are some, make of the first floats of the rows
 * of q into the message; can that be q itself? */
void dcrf_rings_filter(struct dcrf_rings *rings, size_t floats, float *message);
bool dcrf_rings_in_place(const struct dcrf_rings *rings);

/* message += mu filtered, for some rows and the labels at .. at + width - 1, which `filtered` holds
 * in rows of `step` floats. */
void dcrf_densecrf_add_message(const struct dcrf_field *field,
                               const struct dcrf_densecrf_term *term, const float *filtered,
                               size_t step, size_t at, size_t width, float *message, size_t rows);

/* ---- device.c ------------------------------------------------------------------------------- */

/* Put a model without kernels on the device of a workspace, if that has one which can have it. */
dcrf_status dcrf_densecrf_move_to_device(dcrf_densecrf *crf, const dcrf_workspace *workspace,
                                         dcrf_error *error);

/* Make a kernel on the model's device. What that cannot have is DCRF_ERROR_UNSUPPORTED. */
dcrf_status dcrf_densecrf_build_on_device(const dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                                          const dcrf_kernel *kernel,
                                          dcrf_densecrf_normalization normalization,
                                          dcrf_error *error);

/* Make all kernels here and stay. */
dcrf_status dcrf_densecrf_move_to_host(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                       dcrf_error *error);

/* Tell the device of unary energies, in the order of the places or as planes (order NULL), and of
 * these kernels and their compatibilities. */
dcrf_status dcrf_densecrf_unary_on_device(const dcrf_densecrf *crf, const float *unary,
                                          bool is_ordered, dcrf_error *error);
dcrf_status dcrf_densecrf_kernels_on_device(const dcrf_densecrf *crf,
                                            const struct dcrf_densecrf_term *terms, size_t count,
                                            dcrf_error *error);

/* Updates of `from` (NULL: of softmax(-unary)) on the device. */
dcrf_status dcrf_densecrf_run_on_device(const dcrf_densecrf *crf, const float *from, size_t updates,
                                        float *q, dcrf_progress_callback progress,
                                        void *progress_user, dcrf_error *error);

/* ---- inside spread.c and update.c ----------------------------------------------------------- */

/* The floats of the block of labels that begins at `at`, of so many, and where its rows are. */
static inline size_t dcrf_spread_block_width(size_t floats, size_t at) {
    return floats - at < DCRF_DSP_WIDTH ? floats - at : DCRF_DSP_WIDTH;
}

static inline float *dcrf_spread_block(const struct dcrf_spread *spread, size_t term, float *rows,
                                       size_t at) {
    return rows + dcrf_lattice_rows(dcrf_densecrf_lattice(&spread->crf->terms[term])) * at;
}

#endif
