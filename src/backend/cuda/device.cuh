/* Declarations shared by all of libdcrf-cuda: errors, devices, device memory, and operators.
 *
 *   device.cu      listing, opening and caching devices
 *   memory.cu      device memory, and copies to and from the host
 *   arrays.cu      the caller's arrays: views of host and device memory
 *   pictures.cu    marginals made of the caller's arrays, and results into them
 *   operator.cu    making operators, and code common to all kinds
 *   disagreement.cu  the pairwise cost of a labelling
 *   lattice.cu     the plan of the permutohedral lattice, by sorting
 *   lattice_codes.cu  its points: vertex codes and weights
 *   lattice_normalize.cu  its normalization and calibration
 *   lattice_apply.cu  splat, blur and slice, and the ordered filter
 *   lattice_proof.cu  the diagonal, and everything in double
 *   row_sums.cu    row sums and scales of any operator
 *   ordered.cu     the part of the ordered filter common to lattice and grid
 *   grid.cu        the separable Gaussian of spatial kernels
 *   exact.cu       the Gaussian sum over all pairs, and exact_*.cu its parts
 *   messages.cu    the combined messages of a model's kernels
 *   labels.cu      the label of the largest marginal of each variable
 *   cuts.cu        distances between labels, cut by cut
 *   cliques.cu     sums over the members of cliques
 *   iterate.cu     marginals and their model, shared by mean field and QP
 *   mean_field.cu  mean field
 *   compat.cu      the compatible mean field
 *   qp.cu          the QP relaxation
 *   flow.cu        the potential flow
 *   moves.cu       local-search moves on a labelling: fields, energies, merges
 *   moves_change.cu, moves_cliques.cu  changes of variables and cliques
 *   lp.cu          the LP by Huber continuation
 *   lp_point.cu, lp_bins.cu  the dual point of its marginals, in float or double
 *   lp_rows.cu, lp_search.cu, lp_cliques.cu  its work on rows, its line search, its cliques
 *   lp_cuts.cu     its columns and steps for distances between labels
 *
 * All work on a device goes through one stream and so runs in the order in which it was submitted;
 * a call that returns data to the host waits for it. Results do not depend on timing: no
 * floating-point sum uses atomics. */
#ifndef DCRF_BACKEND_CUDA_DEVICE_CUH
#define DCRF_BACKEND_CUDA_DEVICE_CUH

#include "backend/backend.h"
#include "core/error.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <vector>

/* Threads per block; most kernels have one thread per item. */
#define THREADS 256

