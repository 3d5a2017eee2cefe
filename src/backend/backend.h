/* The backend interface: the operations that the algorithms (round/, solver/) need on blocks of
 * numbers, wherever these are stored.
 *
 * Each backend fills in one table: the CPU's is dcrf_backend_cpu (backend/cpu/); the GPU's comes
 * from a separate library (libdcrf-cuda). A device creates dcrf_operators with its own methods;
 * like all operators, they read and write arrays in host memory. The steps of mean field, QP, the
 * LP, the potential flow and the moves keep their blocks in the backend's memory; loops, damping,
 * schedules and stopping rules belong to the algorithms.
 *
 * A device library calls nothing in libdcrf: it needs only the headers. An object made through the
 * table may be used by only one thread at a time. */
#ifndef DCRF_BACKEND_BACKEND_H
#define DCRF_BACKEND_BACKEND_H

#include "backend/dual_space.h"
#include "core/interrupt.h"
#include "dsp/dsp.h"
#include "filter/operator.h"
#include "model/cuts.h"
#include "model/model.h"

#include <dcrf/densecrf.h>
#include <dcrf/device.h>
#include <dcrf/unary.h>
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increment with every change to this file or to filter/operator.h. */
#define DCRF_BACKEND_VERSION 24u

/* The most labels whose marginals a device can hold so far. */
#define DCRF_BACKEND_MOST_LABELS 512

/* An open device, and the states of the algorithms that run on it: mean field and QP, the LP, the
 * potential flow, and the moves. */
struct dcrf_coupling;
typedef struct dcrf_backend_device dcrf_backend_device;
typedef struct dcrf_backend_iterate dcrf_backend_iterate;
typedef struct dcrf_backend_lp dcrf_backend_lp;
typedef struct dcrf_backend_flow dcrf_backend_flow;
typedef struct dcrf_backend_moves dcrf_backend_moves;

/* Kernels that share a compatibility (energy/coupling.h). With S = sum_m w_m (K_m - diag) y over
 * the group, the field of y is S if there is no matrix (Potts, with a single group); otherwise it
 * is the sum of S mu over the groups. */
struct dcrf_backend_group {
    size_t kernel_count;
    dcrf_operator *const *operators; /* on the same device; must outlive the object */
    const double *weights;
    const float *diagonal;        /* sum of w_m diag(K_m), one per variable; NULL: not subtracted */
    const float *compatibility;   /* mu, labels x labels, symmetric; or NULL */
    const struct dcrf_cuts *cuts; /* whose sum mu is (model/cuts.h), or NULL */
};

/* The model, in the form that all methods take. Arrays are in host memory and need not outlive the
 * call; plan, workspace and coupling must outlive the object. */
struct dcrf_backend_model {
    const dcrf_plan *plan; /* for the CPU backend, as is the workspace */
    dcrf_workspace *workspace;
    const struct dcrf_coupling *coupling; /* for the CPU backend; NULL for the LP and the flow */
    size_t variables, labels, stride;
    const float *unary;
    size_t group_count; /* for the LP and the flow: one group of all kernels, without a diagonal */
    const struct dcrf_backend_group *groups;
    float same_label_factor, all_factor; /* from the field to Psi y: energy/coupling.h */
    const struct dcrf_cliques *cliques;  /* NULL: none */
};

/* ---- mean field and QP ---------------------------------------------------------------------- */

/* How an update of mean field differs from softmax(-unary - 2 Psi q). */
struct dcrf_backend_update {
    float damping;  /* of the logits */
    float coldness; /* the logits are multiplied by it: 1 / temperature */
};

/* The sums of an update: those in dsp/dsp.h, and the expected cost of the cliques before the
 * update. */
enum { DCRF_BACKEND_CLIQUE_COST = DCRF_SOFTMAX_SUMS, DCRF_BACKEND_UPDATE_SUMS };

/* The sums at a QP point: f and L of qp/qp.c. */
enum { DCRF_BACKEND_QP_OBJECTIVE, DCRF_BACKEND_QP_LINEAR, DCRF_BACKEND_QP_SUMS };

