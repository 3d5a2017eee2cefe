/* The seam: what algorithms (round/, solver/) ask of the place where blocks of numbers are.
 *
 * A backend fills one table: the CPU's is dcrf_backend_cpu (backend/cpu/), that of a GPU comes from
 * a library of its own (libdcrf-cuda). A device makes operators, which are dcrf_operators with
 * methods of its own: they take and give arrays in the host's memory as all operators do. The steps
 * of mean field, QP, the LP, the potential flow and the moves leave their blocks where they are;
 * loops, damping, schedules and stops are the algorithms'.
 *
 * Nothing of libdcrf is called from a device's library: it needs the headers only. An object of the
 * table belongs to one thread at a time. */
#ifndef DCRF_BACKEND_BACKEND_H
#define DCRF_BACKEND_BACKEND_H

#include "backend/dual_space.h"
#include "core/interrupt.h"
#include "dsp/dsp.h"
#include "filter/operator.h"
#include "model/model.h"

#include <dcrf/densecrf.h>
#include <dcrf/device.h>
#include <dcrf/unary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of this file and of struct dcrf_operator and its methods. */
#define DCRF_BACKEND_VERSION 19u

/* Marginals of more labels are not on a device yet. */
#define DCRF_BACKEND_MOST_LABELS 512

/* A device that was opened, and what iterates on it: mean field and QP, the LP, the
 * potential flow, and the moves. */
struct dcrf_coupling;
typedef struct dcrf_backend_device dcrf_backend_device;
typedef struct dcrf_backend_iterate dcrf_backend_iterate;
typedef struct dcrf_backend_lp dcrf_backend_lp;
typedef struct dcrf_backend_flow dcrf_backend_flow;
typedef struct dcrf_backend_moves dcrf_backend_moves;

/* Kernels that share a compatibility (energy/coupling.h). With S = sum_m w_m (K_m - diag) y over
 * them, the field of y is S where there is no matrix, which means Potts and one group only;
 * otherwise it is the sum of S mu over the groups. */
struct dcrf_backend_group {
    size_t kernel_count;
    dcrf_operator *const *operators; /* of the same device; they outlive the object */
    const double *weights;
    const float *diagonal;      /* sum of w_m diag(K_m), one per variable; NULL: it stays in */
    const float *compatibility; /* mu, labels x labels, symmetric; or NULL */
};

/* A model as all methods take it. Arrays are the host's; they need not outlive the call, but for
 * plan, workspace and coupling, which outlive the object. */
struct dcrf_backend_model {
    const dcrf_plan *plan; /* what the rest describes, and who works, for the CPU's backend */
    dcrf_workspace *workspace;
    const struct dcrf_coupling *coupling; /* likewise; NULL for the LP and the flow */
    size_t variables, labels, stride;
    const float *unary;
    size_t group_count; /* the LP and the flow have one, of all kernels, without a diagonal */
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

/* The sums of an update: those of dsp/dsp.h, and the expected cost of the cliques before it. */
enum { DCRF_BACKEND_CLIQUE_COST = DCRF_SOFTMAX_SUMS, DCRF_BACKEND_UPDATE_SUMS };

/* The sums of a point of QP, for all of f and L of qp/qp.c. */
enum { DCRF_BACKEND_QP_OBJECTIVE, DCRF_BACKEND_QP_LINEAR, DCRF_BACKEND_QP_SUMS };

/* What marginals are made for, so that memory is taken for no more. */
enum dcrf_backend_use {
    DCRF_BACKEND_FOR_MEAN_FIELD,        /* damping 0, coldness 1 */
    DCRF_BACKEND_FOR_DAMPED_MEAN_FIELD, /* coldness 1 */
    DCRF_BACKEND_FOR_ANNEALING,         /* damping 0 */
    DCRF_BACKEND_FOR_QP
};

/* Marginals, and the model that they are of. */
struct dcrf_backend_iterate_methods {
    dcrf_status (*make)(dcrf_backend_iterate **iterate, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, enum dcrf_backend_use use,
                        dcrf_error *error);
    void (*free)(dcrf_backend_iterate *iterate);
    /* The marginals, a block with the model's stride: where they are (NULL: the host cannot read
     * that memory), or copied; and the labels of the largest ones, the first of equals. */
    const float *(*view)(const dcrf_backend_iterate *iterate);
    dcrf_status (*read)(dcrf_backend_iterate *iterate, float *block, dcrf_error *error);
    dcrf_status (*labels)(dcrf_backend_iterate *iterate, uint16_t *labels, dcrf_error *error);

