/* The symmetric lattice operator in double, for rigorous bounds: the same plan and matrix as in
 * lattice.c, with plain loops and (B + B^T) / 2 as the mean of two blurs. */
#include "core/error.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Rows per task, about. */
#define USUAL_ROWS 512
/* The splat rows, and two buffers for the blur. */
#define BUFFERS 3

struct double_blur {
    const struct dcrf_lattice *lattice;
    size_t axis, channels;
    const double *in; /* (vertices + 1) rows, the last one zero */
    double *out;
};

static void blur_double_axis(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_blur *blur = context;
    const uint32_t *neighbours = dcrf_lattice_neighbours(blur->lattice, blur->axis);
    const size_t channels = blur->channels;
    for (size_t v = begin; v < end; v++) {
        const double *before = blur->in + neighbours[2 * v] * channels;
        const double *after = blur->in + neighbours[2 * v + 1] * channels;
        for (size_t c = 0; c < channels; c++)
            blur->out[v * channels + c] = (double)DCRF_LATTICE_CENTRE * blur->in[v * channels + c] +
                                          (double)DCRF_LATTICE_SIDE * (before[c] + after[c]);
    }
}

/* Blur `in` along all axes, in either order, alternating between two buffers, of which `in` may be
 * the second. Returns the result, or NULL if interrupted. */
static double *blur_double(struct double_blur *blur, dcrf_workspace *workspace, const double *in,
                           bool upwards, double *one, double *other) {
    const size_t axes = blur->lattice->corners, count = blur->lattice->vertices;
    blur->in = in;
    for (size_t i = 0; i < axes; i++) {
        blur->axis = upwards ? i : axes - 1 - i;
        blur->out = i % 2 == 0 ? one : other;
        if (!dcrf_parallel_while(workspace, count, dcrf_even_grain(count, USUAL_ROWS),
                                 blur_double_axis, blur))
            return NULL;
        blur->in = blur->out;
    }
    return blur->out;
}

static void add_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_blur *blur = context;
    for (size_t i = begin * blur->channels; i < end * blur->channels; i++)
        blur->out[i] += blur->in[i];
}

/* The sum of both orders, which is twice the symmetric blur. */
static double *blur_both(struct double_blur *blur, dcrf_workspace *workspace, double *splat,
                         double *one, double *other) {
    double *up = blur_double(blur, workspace, splat, true, one, other);
    double *spare = up == one ? other : one;
    blur->in = up ? blur_double(blur, workspace, splat, false, spare, splat) : NULL;
    blur->out = up;
    if (blur->in)
        dcrf_parallel_rows(dcrf_workspace_pool(workspace), blur->lattice->vertices, add_double,
                           blur);
    return blur->in ? up : NULL;
}

struct double_sums {
    const struct dcrf_lattice *lattice;
    const double *in; /* of the splat */
    struct dcrf_lattice_sums splat;
    const double *blurred;
    double *out;
    size_t channels;
};

static void splat_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_sums *s = context;
    const size_t corners = s->lattice->corners, channels = s->channels;
    for (size_t sector = begin; sector < end; sector++) {
        double *rows = dcrf_lattice_sums_begin(&s->splat, sector);
        for (size_t e = dcrf_lattice_sector_begin(s->lattice, sector) * corners;
             e < dcrf_lattice_sector_begin(s->lattice, sector + 1) * corners; e++) {
            const double weight = (double)s->lattice->runs.weight[e];
            double *row = rows + s->lattice->runs.vertex[e] * channels;
            for (size_t c = 0; c < channels; c++)
                row[c] += weight * s->in[e / corners * channels + c];
        }
        dcrf_lattice_sums_end(&s->splat, sector);
    }
}

/* Half of what is blurred in both orders. */
static void slice_variable(const struct double_sums *s, struct dcrf_lattice_names names, size_t a) {
    const size_t corners = s->lattice->corners;
    double *out = s->out + a * s->channels;
    for (size_t c = 0; c < s->channels; c++)
        out[c] = 0;
    for (size_t e = a * corners; e < (a + 1) * corners; e++) {
        const double weight = 0.5 * (double)s->lattice->runs.weight[e];
        const uint32_t vertex = dcrf_lattice_vertex(names, s->lattice->runs.vertex[e]);
        const double *in = s->blurred + vertex * s->channels;
        for (size_t c = 0; c < s->channels; c++)
            out[c] += weight * in[c];
    }
}

static void slice_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_sums *s = context;
    for (size_t sector = begin; sector < end; sector++) {
        const size_t first = dcrf_lattice_sector_begin(s->lattice, sector);
        const struct dcrf_lattice_names names = dcrf_lattice_names_at(s->lattice, first);
        for (size_t a = first; a < dcrf_lattice_sector_begin(s->lattice, sector + 1); a++)
            slice_variable(s, names, a);
    }
}

dcrf_status dcrf_lattice_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                      const double *in, double *out, size_t channels,
                                      dcrf_error *error) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    const size_t rows = dcrf_lattice_rows(lattice), row_bytes = channels * sizeof *in;
    const size_t sectors = lattice->runs.sectors.count;
    double *buffer = dcrf_workspace_slot(workspace, &dcrf_operator_slot,
                                         BUFFERS * rows + dcrf_lattice_copies(lattice), row_bytes);
    if (!buffer)
        return dcrf_fail_memory(error, "a lattice filter");
    for (size_t i = 1; i < BUFFERS; i++)
        memset(buffer + (i * rows + lattice->vertices) * channels, 0, row_bytes);
    double *one = buffer + rows * channels, *other = one + rows * channels;
    struct double_sums sums = {.lattice = lattice, .in = in, .out = out, .channels = channels};
    sums.splat = (struct dcrf_lattice_sums){.lattice = lattice,
                                            .width = channels,
                                            .is_double = true,
                                            .is_alone = dcrf_workspace_threads(workspace) == 1,
                                            .vertices = buffer,
                                            .copies = other + rows * channels};
    struct double_blur blur = {.lattice = lattice, .channels = channels};
    dcrf_lattice_sums_start(&sums.splat, 1, dcrf_workspace_pool(workspace));
    if (dcrf_parallel_while(workspace, sectors, 1, splat_double, &sums)) {
        dcrf_lattice_sums_join(&sums.splat, 1, dcrf_workspace_pool(workspace));
        sums.blurred = blur_both(&blur, workspace, buffer, one, other);
    }
    return sums.blurred && dcrf_parallel_while(workspace, sectors, 1, slice_double, &sums)
               ? DCRF_OK
               : dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
}