/* What the marginals are used for, so that no unneeded memory is allocated. */
enum dcrf_backend_use {
    DCRF_BACKEND_FOR_MEAN_FIELD, /* coldness 1 */
    DCRF_BACKEND_FOR_ANNEALING,  /* damping 0 */
    DCRF_BACKEND_FOR_QP
};

/* Pictures over the same grid, as the caller's arrays: one view of each kind per picture, in memory
 * that the backend can read or copy (backend/views.h). */
struct dcrf_backend_pictures {
    dcrf_workspace *workspace; /* for the CPU backend */
    const dcrf_grid *grid;
    size_t count;                     /* 1, unless the backend takes several */
    size_t variables, labels, stride; /* variables: per picture; stride: of internal rows */
    const dcrf_view *unary;           /* one channel per label */
    dcrf_unary_kind kind;             /* what its numbers are; not DCRF_UNARY_AUTO */
    size_t kernel_count;
    dcrf_operator *const *operators; /* of the same backend, each for all pictures */
    const double *weights;
    const dcrf_output *marginals;  /* floats, one channel per label; NULL: not wanted */
    const dcrf_output *labels_out; /* DCRF_U8, DCRF_U16 or DCRF_I32; NULL: not wanted */
};

/* Marginals, and their model. */
struct dcrf_backend_iterate_methods {
    dcrf_status (*make)(dcrf_backend_iterate **iterate, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, enum dcrf_backend_use use,
                        dcrf_error *error);
    void (*free)(dcrf_backend_iterate *iterate);
    /* The marginals, a block with the model's stride: in place (NULL: the host cannot read that
     * memory), or copied; and the labels with the largest marginals, the first on a tie. */
    const float *(*view)(const dcrf_backend_iterate *iterate);
    dcrf_status (*read)(dcrf_backend_iterate *iterate, float *block, dcrf_error *error);
    dcrf_status (*labels)(dcrf_backend_iterate *iterate, uint16_t *labels, dcrf_error *error);

    /* Start from q, or, if NULL, from softmax(-coldness unary). *entropy: sum of q ln q. Where
     * entropy or sums are NULL, the host need not wait for the result. */
    dcrf_status (*mean_field_start)(dcrf_backend_iterate *iterate, const float *q, float coldness,
                                    double *entropy, dcrf_error *error);
    dcrf_status (*mean_field_step)(dcrf_backend_iterate *iterate,
                                   const struct dcrf_backend_update *how, double *sums,
                                   dcrf_error *error);

    /* For mean field of the caller's arrays, with Potts kernels and without damping; arrays and
     * operators must outlive the iterate. Invalid unaries are found here or by `write`. */
    dcrf_status (*make_of_pictures)(dcrf_backend_iterate **iterate, dcrf_backend_device *device,
                                    const struct dcrf_backend_pictures *pictures,
                                    dcrf_error *error);
    bool takes_several; /* pictures at once */
    /* Write the results into those arrays; returns when they are complete. If a unary is invalid,
     * *wrong is the smallest (picture * variables + variable) * labels + label of such a number,
     * and nothing is written, since results may replace unaries; otherwise SIZE_MAX. */
    dcrf_status (*write)(dcrf_backend_iterate *iterate, size_t *wrong, dcrf_error *error);

    /* Start from y, or, if NULL, from the minimum of the unaries, with the best z; and find the
     * vertex there. */
    dcrf_status (*qp_start)(dcrf_backend_iterate *iterate, const float *y, double *sums,
                            dcrf_error *error);
    /* The quadratic term Q along the direction to the vertex. */
    dcrf_status (*qp_bend)(dcrf_backend_iterate *iterate, double *quadratic, dcrf_error *error);
    /* Take a step in that direction, and find the vertex at the new point. */
    dcrf_status (*qp_move)(dcrf_backend_iterate *iterate, double step, double *sums,
                           dcrf_error *error);
};

/* ---- the LP --------------------------------------------------------------------------------- */

/* The blocks of lp/lp_huber.c: points of the dual (A alpha and, where there are cliques, v, in
 * double) and marginals. */
