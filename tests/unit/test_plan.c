/* Plans: all kernels of a model together. */
#include "dense.h"
#include "scene.h"

#include "core/rng.h"
#include "filter/plan.h"

#include <math.h>
#include <stdlib.h>

static void a_plan_applies_all_kernels_without_their_diagonal(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(7, 6), 3, 2, DCRF_OPERATOR_EXACT, FORMULA);
    const size_t n = s.variables, channels = 5, stride = 8;
    float *in = calloc(n * stride, sizeof *in), *out = calloc(n * stride, sizeof *out);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 3);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < channels; c++)
            in[a * stride + c] = (float)(2 * dcrf_rng_uniform(&rng) - 1);
    for (int round = 0; round < 3; round++) {
        if (round == 1) {
            set_weight(&s, 0, 0);
            set_weight(&s, 3, 9);
        }
        for (size_t m = 0; round == 2 && m < KERNELS; m++)
            set_weight(&s, m, 0);
        float diagonal[42];
        for (size_t a = 0; a < n; a++) {
            diagonal[a] = 0;
            for (size_t m = 0; m < KERNELS; m++)
                diagonal[a] += (float)(s.weight[m] * s.matrix[m][a * n + a]);
        }
        assert_int_equal(
            dcrf_plan_sum(s.plan, s.workspace, NULL, KERNELS, in, out, channels, stride, NULL),
            DCRF_OK);
        dcrf_plan_remove_diagonal(s.plan, s.workspace, diagonal, in, out, channels, stride);
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < channels; c++) {
                double expected = 0, scale = 0;
                for (size_t b = 0; b < n; b++)
                    for (size_t m = 0; m < KERNELS; m++) {
                        const double k = s.weight[m] * s.matrix[m][a * n + b];
                        expected += a == b ? 0 : k * (double)in[b * stride + c];
                        scale += k;
                    }
                assert_close((double)out[a * stride + c], expected, scale);
            }
    }
    free(in);
    free(out);
    free_scene(&s);
}

static void a_plan_knows_its_model(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(7, 6), 3, 1, DCRF_OPERATOR_EXACT, NO_MATRICES);
    size_t bytes = 0;
    assert_ptr_equal(dcrf_plan_model(s.plan), s.model);
    for (size_t m = 0; m < KERNELS; m++) {
        assert_int_equal(dcrf_operator_variables(dcrf_plan_operator(s.plan, m)), 42);
        bytes += dcrf_operator_bytes(dcrf_plan_operator(s.plan, m)) + 42 * sizeof(float);
    }
    assert_null(dcrf_plan_operator(s.plan, KERNELS));
    assert_true(dcrf_plan_bytes(s.plan) >= bytes && dcrf_plan_bytes(s.plan) < bytes + 1000);
    dcrf_plan *none = NULL;
    dcrf_error error;
    assert_fails(DCRF_ERROR_ARGUMENT, "a plan needs a model", error,
                 dcrf_plan_new(&none, NULL, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "a plan needs a workspace", error,
                 dcrf_plan_new(&none, s.model, DCRF_OPERATOR_EXACT, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "77 is not a kind", error,
                 dcrf_plan_new(&none, s.model, (dcrf_operator_kind)77, s.workspace, &error));
    /* Fails at the second kernel, after the first one was built. */
    assert_true(dcrf_plan_new(&none, s.model, DCRF_OPERATOR_GRID, s.workspace, &error) ==
                DCRF_ERROR_UNSUPPORTED);
    assert_null(none);
    dcrf_plan_free(&none);
    dcrf_plan_free(NULL);
    free_scene(&s);
}

/* The mean row sum of a kernel's formula, without normalization. */
static double naive_reach(const dcrf_grid *grid, dcrf_kernel kernel) {
    const size_t n = grid->size[0] * grid->size[1] * grid->size[2];
    double sum = 0;
    kernel.normalization = DCRF_NORMALIZE_NONE;
    double *matrix = dense_of_kernel(grid, &kernel);
    for (size_t k = 0; k < n * n; k++)
        sum += matrix[k];
    free(matrix);
    return sum / (double)n;
}

/* With and without normalization. A small lattice is calibrated by all its variables, so only a
 * grid differs by more than rounding: it is truncated. */
static void a_plan_knows_the_reach_of_its_kernels(void **state) {
    (void)state;
    enum { WIDTH = 12, HEIGHT = 9 };
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    float image[WIDTH * HEIGHT];
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t a = 0; a < WIDTH * HEIGHT; a++)
        image[a] = (float)(a % WIDTH < 5 ? 40 : 200) + (float)(9 * dcrf_rng_uniform(&rng));
    const dcrf_view view = dcrf_view_interleaved(image, DCRF_F32, &grid, 1);
    dcrf_kernel kernels[] = {dcrf_kernel_spatial(1.5, 2), dcrf_kernel_bilateral(4, 30, view, 1.25),
                             dcrf_kernel_spatial(2, 1), dcrf_kernel_bilateral(3, 20, view, 3)};
    kernels[2].normalization = kernels[3].normalization = DCRF_NORMALIZE_NONE;
    const dcrf_operator_kind kinds[] = {DCRF_OPERATOR_EXACT, DCRF_OPERATOR_FAST};
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_error error;
    double reach = -1;
    assert_int_equal(dcrf_workspace_new(&workspace, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    for (size_t m = 0; m < KERNELS; m++)
        assert_int_equal(dcrf_model_add_kernel(model, &kernels[m], NULL), DCRF_OK);
    for (size_t k = 0; k < 2; k++) {
        dcrf_plan *plan;
        assert_int_equal(dcrf_plan_new(&plan, model, kinds[k], workspace, NULL), DCRF_OK);
        assert_fails(DCRF_ERROR_ARGUMENT, "there is no kernel 4", error,
                     dcrf_plan_reach(plan, KERNELS, workspace, &reach, &error));
        assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                     dcrf_plan_reach(plan, 0, workspace, NULL, &error));
        assert_true(reach == -1 || k > 0);
        for (size_t m = 0; m < KERNELS; m++) {
            const double expected = naive_reach(&grid, kernels[m]);
            assert_int_equal(dcrf_plan_reach(plan, m, workspace, &reach, NULL), DCRF_OK);
            if (!(fabs(reach - expected) <= 1e-4 * expected))
                fail_msg("kernel %zu reaches %.9g, not %.9g", m, reach, expected);
        }
        dcrf_plan_free(&plan);
    }
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_applies_all_kernels_without_their_diagonal),
        cmocka_unit_test(a_plan_knows_its_model),
        cmocka_unit_test(a_plan_knows_the_reach_of_its_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