    /* Begin from q, or from softmax(-coldness unary) (NULL). *entropy: sum of q ln q. */
    dcrf_status (*mean_field_start)(dcrf_backend_iterate *iterate, const float *q, float coldness,
                                    double *entropy, dcrf_error *error);
    dcrf_status (*mean_field_step)(dcrf_backend_iterate *iterate,
                                   const struct dcrf_backend_update *how, double *sums,
                                   dcrf_error *error);

    /* Begin from y, or from the minimum of the unaries (NULL), with the best z; and find the
     * vertex there. */
    dcrf_status (*qp_start)(dcrf_backend_iterate *iterate, const float *y, double *sums,
                            dcrf_error *error);
    /* Q of the way to the vertex. */
    dcrf_status (*qp_bend)(dcrf_backend_iterate *iterate, double *quadratic, dcrf_error *error);
    /* Take a step of that way, and find the vertex there. */
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

/* What a step makes of the point of z (lp/lp_huber.c): the average and the best point of the
 * dual, y, and the next z. */
struct dcrf_backend_advance {
    double average_weight; /* average += average_weight (current - average) */
    bool has_average;      /* best moves towards current, and then towards the average */
    struct dcrf_roundings roundings[DCRF_BACKEND_DUALS]; /* of the average: after it has moved */
    double epsilon;
    float beta;         /* 0 is taken instead where uphill > 0 */
    size_t inner_steps; /* on the majorant (backend/cpu/lp_majorant.c), after that of y */
};

enum { DCRF_BACKEND_TO_CURRENT, DCRF_BACKEND_TO_AVERAGE, DCRF_BACKEND_TARGETS };

struct dcrf_backend_advanced {
    /* best += weights[t] (target - best): up to where the bound falls, in steps of 1 / 128. The
     * slope of the bound along the way has that of the roundings' errors in it. */
    double weights[DCRF_BACKEND_TARGETS];
    /* The bound of best afterwards; unspecified where the weight is 0. */
    double bounds[DCRF_BACKEND_TARGETS];
    double objective; /* sum z (phi - current) */
    double uphill;    /* sum metric <z - y, y - previous> */
    /* With inner steps: by how much the majorant was below its value at z, before and after the
     * last but one of them. */
    double decrease[2];
};

/* The steps of the LP, each a few passes over the backend's blocks; sums are in double, of any
 * order, but always the same one. A point of the dual is A alpha + v. A bound on the rounding error
 * is subtracted from all bounds (backend/dual_space.h). */
struct dcrf_backend_lp_methods {
    /* The space outlives the LP, and is measured before the first of the steps. */
    dcrf_status (*make)(dcrf_backend_lp **lp, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, const struct dcrf_dual_space *space,
                        dcrf_error *error);
    void (*free)(dcrf_backend_lp *lp);

    /* Begin at y, or at the labelling (y = NULL), with the metric of the steps, one per variable,
     * which outlives the LP, and the zero point for the average. */
    dcrf_status (*start)(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                         const float *metric, dcrf_error *error);
    dcrf_status (*restart)(dcrf_backend_lp *lp, dcrf_error *error); /* z = y */
    /* Marginals, a block with the model's stride: where y is, until it moves (NULL: the host cannot
     * read that memory), or copied; and the labels of the largest ones of y, the first of equals.
     */
    const float *(*view)(const dcrf_backend_lp *lp);
    dcrf_status (*read)(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, float *block,
                        dcrf_error *error);
    dcrf_status (*labels)(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error);
    /* A alpha and v of best, likewise; v is not there without cliques. */
    bool (*view_best)(const dcrf_backend_lp *lp, double **pairwise, double **clique);
    dcrf_status (*read_best)(dcrf_backend_lp *lp, double *pairwise, double *clique,
                             dcrf_error *error);
    /* Best becomes the zero point, with these roundings; and what it proves. */
    dcrf_status (*reset_best)(dcrf_backend_lp *lp, struct dcrf_roundings roundings, double *bound,
                              dcrf_error *error);
    /* Best has this A alpha from now on; its v stays. */
    dcrf_status (*write_best)(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error);