enum dcrf_backend_dual {
    DCRF_BACKEND_CURRENT, /* of z */
    DCRF_BACKEND_AVERAGE,
    DCRF_BACKEND_BEST,
    DCRF_BACKEND_DUALS
};
enum dcrf_backend_marginals { DCRF_BACKEND_Y, DCRF_BACKEND_Z };

/* The momentum of an accelerated method, from 1 on (Beck and Teboulle 2009). */
static inline double dcrf_next_momentum(double momentum) {
    return (1 + sqrt(1 + 4 * momentum * momentum)) / 2;
}

/* A step from the dual point of z (lp/lp_huber.c): updates the average and the best dual point, y,
 * and z. */
struct dcrf_backend_advance {
    double average_weight; /* average += average_weight (current - average) */
    bool has_average;      /* best moves towards current, and then towards the average */
    struct dcrf_roundings roundings[DCRF_BACKEND_DUALS]; /* the average's: after it has moved */
    double epsilon;
    float beta;         /* replaced by 0 if uphill > 0 */
    size_t inner_steps; /* on the majorant (backend/cpu/lp_majorant.c), after the step of y */
};

enum { DCRF_BACKEND_TO_CURRENT, DCRF_BACKEND_TO_AVERAGE, DCRF_BACKEND_TARGETS };

struct dcrf_backend_advanced {
    /* best += weights[t] (target - best): up to the point where the bound starts to fall, in steps
     * of 1 / 128. The slope of the bound includes that of the subtracted rounding error. */
    double weights[DCRF_BACKEND_TARGETS];
    /* The bound of best afterwards; unspecified if the weight is 0. */
    double bounds[DCRF_BACKEND_TARGETS];
    double objective; /* sum z (phi - current) */
    double uphill;    /* sum metric <z - y, y - previous> */
    /* With inner steps: how far the majorant was below its value at z, before and after the last
     * but one. */
    double decrease[2];
};

struct dcrf_backend_proximal_methods;
struct dcrf_dual;      /* backend/dual.h */
struct dcrf_marginals; /* energy/labelling.h */

/* The steps of the LP, each a few passes over the backend's blocks; sums are in double, in any
 * order, as long as it is always the same. A point of the dual is A alpha + v. A bound on the
 * rounding error is subtracted from all bounds (backend/dual_space.h). */
struct dcrf_backend_lp_methods {
    /* The space must outlive the LP, and must be measured before the first step. */
    dcrf_status (*make)(dcrf_backend_lp **lp, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, const struct dcrf_dual_space *space,
                        dcrf_error *error);
    void (*free)(dcrf_backend_lp *lp);

    /* Start at y, or, if y is NULL, at the labelling; the average is the zero point. `metric` is
     * the metric of the steps, one per variable; it must outlive the LP. */
    dcrf_status (*start)(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                         const float *metric, dcrf_error *error);
    dcrf_status (*restart)(dcrf_backend_lp *lp, dcrf_error *error); /* z = y */
    /* Marginals: y in place, perhaps without columns for labels whose y is zero, valid until it
     * moves (false: the host cannot read that memory); copied, a block with the model's stride; and
     * the labels with the largest y, the first on a tie. */
    bool (*view)(const dcrf_backend_lp *lp, struct dcrf_marginals *rows);
    dcrf_status (*read)(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, float *block,
                        dcrf_error *error);
    dcrf_status (*labels)(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error);
    /* A alpha and v of best; there is no v without cliques. In place, perhaps with other columns
     * than the model's, and valid until it moves (false: the host cannot read that memory); or
     * copied to the model's rows. */
    bool (*view_best)(const dcrf_backend_lp *lp, struct dcrf_dual *best);
    dcrf_status (*read_best)(dcrf_backend_lp *lp, double *pairwise, double *clique,
                             dcrf_error *error);
    /* Set best to the zero point, with these roundings, and compute its bound. */
    dcrf_status (*reset_best)(dcrf_backend_lp *lp, struct dcrf_roundings roundings, double *bound,
                              dcrf_error *error);
    /* Replace the A alpha of best; its v is kept. */
    dcrf_status (*write_best)(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error);

