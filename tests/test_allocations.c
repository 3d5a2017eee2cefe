/* Every allocation of every scenario fails once: an error with a message, and no leak.
 *
 * To add a scenario write one function and one line in `scenarios`. */
#include "alloc_injection.h"
#include "unit.h"

#include "core/workspace.h"
#include "model/kernel.h"

#include <dcrf/dcrf.h>

#define WIDTH 6
#define HEIGHT 5

static const uint8_t *test_image(void) {
    static uint8_t image[WIDTH * HEIGHT * 3];
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(i * 37);
    return image;
}

static dcrf_kernel bilateral_kernel(void) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    return dcrf_kernel_bilateral(3, 40, dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3), 1);
}

static dcrf_status make_workspace(dcrf_error *error) {
    dcrf_workspace *workspace = NULL;
    const dcrf_status status = dcrf_workspace_new(&workspace, 3, error);
    /* A failure leaves nothing behind in the handle. */
    if ((status < 0) != (workspace == NULL))
        return DCRF_ERROR_ARGUMENT;
    dcrf_workspace_free(&workspace);
    return status;
}

static dcrf_status make_features(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernel = bilateral_kernel();
    struct dcrf_features features;
    const dcrf_status status = dcrf_features_new(&features, &grid, &kernel, error);
    if (status == DCRF_OK)
        dcrf_features_clear(&features);
    return status;
}

/* ---- operators: planned, applied, ordered -----------------------------------------------------
 */

static dcrf_status use_operator(const dcrf_kernel *kernel, dcrf_operator_kind kind,
                                dcrf_error *error) {
    enum { VARIABLES = WIDTH * HEIGHT, CHANNELS = 3 };
    static float in[VARIABLES * DCRF_LANES], out[VARIABLES * DCRF_LANES];
    const float thresholds[] = {0.25f, 0.5f, 0.75f};
    const dcrf_levels levels = {.count = 4, .levels = thresholds};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_workspace *workspace = NULL;
    dcrf_operator *op = NULL;
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
        in[i] = (float)(i % 7) / 7;
    dcrf_status status = dcrf_workspace_new(&workspace, 1, error);
    if (status == DCRF_OK)
        status = dcrf_operator_new(&op, &grid, kernel, kind, workspace, error);
    if (status == DCRF_OK)
        status = dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, in, out, CHANNELS, DCRF_LANES,
                                     error);
    if (status == DCRF_OK)
        status =
            dcrf_operator_ordered(op, workspace, &levels, in, out, CHANNELS, DCRF_LANES, error);
    if (status == DCRF_OK)
        status = dcrf_operator_diagonal(op, workspace, out, error);
    if (status == DCRF_OK)
        status = dcrf_operator_row_sums(op, workspace, out, error);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
    return status;
}

static dcrf_status use_exact(dcrf_error *error) {
    const dcrf_kernel kernel = bilateral_kernel();
    return use_operator(&kernel, DCRF_OPERATOR_EXACT, error);
}

static dcrf_status use_grid(dcrf_error *error) {
    const dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 1);
    return use_operator(&kernel, DCRF_OPERATOR_GRID, error);
}

static dcrf_status use_lattice(dcrf_error *error) {
    const dcrf_kernel kernel = bilateral_kernel();
    return use_operator(&kernel, DCRF_OPERATOR_LATTICE, error);
}

static const struct {
    const char *name;
    scenario run;
    size_t least_requests; /* fewer mean that the scenario does not do what it says */
} scenarios[] = {
    {"a workspace", make_workspace, 5}, /* itself, the pool, its workers, two threads */
    {"the features of a kernel", make_features, 1},
    {"the exact operator", use_exact, 5},
    {"the grid operator", use_grid, 5},
    {"the lattice operator", use_lattice, 5},
};

static void failing_allocations_are_errors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const size_t refused = check_failing_allocations(scenarios[i].name, scenarios[i].run);
        print_message("%s: %zu requests refused one by one\n", scenarios[i].name, refused);
        assert_true(refused >= scenarios[i].least_requests);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(failing_allocations_are_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
