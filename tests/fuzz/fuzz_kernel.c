/* Any grid, kernel and view: an error with a message, or finite features, the same when read twice;
 * their operator applied to ones gives finite sums. */
#include "model/kernel.h"
#include "model/view.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Mostly small grids, so that the input has enough data. */
#define MOST_VARIABLES 64

struct header {
    uint8_t axes, kind, normalization, type, channels, operator_kind;
    uint8_t size[DCRF_MAX_AXES];
    uint8_t spacing[DCRF_MAX_AXES], sigma[DCRF_MAX_AXES], channel_sigma[DCRF_MAX_FEATURES], weight;
};

/* Random bytes are rarely a sensible number: one byte selects one, or an edge case. */
static double number(uint8_t byte) {
    static const double edges[] = {0,    -1,   NAN,  INFINITY, 1e-320, 1e-300, 1e-38, 1e-20,
                                   1e-9, 1e-6, 1e-3, 1e6,      1e20,   1e38,   1e300, -0.0};
    return byte >= 240 ? edges[byte - 240] : 0.01 * pow(1.05, byte);
}

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "fuzz_kernel: %s\n", what);
        abort();
    }
}

static void check_features(const dcrf_grid *grid, const dcrf_kernel *kernel) {
    struct dcrf_features once, twice;
    dcrf_error error = {DCRF_OK, ""};
    const dcrf_status status = dcrf_features_new(&once, grid, kernel, &error);
    expect(status <= 0, "a status that is not one of this call");
    if (status < 0) {
        expect(error.status == status && error.message[0], "an error without its message");
        return;
    }
    expect(dcrf_features_new(&twice, grid, kernel, NULL) == DCRF_OK, "not repeatable");
    for (size_t variable = 0; variable < once.variables; variable++) {
        float row[2][DCRF_MAX_FEATURES];
        dcrf_features_row(&once, variable, row[0]);
        dcrf_features_row(&twice, variable, row[1]);
        for (size_t k = 0; k < once.dimension; k++)
            expect(isfinite(row[0][k]) && row[0][k] == row[1][k], "features that are not finite");
    }
    dcrf_features_clear(&once);
    dcrf_features_clear(&twice);
}

static void check_operator(const dcrf_grid *grid, const dcrf_kernel *kernel,
                           dcrf_operator_kind kind) {
    static dcrf_workspace *workspace; /* made once: starting threads costs more than the rest */
    dcrf_operator *op = NULL;
    dcrf_error error = {DCRF_OK, ""};
    float sums[MOST_VARIABLES];
    if (!workspace)
        expect(dcrf_workspace_new(&workspace, 1, NULL) == DCRF_OK, "no workspace");
    const dcrf_status status = dcrf_operator_new(&op, grid, kernel, kind, workspace, &error);
    if (status < 0) {
        expect(!op && error.status == status && error.message[0], "an error without its message");
        return;
    }
    expect(dcrf_operator_row_sums(op, workspace, sums, dcrf_operator_variables(op), &error) ==
               DCRF_OK,
           "no row sums");
    for (size_t i = 0; i < dcrf_operator_variables(op); i++)
        expect(isfinite(sums[i]) && sums[i] >= 0, "row sums that are not finite");
    dcrf_operator_free(&op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct header header;
    if (size < sizeof header)
        return 0;
    memcpy(&header, data, sizeof header);
    dcrf_grid grid = {.axes = header.axes % 5};
    size_t variables = 1;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        grid.size[axis] = axis < grid.axes ? header.size[axis] % 17 : 1;
        grid.spacing[axis] = number(header.spacing[axis]);
        variables *= grid.size[axis];
    }
    if (variables > MOST_VARIABLES)
        return 0;
    const size_t channels = header.channels % 19;
    const dcrf_type type = (dcrf_type)(header.type % 7);
    const size_t bytes = variables * channels * dcrf_type_bytes(type);
    uint8_t *pixels = calloc(1, bytes + 1);
    expect(pixels != NULL, "no memory");
    const size_t given = size - sizeof header;
    memcpy(pixels, data + sizeof header, given < bytes ? given : bytes);
    dcrf_kernel kernel = {.kind = (dcrf_kernel_kind)(header.kind % 4),
                          .normalization = (dcrf_normalization)(header.normalization % 3),
                          .weight = number(header.weight),
                          .channels = header.kind & 128
                                          ? dcrf_view_planar(pixels, type, &grid, channels)
                                          : dcrf_view_interleaved(pixels, type, &grid, channels)};
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        kernel.sigma[axis] = number(header.sigma[axis]);
    for (size_t c = 0; c < DCRF_MAX_FEATURES; c++)
        kernel.channel_sigma[c] = number(header.channel_sigma[c]);
    check_features(&grid, &kernel);
    check_operator(&grid, &kernel, (dcrf_operator_kind)(header.operator_kind % 5));
    free(pixels);
    return 0;
}
