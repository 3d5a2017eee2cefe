/* Marginals made of the caller's arrays, for meanfield/arrays.c, and results into such arrays.
 *
 * Unaries are converted to energies with the formulas and rounding of model/unary_energies.c, and
 * the diagonals of the kernels are summed up here. All of it is enqueued without waiting; the host
 * waits once, for the results. */
#include "backend/cuda/iterate.cuh"

#include <cmath>

#define WHAT "mean field of arrays"

/* ---- energies ------------------------------------------------------------------------------- */

#define NOTHING (~0ull) /* no invalid number */

struct numbers {
    const dcrf_view *views; /* one per picture */
    dcrf_grid grid;
    size_t variables, picture_variables;
    uint32_t labels, stride; /* of the output rows */
    float *rows;
    unsigned long long *wrong; /* the lowest variable * labels + label with an invalid number */
};

/* A number as a float, rounded as by dcrf_view_copy. */
static __device__ float read_number(const dcrf_view &view, const char *row, uint32_t i) {
    return (float)view_element(row + (ptrdiff_t)i * view.channel_stride, view.type);
}

/* One thread per variable; rows are written four floats at a time. */
template <dcrf_unary_kind KIND> static __global__ void make_energies(numbers n) {
    const size_t a = this_thread();
    if (a >= n.variables)
        return;
    dcrf_view view;
    const char *row = view_row(n.views, n.picture_variables, n.grid, a, view);
    uint32_t wrong = UINT32_MAX;
    double shift = 0;
    if (KIND == DCRF_UNARY_LOGITS) {
        double largest = -INFINITY, sum = 0;
        for (uint32_t i = 0; i < n.labels; i++)
            largest = fmax(largest, (double)read_number(view, row, i));
        for (uint32_t i = 0; i < n.labels; i++)
            sum += exp((double)read_number(view, row, i) - largest);
        shift = log(sum) + largest;
    }
    for (uint32_t first = 0; first < n.stride; first += 4) {
        float energy[4] = {0, 0, 0, 0};
        for (uint32_t k = 0; k < 4 && first + k < n.labels; k++) {
            const float x = read_number(view, row, first + k);
            bool is_right = isfinite(x);
            if (KIND == DCRF_UNARY_PROBABILITIES) {
                is_right = x >= 0 && (double)x <= DCRF_PROBABILITY_MAX;
                energy[k] = (float)-log(fmin(fmax((double)x, DCRF_PROBABILITY_MIN), 1.0));
            } else {
                energy[k] = KIND == DCRF_UNARY_LOGITS ? (float)(shift - (double)x) : x;
            }
            if (!is_right)
                wrong = min(wrong, first + k);
        }
        reinterpret_cast<float4 *>(n.rows)[(a * n.stride + first) / 4] =
            make_float4(energy[0], energy[1], energy[2], energy[3]);
    }
    if (wrong != UINT32_MAX)
        atomicMin(n.wrong, (unsigned long long)(a * n.labels + wrong));
}

