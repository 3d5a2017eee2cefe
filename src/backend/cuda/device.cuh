/* What the files of libdcrf-cuda share: errors, the opened device, memory on it, and operators.
 *
 *   device.cu      devices: which there are, opening one and keeping it
 *   memory.cu      memory on a device, and copies from and to the host
 *   arrays.cu      arrays of the caller's: views of the host's and the device's memory
 *   infer.cu       mean field from arrays of the caller's to arrays of the caller's
 *   operator.cu    making operators, and what all kinds of them share
 *   disagreement.cu  what a labelling costs
 *   lattice.cu     the plan of the permutohedral lattice, by sorting
 *   lattice_codes.cu  its points: codes of vertices, and weights
 *   lattice_normalize.cu  its normalization and calibration
 *   lattice_apply.cu  splat, blur and slice, and the ordered filter
 *   lattice_proof.cu  the diagonal, and everything in double
 *   row_sums.cu    row sums and scales of any operator
 *   ordered.cu     what the ordered filters of lattice and grid share
 *   grid.cu        the separable Gaussian of spatial kernels
 *   exact.cu       the Gaussian sum over all pairs, and exact_*.cu its parts
 *   messages.cu    what the kernels of a model say together
 *   labels.cu      the labels of the largest marginals
 *   cliques.cu     sums over the members of cliques
 *   iterate.cu     marginals and their model: what mean field and QP share
 *   mean_field.cu  mean field
 *   compat.cu      the compatible mean field
 *   qp.cu          the QP relaxation
 *   flow.cu        the potential flow
 *   moves.cu       the moves that polish a labelling: fields, energies, merges
 *   moves_change.cu, moves_cliques.cu  changes of variables and cliques
 *   lp.cu          the LP by Huber continuation
 *   lp_rows.cu, lp_search.cu, lp_cliques.cu  its work on rows, its line search, its cliques
 *
 * All work of a device goes through one stream, so what was asked for first is done first; a call
 * that gives the host something waits for it. Results do not depend on timing: no sum of floats is
 * made by atomics. */
#ifndef DCRF_BACKEND_CUDA_DEVICE_CUH
#define DCRF_BACKEND_CUDA_DEVICE_CUH

#include "backend/backend.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <vector>

/* Most kernels have one thread per item, in blocks of this many. */
#define THREADS 256