    /* current = A alpha of z. Labels whose entries are all at most `threshold` are dead: their
     * alpha is zero. DCRF_STOP_CANCELLED where it was interrupted (NULL: never), and there is no
     * point. */
    dcrf_status (*find_point)(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                              double threshold, const struct dcrf_interrupt *interrupt,
                              dcrf_error *error);
    /* v of current = the projection of -stiffness / epsilon z (backend/cpu/clique_dual.c). */
    dcrf_status (*find_cliques)(dcrf_backend_lp *lp, double epsilon, dcrf_error *error);
    /* The average and best move; previous = y, y = P(z + tau (current - phi)), tau = epsilon /
     * metric, z = y + beta (y - previous), clipped to [0, 1]. */
    dcrf_status (*advance)(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                           struct dcrf_backend_advanced *done, dcrf_error *error);
    /* After it: what the labels of y cost in unaries, and in pairs of all kernels. NULL: there is
     * no shorter way than from the labels. */
    dcrf_status (*energy)(dcrf_backend_lp *lp, double *unary, double *pairwise, dcrf_error *error);
};

/* ---- the potential flow --------------------------------------------------------------------- */

/* The conjugate gradients of lp/potential_flow.c. */
struct dcrf_backend_flow_methods {
    /* At u = 0; with D and the preconditioner, one float per variable. The model's cliques do not
     * matter. `u` is a block of the host's with the model's stride, which `read` fills and in which
     * the CPU works. It outlives the flow, as do row_sums and metric. */
    dcrf_status (*make)(dcrf_backend_flow **flow, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, const float *row_sums,
                        const float *metric, float *u, dcrf_error *error);
    void (*free)(dcrf_backend_flow *flow);
    /* So many iterations, or fewer where it is interrupted (NULL: never). *residual: the square of
     * the preconditioned residual, of all labels; *estimate: the bound that the recursion promises.
     */
    dcrf_status (*iterate)(dcrf_backend_flow *flow, size_t iterations,
                           const struct dcrf_interrupt *interrupt, double *residual,
                           double *estimate, dcrf_error *error);
    /* u, and for each label its smallest value and what brings its spread down to 1, as of the last
     * call of iterate. */
    dcrf_status (*read)(dcrf_backend_flow *flow, double *low, double *scale, dcrf_error *error);
};

/* ---- moves ---------------------------------------------------------------------------------- */

/* The moves of round/polish.c: two labellings, the current one and the trial, with their fields. A
 * unit is a variable, or a clique. */
struct dcrf_backend_moves_methods {
    dcrf_status (*make)(dcrf_backend_moves **moves, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, dcrf_error *error);
    void (*free)(dcrf_backend_moves *moves);
    /* The current labelling, to there with its energy and back. */
    dcrf_status (*load)(dcrf_backend_moves *moves, const uint16_t *labels, double *energy,
                        dcrf_error *error);
    dcrf_status (*read)(dcrf_backend_moves *moves, uint16_t *labels, dcrf_error *error);
    /* The tables U and T of round/merge.c, labels x labels, and how many variables have a label:
     * of a model whose kernels are all Potts, with at most 256 labels. */
    dcrf_status (*tables)(dcrf_backend_moves *moves, double *unary, double *mass, size_t *sizes,
                          dcrf_error *error);
    /* The trial becomes the current labelling with labels replaced: map[label]. */
    dcrf_status (*relabel)(dcrf_backend_moves *moves, const uint16_t *map, dcrf_error *error);
    /* What every unit gains by changing alone, and to which label (round/moves.c). */
    dcrf_status (*find_gains)(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);
    /* The trial becomes the current labelling with the units changed that gain and for which
     * dcrf_backend_scatter(unit + salt) & mask is 0; or with the one that gains most (the first of
     * equals). Their gains were found before. */
    dcrf_status (*change)(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt, uint32_t mask,
                          size_t *changed, dcrf_error *error);
    dcrf_status (*change_best)(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);
    /* The energy of the trial, with its field; and have the trial for the current one. */
    dcrf_status (*evaluate)(dcrf_backend_moves *moves, double *energy, dcrf_error *error);
    void (*accept)(dcrf_backend_moves *moves);
};

#ifdef __CUDACC__
#define DCRF_BACKEND_HOST_AND_DEVICE __host__ __device__
#else
#define DCRF_BACKEND_HOST_AND_DEVICE
#endif

/* A number of 32 bits that looks random: the finalizer of splitmix64. */
DCRF_BACKEND_HOST_AND_DEVICE static inline uint32_t dcrf_backend_scatter(uint64_t value) {
    value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(value >> 32);
}

/* ---- arrays of the caller's ------------------------------------------------------------------ */

/* Memory on a device for an array that the caller keeps. */
typedef struct dcrf_backend_memory dcrf_backend_memory;

/* Mean field from arrays to arrays, of pictures over the same grid. Each has a view of every kind;
 * they are of the host's memory or of the device's, all checked, and those of the host's have no
 * gaps. */
struct dcrf_backend_run {
    const dcrf_grid *grid;
    size_t pictures;
    size_t variables, labels, stride; /* variables: of one picture; stride: of rows inside */
    const dcrf_view *unary;           /* one channel per label */
    dcrf_unary_kind kind;             /* what its numbers are; not DCRF_UNARY_AUTO */
    size_t kernel_count;
    dcrf_operator *const *operators; /* of the same device and of all pictures */
    const double *weights;
    size_t iterations;
    const dcrf_view *marginals;  /* floats, one channel per label; NULL: not wanted */
    const dcrf_view *labels_out; /* DCRF_U8, DCRF_U16 or DCRF_I32, one channel; likewise */
};

struct dcrf_backend_arrays_methods {
    /* The device whose memory this is; SIZE_MAX: it is the host's. */
    dcrf_status (*find)(const void *data, size_t *index, dcrf_error *error);
    /* What is asked of the device from now on waits for what is in a stream of the caller's now. */
    dcrf_status (*wait_for)(dcrf_backend_device *device, void *stream, dcrf_error *error);
    /* All work of the device goes into a stream of the caller's, until it is closed. */
    void (*use_stream)(dcrf_backend_device *device, void *stream);
    /* The lattice of rows of features that are on the device, as many in each picture, normalized
     * symmetrically, or neither normalized nor calibrated. If it is not waiting, the host waits for
     * nothing: there is room for as many vertices as there could be, and features that no lattice
     * can have give weights that are not numbers. */
    dcrf_status (*lattice_of_rows)(dcrf_operator **op, dcrf_backend_device *device,
                                   const float *rows, size_t variables, size_t dimension,
                                   size_t pictures, bool is_symmetric, bool is_waiting,
                                   dcrf_error *error);
    /* The device need not outlive it, and any thread may free it. */
    dcrf_status (*memory_new)(dcrf_backend_memory **memory, void **data,
                              dcrf_backend_device *device, size_t bytes, dcrf_error *error);
    void (*memory_free)(dcrf_backend_memory *memory);
    /* Between the host and the device, either way; comes back when it is done. */
    dcrf_status (*copy)(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                        dcrf_error *error);
    /* Comes back when the results are there. Where a number of the unary cannot be what it should,
     * *wrong is the first (picture * variables + variable) * labels + label of such a number, and
     * outputs are unspecified; otherwise SIZE_MAX. */
    dcrf_status (*mean_field)(dcrf_backend_device *device, const struct dcrf_backend_run *run,
                              size_t *wrong, dcrf_error *error);
};

/* ---- the compatible mean field -------------------------------------------------------------- */

typedef struct dcrf_backend_compat dcrf_backend_compat;

/* One number per variable and label. Places are the variables in some order; that of label i at
 * place p is numbers[(p / lanes * labels + i) * lanes + p % lanes]. */
struct dcrf_backend_places {
    const float *numbers;
    size_t lanes;          /* all variables: planes */
    const uint32_t *order; /* the variable of each place; NULL: places are variables */
};

/* Arrays are planes of the host's: label i of variable a at i * variables + a. */
struct dcrf_backend_compat_run {
    const float *from; /* NULL: softmax(-unary) */
    size_t updates;
    float *to; /* may be `from`; not written where the run fails */
    /* Called after each update; other than 0 ends the run with DCRF_STOP_CANCELLED, and the result
     * so far. May be NULL. */
    int (*after)(void *user, size_t updates);
    void *user;
};

/* The model of dcrf/densecrf.h, whose message is the field of groups. It holds its device. */
struct dcrf_backend_compat_methods {
    /* The lattice one way, as dcrf/densecrf.h has it, of features in single precision;
     * `has_origin`: the simplex of a feature vector of zeros is there too, whatever is in it. A
     * lattice that cannot be there is DCRF_ERROR_UNSUPPORTED. */
    dcrf_status (*operator_new)(dcrf_operator **op, dcrf_backend_device *device,
                                const struct dcrf_features *features, bool has_origin,
                                dcrf_densecrf_normalization normalization, dcrf_error *error);
    /* Without kernels and with unary energies of zero. */
    dcrf_status (*make)(dcrf_backend_compat **compat, dcrf_backend_device *device, size_t variables,
                        size_t labels, dcrf_error *error);
    void (*free)(dcrf_backend_compat *compat);
    /* Whatever fails leaves the model as it was. Energies beyond +-`largest` are clipped; those
     * that are not finite are DCRF_ERROR_NOT_FINITE. */
    dcrf_status (*set_unary)(dcrf_backend_compat *compat, const struct dcrf_backend_places *unary,
                             float largest, dcrf_error *error);
    dcrf_status (*get_unary)(dcrf_backend_compat *compat, float *planes, dcrf_error *error);
    /* Groups of operators from operator_new, which outlive the model or the next call; they have no
     * diagonals. The first may be empty. */
    dcrf_status (*set_kernels)(dcrf_backend_compat *compat, const struct dcrf_backend_group *groups,
                               size_t count, dcrf_error *error);
    /* These two may be called by several threads, and take turns. Numbers of `from` that are not
     * finite are DCRF_ERROR_NOT_FINITE. */
    dcrf_status (*run)(dcrf_backend_compat *compat, const struct dcrf_backend_compat_run *run,
                       dcrf_error *error);
    dcrf_status (*divergence)(dcrf_backend_compat *compat, const float *q, double *divergence,
                              dcrf_error *error);
};

/* ---- the table ------------------------------------------------------------------------------ */

struct dcrf_backend {
    unsigned version; /* DCRF_BACKEND_VERSION when the library was built */