    /* current = A alpha of z. Labels whose entries are all at most `threshold` are dead: their
     * alpha is zero. Returns DCRF_STOP_CANCELLED, without a point, if interrupted (NULL: never). */
    dcrf_status (*find_point)(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                              double threshold, const struct dcrf_interrupt *interrupt,
                              dcrf_error *error);
    /* v of current = the projection of -stiffness / epsilon z (backend/cpu/clique_dual.c). */
    dcrf_status (*find_cliques)(dcrf_backend_lp *lp, double epsilon, dcrf_error *error);
    /* The average and best move; previous = y, y = P(z + tau (current - phi)), tau = epsilon /
     * metric, z = y + beta (y - previous), clipped to [0, 1]. */
    dcrf_status (*advance)(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                           struct dcrf_backend_advanced *done, dcrf_error *error);
    /* For Potts, after `advance`: the unary cost of the labels of y, and their pairwise cost over
     * all kernels. NULL: no faster than computing them from the labels. */
    dcrf_status (*energy)(dcrf_backend_lp *lp, double *unary, double *pairwise, dcrf_error *error);

    /* Proximal steps (lp/lp_proximal.c): current is the vertex s, average the point that moves, and
     * z is y~. NULL: the backend has only the steps above. */
    const struct dcrf_backend_proximal_methods *proximal;
};

enum {
    DCRF_BACKEND_FW_GAP,
    DCRF_BACKEND_FW_SQUARES,
    DCRF_BACKEND_FW_OBJECTIVE,
    DCRF_BACKEND_FW_SUMS
};

struct dcrf_backend_proximal_methods {
    /* centre = y; and average = the zero point, if wanted. */
    dcrf_status (*begin)(dcrf_backend_lp *lp, bool has_reset, dcrf_error *error);
    /* y or z = P(centre + lambda (average + delta D - phi)) with D = current - average. *slope: the
     * sum of -D times the result; NULL: not wanted. */
    dcrf_status (*project)(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, double lambda,
                           double delta, double *slope, dcrf_error *error);
    /* v of current: the projection of v of average - step z; step 0: the vertex. */
    dcrf_status (*find_cliques)(dcrf_backend_lp *lp, double step, dcrf_error *error);
    /* sum -D z, sum D^2, and sum z (phi - current). */
    dcrf_status (*measure)(dcrf_backend_lp *lp, double *sums, dcrf_error *error);
    /* average += delta D, with these roundings afterwards. If its bound exceeds *bound, best
     * becomes average, and *bound its bound. */
    dcrf_status (*mix)(dcrf_backend_lp *lp, double delta, struct dcrf_roundings roundings,
                       double *bound, dcrf_error *error);
};

/* ---- the potential flow --------------------------------------------------------------------- */

/* The conjugate gradients of lp/potential_flow.c. */
struct dcrf_backend_flow_methods {
    /* Starts at u = 0, with D (row_sums) and the preconditioner (metric), one float per variable.
     * The model's cliques are ignored. `u` is a host block with the model's stride: `read` fills
     * it, and the CPU backend works in it. u, row_sums and metric must outlive the flow. */
    dcrf_status (*make)(dcrf_backend_flow **flow, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, const float *row_sums,
                        const float *metric, float *u, dcrf_error *error);
    void (*free)(dcrf_backend_flow *flow);
    /* Run this many iterations, or fewer if interrupted (NULL: never). *residual: the squared norm
     * of the preconditioned residual over all labels; *estimate: the bound predicted by the
     * recursion. */
    dcrf_status (*iterate)(dcrf_backend_flow *flow, size_t iterations,
                           const struct dcrf_interrupt *interrupt, double *residual,
                           double *estimate, dcrf_error *error);
    /* u, and for each label its smallest value and the factor that reduces its spread to 1, as of
     * the last call of `iterate`. */
    dcrf_status (*read)(dcrf_backend_flow *flow, double *low, double *scale, dcrf_error *error);
};

/* ---- moves ---------------------------------------------------------------------------------- */

/* The moves of round/polish.c: two labellings, the current one and the trial, with their fields. A
 * unit is a variable, or a clique. */
