/* Plans: all kernels of a model together. */
#include "scene.h"

#include "core/rng.h"
#include "filter/plan.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_applies_all_kernels_without_their_diagonal),
        cmocka_unit_test(a_plan_knows_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