static inline unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* The same as dcrf_padded, which is not part of this library. */
static inline size_t padded_channels(size_t channels) {
    return channels <= DCRF_NARROW_LANES ? DCRF_NARROW_LANES
                                         : (channels + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
}

#ifdef __CUDACC__
static __device__ inline size_t this_thread() {
    return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}
#endif

/* The same as dcrf_fail, which is not part of this library. */
dcrf_status fail(dcrf_error *error, dcrf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* DCRF_OK, or an error that names `what` ("the plan of a lattice") and CUDA's message. */
dcrf_status check(cudaError_t result, const char *what, dcrf_error *error);

/* A pinned host buffer for copies: while one half is being transferred, the other is filled or
 * read. */
#define STAGING_BYTES ((size_t)1 << 20)
struct staging {
    char *half[2];
    cudaEvent_t sent[2]; /* recorded after the last copy to or from it */
    unsigned current;
    size_t used; /* of the current half */
};

/* Reference-counted: operators and methods hold their device. A device without holders is cached
 * for the next open: streams and pinned memory are slow to create, and freeing pinned memory waits
 * for all work on the device. */
struct dcrf_backend_device {
    size_t index;
    size_t holders;
    cudaStream_t stream; /* own_stream, or temporarily the caller's */
    cudaStream_t own_stream;
    cudaStream_t side; /* for concurrent work: see device_beside */
    cudaEvent_t forked, joined;
    double *few; /* pinned host memory for small downloads */
    struct staging staging;
    int multiprocessors;
    pthread_mutex_t turn; /* see device_turn */
    dcrf_backend_device *next_idle;
};

/* A device has one user at a time, except for operators: another thread may use a plan, with its
 * own workspace, while the thread that made it is working. So the operators' methods, copies, and
 * everything that changes or captures the stream lock the device. The lock is recursive. */
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

/* Make the device current for this thread; every entry point calls this first. */
dcrf_status device_enter(const dcrf_backend_device *device, dcrf_error *error);

/* Copy between host and device. Both return once the host array may be reused or read; an upload
 * may not have reached the device by then. Copies of pageable memory go through `staging`,
 * because the driver's own staging is shared by all threads. */
dcrf_status device_upload(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                          dcrf_error *error);
dcrf_status device_download(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                            dcrf_error *error);

/* Device memory from its pool, freed in stream order. Releasing NULL is a no-op. */
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

/* Enqueue zeros. */
template <typename T>
dcrf_status device_clear(dcrf_backend_device *device, T *array, size_t count, const char *what,
                         dcrf_error *error) {
    return check(cudaMemsetAsync(array, 0, count * sizeof(T), device->stream), what, error);
}

/* The same for a new array. */
template <typename T>
dcrf_status device_zeros(dcrf_backend_device *device, T **array, size_t count, const char *what,
                         dcrf_error *error) {
    TRY(device_array(device, array, count, what, error));
    return device_clear(device, *array, count, what, error);
}

/* A copy of a host array. */
template <typename T>
dcrf_status device_copy(dcrf_backend_device *device, T **array, const T *from, size_t count,
                        const char *what, dcrf_error *error) {
    TRY(device_array(device, array, count, what, error));
    return device_upload(device, *array, from, count * sizeof(T), error);
}

/* Device memory until the end of a scope. */
template <typename T> class scratch {
  public:
    explicit scratch(dcrf_backend_device *owner) : device(owner) {
    }
    ~scratch() {
        device_release(device, memory);
    }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    dcrf_status take(size_t count, const char *what, dcrf_error *error) {
        return device_array(device, &memory, count, what, error);
    }
    dcrf_status zeros(size_t count, const char *what, dcrf_error *error) {
        return device_zeros(device, &memory, count, what, error);
    }
    dcrf_status copy(const T *from, size_t count, const char *what, dcrf_error *error) {
        return device_copy(device, &memory, from, count, what, error);
    }
    operator T *() const {
        return memory;
    }
    /* The memory is the caller's from now on. */
    T *keep() {
        T *const kept = memory;
        memory = nullptr;
        return kept;
    }

  private:
    dcrf_backend_device *device;
    T *memory = nullptr;
};

/* Redirects what `work` launches to the side stream, where it may run concurrently with later work,
 * until device_join. Does not nest. */
template <typename WORK>
dcrf_status device_beside(dcrf_backend_device *device, WORK work, dcrf_error *error) {
    const device_turn turn(device);
    cudaStream_t main = device->stream;
    TRY(check(cudaEventRecord(device->forked, main), "a fork", error));
    TRY(check(cudaStreamWaitEvent(device->side, device->forked, 0), "a fork", error));
    device->stream = device->side;
    const dcrf_status status = work();
    device->stream = main;
    return status < 0 ? status
                      : check(cudaEventRecord(device->joined, device->side), "a fork", error);
}

static inline dcrf_status device_join(dcrf_backend_device *device, dcrf_error *error) {
    return check(cudaStreamWaitEvent(device->stream, device->joined, 0), "a fork", error);
}

/* Several arrays, in ascending order of device address; small ones are transferred together. */
struct download {
    char *to;
    const char *from;
    size_t bytes;
};
dcrf_status device_download_each(dcrf_backend_device *device, const struct download *arrays,
                                 size_t count, dcrf_error *error);

struct ordered_batch; /* ordered.cuh */

/* An operator on the device. `apply_on_device` works on device arrays and only enqueues work; the
 * methods of dcrf_operator wrap it with copies from and to host arrays. */
struct device_operator {
    dcrf_operator base; /* base.scale stays NULL: see `scales`; base.device is `device` */
    dcrf_backend_device *device;
    dcrf_status (*apply_on_device)(struct device_operator *op,
                                   const struct dcrf_application *application, dcrf_error *error);
    /* Likewise for the ordered filter of some channels; NULL: this kind has the clipped line
     * instead. */
    dcrf_status (*ordered_on_device)(struct device_operator *op, const struct ordered_batch *batch,
                                     dcrf_error *error);
    /* Likewise for the clipped line, in float and in double (rows of `channels`); NULL: this kind
     * has only the ordered filter. */
    dcrf_status (*line_on_device)(struct device_operator *op, const struct dcrf_line *line,
                                  dcrf_error *error);
    dcrf_status (*line_double_on_device)(struct device_operator *op, const struct dcrf_line *line,
                                         double *out, dcrf_error *error);
    /* Likewise for rows of `channels` doubles. */
    dcrf_status (*apply_double_on_device)(struct device_operator *op, const double *in, double *out,
                                          size_t channels, dcrf_error *error);
    /* Likewise for the diagonal; NULL: use the method of dcrf_operator, through the host. */
    dcrf_status (*diagonal_on_device)(struct device_operator *op, float *out, dcrf_error *error);
    float *scales;   /* on the device: scales of the symmetric normalization, or NULL */
    float *in, *out; /* on the device: copies of host arrays */
    size_t block_floats;
};

/* For the methods of an operator: copy rows of `stride` floats from the host to op->in and make
 * op->out at least as large; copy op->out back to the host. */
dcrf_status operator_upload(struct device_operator *op, const float *in, size_t stride,
                            dcrf_error *error);
dcrf_status operator_download(struct device_operator *op, float *out, size_t stride,
                              dcrf_error *error);
/* The `apply_double` and `apply` of every kind: out = factor K in on host arrays, by the methods
 * for device arrays. */
dcrf_status operator_apply_double(const dcrf_operator *op, dcrf_workspace *workspace,
                                  const double *in, double *out, size_t channels,
                                  dcrf_error *error);
dcrf_status operator_apply(const dcrf_operator *op, dcrf_workspace *workspace,
                           const struct dcrf_application *application, dcrf_error *error);
/* sum_ab K_ab [x_a != x_b] of a labelling on the host; the `disagreement` of every kind. */
dcrf_status operator_disagreement(const dcrf_operator *op, dcrf_workspace *workspace,
                                  const uint16_t *labels, bool in_double, double *sum,
                                  dcrf_error *error);
/* The `disagreements` method of the backend. */
dcrf_status operators_disagreements(dcrf_operator *const *operators, const float *const *distances,
                                    size_t count, const uint16_t *labels, const uint16_t *place_of,
                                    size_t label_count, size_t place_count, double *sums,
                                    dcrf_error *error);
/* The same for Potts and labels on the device; place_of is still a host array. */
dcrf_status disagreements_on_device(struct device_operator *const *operators, size_t count,
                                    const uint16_t *labels, const uint16_t *place_of,
                                    size_t label_count, size_t place_count, double *sums,
                                    dcrf_error *error);
/* K 1 as the first column of rows of DCRF_NARROW_LANES floats, on the device. operator_make_scales
 * then sets op->scales = diag(K 1)^-1/2. */
dcrf_status operator_sum_rows(struct device_operator *op, scratch<float> &sums, dcrf_error *error);
dcrf_status operator_make_scales(struct device_operator *op, const float *sums, dcrf_error *error);
/* Release the members of struct device_operator, and drop the device. */
void operator_clear(struct device_operator *op);

/* The operators, normalized or calibrated. */
dcrf_status lattice_new(struct device_operator **op, dcrf_backend_device *device,
                        const struct dcrf_features *features, dcrf_normalization normalization,
                        dcrf_error *error);
dcrf_status lattice_new_compatible(struct device_operator **op, dcrf_backend_device *device,
                                   const struct dcrf_features *features, bool has_origin,
                                   dcrf_densecrf_normalization normalization, dcrf_error *error);
/* See backend/backend.h. */
dcrf_status lattice_of_rows(dcrf_operator **op, dcrf_backend_device *device, const float *rows,
                            size_t variables, size_t dimension, size_t pictures, bool is_symmetric,
                            bool is_waiting, dcrf_error *error);
dcrf_status grid_new(struct device_operator **op, dcrf_backend_device *device,
                     const struct dcrf_features *features, dcrf_normalization normalization,
                     dcrf_error *error);
dcrf_status exact_new(struct device_operator **op, dcrf_backend_device *device,
                      const struct dcrf_features *features, dcrf_normalization normalization,
                      dcrf_error *error);

/* Download the label of the largest marginal of each row of a device block; ties go to the
 * first. */
dcrf_status labels_download(dcrf_backend_device *device, const float *marginals, size_t variables,
                            size_t labels, size_t stride, uint16_t *out, dcrf_error *error);

/* ---- the caller's arrays --------------------------------------------------------------------- */

/* Which device this memory belongs to; SIZE_MAX: the host. */
dcrf_status array_find(const void *data, size_t *index, dcrf_error *error);

/* Per-picture arrays for kernels: the caller's where they are on the device, else device copies.
 * VIEW: dcrf_view, for arrays to read, or dcrf_output. */
template <class VIEW> struct views_on_device {
    dcrf_backend_device *device;
    scratch<VIEW> views; /* on the device, one per picture */
    scratch<char> copies;
    std::vector<struct download> results; /* copies of outputs, and the host arrays they are for */
    explicit views_on_device(dcrf_backend_device *owner)
        : device(owner), views(owner), copies(owner) {
    }
};

/* Uploads the contents of host arrays to read; the caller downloads results. */
template <class VIEW>
dcrf_status views_upload(struct views_on_device<VIEW> *uploaded, const VIEW *views, size_t pictures,
                         const dcrf_grid *grid, const char *what, dcrf_error *error);

static DCRF_BACKEND_HOST_AND_DEVICE inline const char *view_bytes(const dcrf_view &view) {
    return static_cast<const char *>(view.data);
}
static DCRF_BACKEND_HOST_AND_DEVICE inline char *view_bytes(const dcrf_output &output) {
    return static_cast<char *>(output.data);
}

#ifdef __CUDACC__
/* The address of a variable's first channel; variables are numbered picture after picture. */
template <class VIEW>
static __device__ inline auto view_row(const VIEW *views, size_t picture_variables,
                                       const dcrf_grid &grid, size_t variable, VIEW &view) {
    uint32_t rest = (uint32_t)variable % (uint32_t)picture_variables;
    view = views[(uint32_t)variable / (uint32_t)picture_variables];
    const uint32_t x = rest % (uint32_t)grid.size[0];
    rest /= (uint32_t)grid.size[0];
    const uint32_t y = rest % (uint32_t)grid.size[1], z = rest / (uint32_t)grid.size[1];
    return view_bytes(view) + (ptrdiff_t)x * view.stride[0] + (ptrdiff_t)y * view.stride[1] +
           (ptrdiff_t)z * view.stride[2];
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

/* Feature rows as dcrf_features_row computes them, on the device: variables x dimension floats,
 * followed by zero_rows rows of zeros. */
dcrf_status features_upload(dcrf_backend_device *device, const struct dcrf_features *features,
                            size_t zero_rows, float **rows, dcrf_error *error);

#endif