static inline unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* dcrf_padded, which is not in this library. */
static inline size_t padded_channels(size_t channels) {
    return channels <= DCRF_NARROW_LANES ? DCRF_NARROW_LANES
                                         : (channels + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
}

#ifdef __CUDACC__
static __device__ inline size_t this_thread() {
    return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}
#endif

/* Write an error as dcrf_fail does, which is not in this library. */
dcrf_status fail(dcrf_error *error, dcrf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* DCRF_OK, or the error that CUDA gave for `what` ("the plan of a lattice"). */
dcrf_status check(cudaError_t result, const char *what, dcrf_error *error);

/* Pinned memory of the host that copies go through: while one half is on its way, the other one is
 * filled or read. */
#define STAGE_BYTES ((size_t)1 << 20)
struct stage {
    char *half[2];
    cudaEvent_t sent[2]; /* after the last copy from or to it */
    unsigned current;
    size_t used; /* of the current half */
};

/* Counted: operators and methods hold the device that they are on. What was dropped is kept for the
 * next one who opens it: streams and pinned memory are slow to make, and freeing pinned memory
 * waits for everything that runs on the device. */
struct dcrf_backend_device {
    size_t index;
    size_t holders;
    cudaStream_t stream; /* its own, or for a time the caller's */
    cudaStream_t own_stream;
    cudaStream_t side; /* for what may run beside, between two events */
    cudaEvent_t forked, joined;
    double *few; /* pinned memory of the host, for a few numbers on their way there */
    struct stage stage;
    int multiprocessors;
    pthread_mutex_t turn; /* see device_turn */
    dcrf_backend_device *next_idle;
};

/* A device has one user at a time, except for operators: a plan may be used with the workspace of
 * another thread while the one that made it is at work. So the operators' methods, copies, and
 * whatever changes or records the stream lock the device. The lock is recursive. */
class device_turn {
  public:
    explicit device_turn(dcrf_backend_device *taken) : device(taken) {
        pthread_mutex_lock(&device->turn);
    }
    ~device_turn() {
        pthread_mutex_unlock(&device->turn);
    }
    device_turn(const device_turn &) = delete;
    device_turn &operator=(const device_turn &) = delete;

  private:
    dcrf_backend_device *device;
};

#define DEVICE_FEW 512

void device_hold(dcrf_backend_device *device);
void device_drop(dcrf_backend_device *device);

/* Make the device current for this thread; every entry from outside begins with it. */
dcrf_status device_enter(const dcrf_backend_device *device, dcrf_error *error);

/* Memory on the device, from its pool; freed in the order of the stream. NULL is fine for free. */
dcrf_status device_take(dcrf_backend_device *device, void **memory, size_t count, size_t bytes,
                        const char *what, dcrf_error *error);
void device_release(dcrf_backend_device *device, void *memory);

template <typename T>
dcrf_status device_array(dcrf_backend_device *device, T **array, size_t count, const char *what,
                         dcrf_error *error) {
    void *memory = nullptr;
    const dcrf_status status = device_take(device, &memory, count, sizeof(T), what, error);
    *array = static_cast<T *>(memory);
    return status;
}

/* What `work` puts into the device's stream goes to the side stream: it may run beside what comes
 * after, until device_join. One at a time. */
template <typename WORK>
dcrf_status device_beside(dcrf_backend_device *device, WORK work, dcrf_error *error) {
    const device_turn turn(device);
    cudaStream_t main = device->stream;
    dcrf_status status = check(cudaEventRecord(device->forked, main), "a fork", error);
    if (status == DCRF_OK)
        status = check(cudaStreamWaitEvent(device->side, device->forked, 0), "a fork", error);
    if (status < 0)
        return status;
    device->stream = device->side;
    status = work();
    device->stream = main;
    return status < 0 ? status
                      : check(cudaEventRecord(device->joined, device->side), "a fork", error);
}

static inline dcrf_status device_join(dcrf_backend_device *device, dcrf_error *error) {
    return check(cudaStreamWaitEvent(device->stream, device->joined, 0), "a fork", error);
}

/* Copy between the host and the device. Both come back when the host's array can be used again, or
 * read; an upload may not have reached the device by then. Copies from and to memory that is not
 * pinned go through the stage: the driver's own way there is one for all threads. */
dcrf_status device_upload(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                          dcrf_error *error);
dcrf_status device_download(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                            dcrf_error *error);
/* Several arrays, in the order of their memory on the device; small ones come together. */
struct download {
    char *to;
    const char *from;
    size_t bytes;
};
dcrf_status device_download_each(dcrf_backend_device *device, const struct download *arrays,
                                 size_t count, dcrf_error *error);

struct ordered_group; /* ordered.cuh */

/* An operator on the device. `apply_on_device` works on arrays of the device and only puts work
 * into the stream; the methods of dcrf_operator move arrays of the host around it. */
struct device_operator {
    dcrf_operator base; /* its scale stays NULL: see `scales`; base.device is `device` */
    dcrf_backend_device *device;
    dcrf_status (*apply_on_device)(struct device_operator *op,
                                   const struct dcrf_application *application, dcrf_error *error);
    /* The ordered filter of some channels, in the same way; NULL: the kind has the line itself. */
    dcrf_status (*ordered_on_device)(struct device_operator *op, const struct ordered_group *group,
                                     dcrf_error *error);
    /* The clipped line, in float and in double (rows of `channels`), in the same way; NULL: the
     * kind has the ordered filter only. */
    dcrf_status (*line_on_device)(struct device_operator *op, const struct dcrf_line *line,
                                  dcrf_error *error);
    dcrf_status (*line_double_on_device)(struct device_operator *op, const struct dcrf_line *line,
                                         double *out, dcrf_error *error);
    /* Rows of `channels` doubles, in the same way. */
    dcrf_status (*apply_double_on_device)(struct device_operator *op, const double *in, double *out,
                                          size_t channels, dcrf_error *error);
    /* The diagonal, in the same way; NULL: by the method of dcrf_operator, through the host. */
    dcrf_status (*diagonal_on_device)(struct device_operator *op, float *out, dcrf_error *error);
    float *scales;   /* on the device: of the symmetric normalization; NULL without it */
    float *in, *out; /* on the device: blocks for arrays of the host */
    size_t block_floats;
};

/* For the methods of an operator: rows of `stride` floats from the host to op->in, room for as many
 * in op->out, and op->out back. */
dcrf_status operator_upload(struct device_operator *op, const float *in, size_t stride,
                            dcrf_error *error);
dcrf_status operator_download(struct device_operator *op, float *out, size_t stride,
                              dcrf_error *error);
/* out = factor K in of host arrays, by apply_on_device; the `apply` of every kind. */
dcrf_status operator_apply_double(const dcrf_operator *op, dcrf_workspace *workspace,
                                  const double *in, double *out, size_t channels,
                                  dcrf_error *error);
dcrf_status operator_apply(const dcrf_operator *op, dcrf_workspace *workspace,
                           const struct dcrf_application *application, dcrf_error *error);
/* sum_ab K_ab [x_a != x_b] of a labelling of the host; the `disagreement` of every kind. */
dcrf_status operator_disagreement(const dcrf_operator *op, dcrf_workspace *workspace,
                                  const uint16_t *labels, bool in_double, double *sum,
                                  dcrf_error *error);
/* The `disagreements` of the table. */
dcrf_status operators_disagreements(dcrf_operator *const *operators, size_t count,
                                    const uint16_t *labels, const uint16_t *place_of,
                                    size_t label_count, size_t place_count, double *sums,
                                    dcrf_error *error);
/* The same for labels that are on the device, not for their places. */
dcrf_status disagreements_there(struct device_operator *const *operators, size_t count,
                                const uint16_t *labels, const uint16_t *place_of,
                                size_t label_count, size_t place_count, double *sums,
                                dcrf_error *error);
/* K 1 in rows of DCRF_NARROW_LANES floats, of which the first counts: on the device, the caller's
 * to release. And op->scales = diag(K 1)^-1/2 from them. */
dcrf_status operator_sum_rows(struct device_operator *op, float **sums, dcrf_error *error);
dcrf_status operator_make_scales(struct device_operator *op, const float *sums, dcrf_error *error);
/* Release what is in struct device_operator, and drop the device. */
void operator_clear(struct device_operator *op);

/* The operators, normalized or calibrated. */
dcrf_status lattice_new(struct device_operator **op, dcrf_backend_device *device,
                        const struct dcrf_features *features, dcrf_normalization normalization,
                        dcrf_error *error);
dcrf_status lattice_new_compatible(struct device_operator **op, dcrf_backend_device *device,
                                   const struct dcrf_features *features, bool has_origin,
                                   dcrf_densecrf_normalization normalization, dcrf_error *error);
/* See the table. */
dcrf_status lattice_of_rows(dcrf_operator **op, dcrf_backend_device *device, const float *rows,
                            size_t variables, size_t dimension, size_t pictures, bool is_symmetric,
                            bool is_waiting, dcrf_error *error);
dcrf_status grid_new(struct device_operator **op, dcrf_backend_device *device,
                     const struct dcrf_features *features, dcrf_normalization normalization,
                     dcrf_error *error);
dcrf_status exact_new(struct device_operator **op, dcrf_backend_device *device,
                      const struct dcrf_features *features, dcrf_normalization normalization,
                      dcrf_error *error);

/* The labels of the largest marginals of a block of the device, the first of equals, to the host.
 */
dcrf_status labels_download(dcrf_backend_device *device, const float *marginals, size_t variables,
                            size_t labels, size_t stride, uint16_t *out, dcrf_error *error);

/* ---- arrays of the caller's ------------------------------------------------------------------ */

/* The device whose memory this is; SIZE_MAX: it is the host's. */
dcrf_status array_find(const void *data, size_t *index, dcrf_error *error);

/* The bytes from the lowest element of a view over a grid to the end of the highest, and how far
 * the lowest is from view->data. */
size_t view_span(const dcrf_view *view, const dcrf_grid *grid, ptrdiff_t *lowest);

/* Views of the elements of arrays of pictures over a grid, for kernels: of the arrays themselves,
 * or of copies of those that are on the host. */
struct views_there {
    dcrf_view *views = nullptr; /* on the device, one per picture */
    char *copies = nullptr;
    std::vector<struct download> arrays; /* those of the host, with their copies */
};
/* With what the arrays hold, or without it. On failure too there may be something to release. */
dcrf_status views_upload(dcrf_backend_device *device, const dcrf_view *views, size_t pictures,
                         const dcrf_grid *grid, bool are_read, struct views_there *there,
                         const char *what, dcrf_error *error);
void views_release(dcrf_backend_device *device, struct views_there *there);

#ifdef __CUDACC__
/* Where the first channel of a variable is, with the variables of pictures one after the other. */
static __device__ inline const char *view_row(const dcrf_view *views, size_t picture_variables,
                                              const dcrf_grid &grid, size_t variable,
                                              dcrf_view &view) {
    uint32_t rest = (uint32_t)variable % (uint32_t)picture_variables;
    view = views[(uint32_t)variable / (uint32_t)picture_variables];
    const uint32_t x = rest % (uint32_t)grid.size[0];
    rest /= (uint32_t)grid.size[0];
    const uint32_t y = rest % (uint32_t)grid.size[1], z = rest / (uint32_t)grid.size[1];
    return static_cast<const char *>(view.data) + (ptrdiff_t)x * view.stride[0] +
           (ptrdiff_t)y * view.stride[1] + (ptrdiff_t)z * view.stride[2];
}

static __device__ inline double view_element(const char *at, dcrf_type type) {
    switch (type) {
    case DCRF_U8:
        return (double)*reinterpret_cast<const uint8_t *>(at);
    case DCRF_U16:
        return (double)*reinterpret_cast<const uint16_t *>(at);
    case DCRF_I16:
        return (double)*reinterpret_cast<const int16_t *>(at);
    case DCRF_I32:
        return (double)*reinterpret_cast<const int32_t *>(at);
    case DCRF_F32:
        return (double)*reinterpret_cast<const float *>(at);
    case DCRF_F16:
        return (double)__half2float(*reinterpret_cast<const __half *>(at));
    case DCRF_BF16:
        return (double)__uint_as_float((uint32_t) * reinterpret_cast<const uint16_t *>(at) << 16);
    default:
        return *reinterpret_cast<const double *>(at);
    }
}
#endif

/* Rows of features as dcrf_features_row gives them, on the device: variables x dimension floats,
 * and so many rows of zeros. */
dcrf_status features_upload(dcrf_backend_device *device, const struct dcrf_features *features,
                            size_t zero_rows, float **rows, dcrf_error *error);

#endif
