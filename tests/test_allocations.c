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
    uint8_t image[WIDTH * HEIGHT * 3] = {0};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernel =
        dcrf_kernel_bilateral(3, 10, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    struct dcrf_features features;
    const dcrf_status status = dcrf_features_new(&features, &grid, &kernel, error);
    if (status == DCRF_OK)
        dcrf_features_clear(&features);
    return status;
}

static const struct {
    const char *name;
    scenario run;
    size_t least_requests; /* fewer mean that the scenario does not do what it says */
} scenarios[] = {
    {"a workspace", make_workspace, 5}, /* itself, the pool, its workers, two threads */
    {"the features of a kernel", make_features, 1},
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