static dcrf_status read_unary(dcrf_backend_device *device,
                              const struct dcrf_backend_pictures *given, float *rows,
                              unsigned long long *wrong, dcrf_error *error) {
    numbers n = {};
    struct views_on_device<dcrf_view> uploaded(device);
    TRY(views_upload(&uploaded, given->unary, given->count, given->grid, "the unary", error));
    n.views = uploaded.views;
    n.grid = *given->grid;
    n.variables = given->count * given->variables;
    n.picture_variables = given->variables;
    n.labels = (uint32_t)given->labels;
    n.stride = (uint32_t)given->stride;
    n.rows = rows;
    n.wrong = wrong;
    const unsigned blocks = blocks_for(n.variables);
    if (given->kind == DCRF_UNARY_LOGITS)
        make_energies<DCRF_UNARY_LOGITS><<<blocks, THREADS, 0, device->stream>>>(n);
    else if (given->kind == DCRF_UNARY_PROBABILITIES)
        make_energies<DCRF_UNARY_PROBABILITIES><<<blocks, THREADS, 0, device->stream>>>(n);
    else
        make_energies<DCRF_UNARY_ENERGIES><<<blocks, THREADS, 0, device->stream>>>(n);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the diagonal --------------------------------------------------------------------------- */

/* As energy/coupling.c: sums in double, rounded at the end. */
static __global__ void add_diagonal(const float *diagonal, double weight, size_t variables,
                                    bool is_first, double *sums, float *out) {
    const size_t a = this_thread();
    if (a >= variables)
        return;
    sums[a] = (is_first ? 0 : sums[a]) + __dmul_rn(weight, (double)diagonal[a]);
    out[a] = (float)sums[a];
}

static dcrf_status find_diagonal(struct device_operator *op, float *out, dcrf_error *error) {
    if (op->diagonal_on_device)
        return op->diagonal_on_device(op, out, error);
    const size_t n = op->base.variables;
    float *diagonal = static_cast<float *>(malloc(n * sizeof *diagonal));
    if (!diagonal)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for the diagonal of a kernel");
    dcrf_status status = op->base.methods->diagonal(&op->base, nullptr, diagonal, error);
    if (status == DCRF_OK)
        status = device_upload(op->device, out, diagonal, n * sizeof *diagonal, error);
    free(diagonal);
    return status;
}

static dcrf_status sum_diagonals(dcrf_backend_device *device,
                                 const struct dcrf_backend_pictures *given, float *out,
                                 dcrf_error *error) {
    const size_t n = given->count * given->variables;
    scratch<double> sums(device);
    scratch<float> diagonal(device);
    TRY(sums.take(n, WHAT, error));
    TRY(diagonal.take(n, WHAT, error));
    TRY(device_clear(device, out, n, WHAT, error));
    for (size_t m = 0; m < given->kernel_count; m++) {
        TRY(find_diagonal(reinterpret_cast<struct device_operator *>(given->operators[m]), diagonal,
                          error));
        add_diagonal<<<blocks_for(n), THREADS, 0, device->stream>>>(diagonal, given->weights[m], n,
                                                                    m == 0, sums, out);
        TRY(check(cudaGetLastError(), WHAT, error));
    }
    return DCRF_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

struct results {
    const float *rows;
    uint32_t labels, stride;
    size_t variables, picture_variables;
    const dcrf_output *outputs; /* one per picture */
    dcrf_grid grid;
    const unsigned long long *wrong; /* if any number is invalid, nothing is written */
};

static __global__ void write_marginals(struct results r) {
    const size_t a = this_thread();
    if (a >= r.variables || *r.wrong != NOTHING)
        return;
    dcrf_output out;
    char *to = view_row(r.outputs, r.picture_variables, r.grid, a, out);
    for (uint32_t i = 0; i < r.labels; i++)
        *reinterpret_cast<float *>(to + (ptrdiff_t)i * out.channel_stride) =
            r.rows[a * r.stride + i];
}

static __global__ void write_labels(struct results r) {
    const size_t a = this_thread();
    if (a >= r.variables || *r.wrong != NOTHING)
        return;
    const float *row = r.rows + a * r.stride;
    uint32_t best = 0;
    for (uint32_t i = 1; i < r.labels; i++)
        if (row[i] > row[best])
            best = i;
    dcrf_output out;
    char *to = view_row(r.outputs, r.picture_variables, r.grid, a, out);
    if (out.type == DCRF_U8)
        *reinterpret_cast<uint8_t *>(to) = (uint8_t)best;
    else if (out.type == DCRF_I32)
        *reinterpret_cast<int32_t *>(to) = (int32_t)best;
    else
        *reinterpret_cast<uint16_t *>(to) = (uint16_t)best;
}

/* Marginals (0) or labels (1), into the arrays or into device copies of them. */
static dcrf_status write_result(dcrf_backend_device *device,
                                const struct dcrf_backend_pictures *given, int which,
                                const float *q, const unsigned long long *wrong,
                                struct views_on_device<dcrf_output> *uploaded, dcrf_error *error) {
    const dcrf_output *wanted = which == 1 ? given->labels_out : given->marginals;
    if (!wanted)
        return DCRF_OK;
    TRY(views_upload(uploaded, wanted, given->count, given->grid, WHAT, error));
    const struct results r = {q,
                              (uint32_t)given->labels,
                              (uint32_t)given->stride,
                              given->count * given->variables,
                              given->variables,
                              uploaded->views,
                              *given->grid,
                              wrong};
    const unsigned blocks = blocks_for(r.variables);
    if (which == 1)
        write_labels<<<blocks, THREADS, 0, device->stream>>>(r);
    else
        write_marginals<<<blocks, THREADS, 0, device->stream>>>(r);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the interface -------------------------------------------------------------------------- */

/* The iterate owns the arrays that it adopts. */
static dcrf_status adopt(dcrf_backend_iterate **out, dcrf_backend_device *device,
                         const struct dcrf_backend_pictures *given, float *unary, float *diagonal,
                         unsigned long long *wrong, dcrf_error *error) {
    const struct dcrf_backend_group group = {given->kernel_count, given->operators, given->weights,
                                             diagonal, nullptr};
    /* Potts: the factors of energy/coupling.h */
    struct dcrf_backend_model model = {};
    model.variables = given->count * given->variables;
    model.labels = given->labels;
    model.stride = given->stride;
    model.unary = unary;
    model.group_count = 1;
    model.groups = &group;
    model.same_label_factor = -1;
    model.all_factor = 1;
    TRY(iterate_adopt(out, device, &model, error));
    (*out)->own_unary = unary;
    (*out)->kernels.groups[0].own_diagonal = diagonal;
    (*out)->pictures = given;
    (*out)->wrong = wrong;
    return DCRF_OK;
}

dcrf_status make_of_pictures(dcrf_backend_iterate **out, dcrf_backend_device *device,
                             const struct dcrf_backend_pictures *given, dcrf_error *error) {
    scratch<float> unary(device), diagonal(device);
    scratch<unsigned long long> wrong(device);
    const size_t variables = given->count * given->variables;
    *out = nullptr;
    TRY(device_enter(device, error));
    TRY(unary.take(variables * given->stride, WHAT, error));
    TRY(diagonal.take(variables, WHAT, error));
    TRY(wrong.take(1, WHAT, error));
    TRY(check(cudaMemsetAsync(wrong, 0xff, sizeof *wrong, device->stream), WHAT, error));
    TRY(read_unary(device, given, unary, wrong, error));
    TRY(sum_diagonals(device, given, diagonal, error));
    TRY(adopt(out, device, given, unary, diagonal, wrong, error));
    unary.keep();
    diagonal.keep();
    wrong.keep();
    return DCRF_OK;
}

dcrf_status write_pictures(dcrf_backend_iterate *it, size_t *wrong, dcrf_error *error) {
    dcrf_backend_device *device = it->device;
    unsigned long long found = 0;
    struct views_on_device<dcrf_output> uploaded[] = {
        views_on_device<dcrf_output>(device), views_on_device<dcrf_output>(device)
    };
    *wrong = SIZE_MAX;
    TRY(device_enter(device, error));
    for (int i = 0; i < 2; i++)
        TRY(write_result(device, it->pictures, i, it->y, it->wrong, &uploaded[i], error));
    TRY(device_download(device, &found, it->wrong, sizeof found, error));
    *wrong = (size_t)found; /* NOTHING is SIZE_MAX */
    for (const struct views_on_device<dcrf_output> &of : uploaded)
        if (found == NOTHING && !of.results.empty())
            TRY(device_download_each(device, of.results.data(), of.results.size(), error));
    return DCRF_OK;
}