    dcrf_status (*count)(size_t *count, dcrf_error *error);
    dcrf_status (*describe)(size_t index, dcrf_device_info *info, dcrf_error *error);
    dcrf_status (*open)(dcrf_backend_device **device, size_t index, dcrf_error *error);
    void (*close)(dcrf_backend_device *device);

    /* The operator of checked features, with its normalization or calibration, which each picture
     * has of its own. `kind` is not DCRF_OPERATOR_FAST, and of several pictures not
     * DCRF_OPERATOR_EXACT. The device outlives it. */
    dcrf_status (*operator_new)(dcrf_operator **op, dcrf_backend_device *device,
                                const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_error *error);

    /* out = sum of factor K in over operators of one device: the block goes there once and comes
     * back once. */
    dcrf_status (*sum)(dcrf_operator *const *operators, const float *factors, size_t count,
                       const float *in, float *out, size_t channels, size_t stride,
                       dcrf_error *error);

    /* sums[k] = sum_ab (K_k)_ab [x_a != x_b] for operators of one device. Of the labels those that
     * occur have the places 0 .. place_count - 1; place_of has an entry for each label. */
    dcrf_status (*disagreements)(dcrf_operator *const *operators, size_t count,
                                 const uint16_t *labels, const uint16_t *place_of,
                                 size_t label_count, size_t place_count, double *sums,
                                 dcrf_error *error);

    const struct dcrf_backend_iterate_methods *iterate;
    const struct dcrf_backend_lp_methods *lp;
    const struct dcrf_backend_flow_methods *flow;
    const struct dcrf_backend_moves_methods *moves;
    const struct dcrf_backend_arrays_methods *arrays;
    const struct dcrf_backend_compat_methods *compat;
};

/* The CPU: no devices, operators of filter/ (so no `operator_new`), and no `arrays`, `compat` yet.
 */
extern const struct dcrf_backend dcrf_backend_cpu;

/* What the device's library exports, under this name. */
typedef const struct dcrf_backend *(*dcrf_backend_entry)(void);
#define DCRF_BACKEND_ENTRY "dcrf_backend_cuda"

#ifdef __cplusplus
}
#endif
#endif
