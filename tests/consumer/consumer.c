/* A program of somebody else, for the tests of the installed library and of other processors:
 * public headers only. Compares the row sums of a kernel by the exact sum and by the fast operator.
 */
#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 24
#define HEIGHT 16

/* The mean row sum of a bilateral kernel over a checkered image; below zero on failure. */
static double mean_row_sum(dcrf_operator_kind kind, dcrf_workspace *workspace, dcrf_error *error) {
    static unsigned char image[HEIGHT][WIDTH];
    static float sums[HEIGHT * WIDTH];
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            image[y][x] = (unsigned char)((x / 8 + y / 8) % 2 ? 200 : 60 + x);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_kernel kernel =
        dcrf_kernel_bilateral(5, 13, dcrf_view_interleaved(image, DCRF_U8, &grid, 1), 1);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    dcrf_operator *op = NULL;
    double mean = -1;
    if (dcrf_operator_new(&op, &grid, &kernel, kind, workspace, error) == DCRF_OK &&
        dcrf_operator_row_sums(op, workspace, sums, WIDTH * HEIGHT, error) == DCRF_OK) {
        mean = 0;
        for (int a = 0; a < WIDTH * HEIGHT; a++)
            mean += (double)sums[a] / (WIDTH * HEIGHT);
    }
    dcrf_operator_free(&op);
    return mean;
}

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    if (strcmp(dcrf_version(), DCRF_VERSION) != 0) {
        fprintf(stderr, "header %s, library %s\n", DCRF_VERSION, dcrf_version());
        return 1;
    }
    if (dcrf_workspace_new(&workspace, 2, &error) < 0) {
        fprintf(stderr, "%s: %s\n", dcrf_status_name(error.status), error.message);
        return 1;
    }
    const double exact = mean_row_sum(DCRF_OPERATOR_EXACT, workspace, &error);
    const double fast = exact < 0 ? -1 : mean_row_sum(DCRF_OPERATOR_FAST, workspace, &error);
    dcrf_workspace_free(&workspace);
    if (fast < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("dcrf %s (%s): mean row sum %g exact, %g fast\n", dcrf_version(),
           dcrf_cpu_name(dcrf_cpu_in_use()), exact, fast);
    return fabs(fast - exact) <= 0.02 * exact ? 0 : 1; /* what the calibration promises */
}