struct dcrf_backend_moves_methods {
    dcrf_status (*make)(dcrf_backend_moves **moves, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, dcrf_error *error);
    void (*free)(dcrf_backend_moves *moves);
    /* Set the current labelling, returning its energy; and read it back. */
    dcrf_status (*load)(dcrf_backend_moves *moves, const uint16_t *labels, double *energy,
                        dcrf_error *error);
    dcrf_status (*read)(dcrf_backend_moves *moves, uint16_t *labels, dcrf_error *error);
    /* The tables U and T of round/merge.c, labels x labels, and the number of variables with each
     * label. Only for models whose kernels are all Potts, with at most 256 labels. */
    dcrf_status (*tables)(dcrf_backend_moves *moves, double *unary, double *mass, size_t *sizes,
                          dcrf_error *error);
    /* The trial becomes the current labelling with each label replaced by map[label]. */
    dcrf_status (*relabel)(dcrf_backend_moves *moves, const uint16_t *map, dcrf_error *error);
    /* The gain of changing each unit alone, and its new label (backend/cpu/moves_gains.c). */
    dcrf_status (*find_gains)(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);
    /* The trial becomes the current labelling, with every unit changed that gains and for which
     * dcrf_backend_scatter(unit + salt) & mask is 0; or with only the unit changed that gains most
     * (the first on a tie). Call find_gains first. */
    dcrf_status (*change)(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt, uint32_t mask,
                          size_t *changed, dcrf_error *error);
    dcrf_status (*change_best)(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);
    /* Compute the energy of the trial and its field; and make the trial the current labelling. */
    dcrf_status (*evaluate)(dcrf_backend_moves *moves, double *energy, dcrf_error *error);
    void (*accept)(dcrf_backend_moves *moves);
};

#ifdef __CUDACC__
#define DCRF_BACKEND_HOST_AND_DEVICE __host__ __device__
#else
#define DCRF_BACKEND_HOST_AND_DEVICE
#endif

/* A 32-bit hash: the finalizer of splitmix64. */
DCRF_BACKEND_HOST_AND_DEVICE static inline uint32_t dcrf_backend_scatter(uint64_t value) {
    value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(value >> 32);
}

/* ---- the caller's arrays --------------------------------------------------------------------- */

/* Memory on a device for an array that the caller keeps. */
typedef struct dcrf_backend_memory dcrf_backend_memory;

struct dcrf_backend_arrays_methods {
    /* The device that owns this memory; SIZE_MAX: host memory. */
    dcrf_status (*find)(const void *data, size_t *index, dcrf_error *error);
    /* Later work on the device waits for everything now queued in the caller's stream. */
    dcrf_status (*wait_for)(dcrf_backend_device *device, void *stream, dcrf_error *error);
    /* Until the device is closed, all its work goes to the caller's stream. */
    void (*use_stream)(dcrf_backend_device *device, void *stream);
    /* The lattice of feature rows on the device, the same number for each picture, normalized
     * symmetrically, or neither normalized nor calibrated. Unless is_waiting, the host never waits:
     * memory is allocated for the largest possible number of vertices, and features that no lattice
     * can represent give NaN weights. */
    dcrf_status (*lattice_of_rows)(dcrf_operator **op, dcrf_backend_device *device,
                                   const float *rows, size_t variables, size_t dimension,
                                   size_t pictures, bool is_symmetric, bool is_waiting,
                                   dcrf_error *error);
    /* The device need not outlive it, and any thread may free it. */
    dcrf_status (*memory_new)(dcrf_backend_memory **memory, void **data,
                              dcrf_backend_device *device, size_t bytes, dcrf_error *error);
    void (*memory_free)(dcrf_backend_memory *memory);
    /* Between host and device, in either direction; returns when the copy is complete. */
    dcrf_status (*copy)(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                        dcrf_error *error);
};

/* ---- the compatible mean field -------------------------------------------------------------- */

typedef struct dcrf_backend_compat dcrf_backend_compat;

/* One number per variable and label. Places are the variables in some order; the number of label i
 * at place p is numbers[(p / lanes * labels + i) * lanes + p % lanes]. */
struct dcrf_backend_places {
    const float *numbers;
    size_t lanes;          /* equal to the number of variables: planes */
    const uint32_t *order; /* the variable of each place; NULL: places are variables */
};

/* Arrays are planes in host memory: label i of variable a at i * variables + a. */
struct dcrf_backend_compat_run {
    const float *from; /* NULL: softmax(-unary) */
    size_t updates;
    float *to; /* may be `from`; not written if the run fails */
    /* Called after each update; a nonzero result ends the run with DCRF_STOP_CANCELLED and the
     * result so far. May be NULL. */
    int (*after)(void *user, size_t updates);
    void *user;
};

/* The model of dcrf/densecrf.h, whose message is the field of its groups. Keeps its device open. */
struct dcrf_backend_compat_methods {
    /* The lattice blurred in one direction, as in dcrf/densecrf.h, for features in single
     * precision; `has_origin`: it always includes the simplex of the zero feature vector.
     * DCRF_ERROR_UNSUPPORTED if the device cannot represent the lattice. */
    dcrf_status (*operator_new)(dcrf_operator **op, dcrf_backend_device *device,
                                const struct dcrf_features *features, bool has_origin,
                                dcrf_densecrf_normalization normalization, dcrf_error *error);
    /* Without kernels and with unary energies of zero. */
    dcrf_status (*make)(dcrf_backend_compat **compat, dcrf_backend_device *device, size_t variables,
                        size_t labels, dcrf_error *error);
    void (*free)(dcrf_backend_compat *compat);
    /* A call that fails leaves the model unchanged. Energies beyond +-`largest` are clipped;
     * non-finite ones are DCRF_ERROR_NOT_FINITE. */
    dcrf_status (*set_unary)(dcrf_backend_compat *compat, const struct dcrf_backend_places *unary,
                             float largest, dcrf_error *error);
    dcrf_status (*get_unary)(dcrf_backend_compat *compat, float *planes, dcrf_error *error);
    /* Groups of operators from operator_new, which must stay alive until the next call or as long
     * as the model; they have no diagonals. The first may be empty. */
    dcrf_status (*set_kernels)(dcrf_backend_compat *compat, const struct dcrf_backend_group *groups,
                               size_t count, dcrf_error *error);
    /* These two may be called from several threads; calls are serialized. Non-finite numbers in
     * `from` are DCRF_ERROR_NOT_FINITE. */
    dcrf_status (*run)(dcrf_backend_compat *compat, const struct dcrf_backend_compat_run *run,
                       dcrf_error *error);
    dcrf_status (*divergence)(dcrf_backend_compat *compat, const float *q, double *divergence,
                              dcrf_error *error);
};

/* ---- the table ------------------------------------------------------------------------------ */

struct dcrf_backend {
    unsigned version; /* DCRF_BACKEND_VERSION of the library's build */

    dcrf_status (*count)(size_t *count, dcrf_error *error);
    dcrf_status (*describe)(size_t index, dcrf_device_info *info, dcrf_error *error);
    dcrf_status (*open)(dcrf_backend_device **device, size_t index, dcrf_error *error);
    void (*close)(dcrf_backend_device *device);

    const struct dcrf_operator_source_methods *operators; /* filter/operator.h */
    const struct dcrf_backend_iterate_methods *iterate;
    const struct dcrf_backend_lp_methods *lp;
    const struct dcrf_backend_flow_methods *flow;
    const struct dcrf_backend_moves_methods *moves;
    const struct dcrf_backend_arrays_methods *arrays;
    const struct dcrf_backend_compat_methods *compat;
};

/* The CPU: no devices, so neither `operators` (they come from filter/) nor `arrays`, and no
 * `compat` yet. */
extern const struct dcrf_backend dcrf_backend_cpu;

/* The function that the device library exports, and its name. */
typedef const struct dcrf_backend *(*dcrf_backend_entry)(void);
#define DCRF_BACKEND_ENTRY "dcrf_backend_cuda"

#ifdef __cplusplus
}
#endif
#endif
