/* The division of a grid into tiles. */
#include "unit.h"

#include "core/rng.h"

#include <dcrf/dcrf.h>
#include <stdlib.h>

static size_t below(dcrf_rng *rng, size_t end) {
    return (size_t)(dcrf_rng_uniform(rng) * (double)end);
}

/* Every variable is in exactly one inner region, with the full overlap around it as far as the grid
 * goes. */
static void check_tiling(const dcrf_grid *grid, const size_t window[3], const size_t overlap[3]) {
    dcrf_tiling tiling;
    dcrf_error error;
    assert_int_equal(dcrf_tiling_make(&tiling, grid, window, overlap, &error), DCRF_OK);
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    uint8_t *seen = calloc(variables, 1);
    size_t largest = 0;
    for (size_t index = 0; index < dcrf_tiling_count(&tiling); index++) {
        const dcrf_tile tile = dcrf_tiling_tile(&tiling, index);
        const dcrf_grid part = dcrf_tiling_window(&tiling, &tile);
        assert_int_equal(tile.index, index);
        assert_int_equal(part.axes, grid->axes);
        for (size_t axis = 0; axis < 3; axis++) {
            const size_t size = grid->size[axis], begin = tile.first[axis] + tile.inner_first[axis];
            const size_t end = begin + tile.inner_size[axis];
            const size_t window_end = tile.first[axis] + tile.size[axis];
            assert_int_equal(part.size[axis], tile.size[axis]);
            assert_true(window[axis] == 0 || tile.size[axis] <= window[axis]);
            assert_true(tile.inner_size[axis] > 0 && window_end <= size);
            assert_true(tile.first[axis] == 0 || tile.inner_first[axis] == overlap[axis]);
            assert_true(window_end == size || window_end - end == overlap[axis]);
        }
        largest = tile.size[0] * tile.size[1] * tile.size[2] > largest
                      ? tile.size[0] * tile.size[1] * tile.size[2]
                      : largest;
        for (size_t z = 0; z < tile.inner_size[2]; z++)
            for (size_t y = 0; y < tile.inner_size[1]; y++)
                for (size_t x = 0; x < tile.inner_size[0]; x++) {
                    const size_t at[3] = {tile.first[0] + tile.inner_first[0] + x,
                                          tile.first[1] + tile.inner_first[1] + y,
                                          tile.first[2] + tile.inner_first[2] + z};
                    seen[(at[2] * grid->size[1] + at[1]) * grid->size[0] + at[0]]++;
                }
    }
    assert_int_equal(dcrf_tiling_largest(&tiling), largest);
    for (size_t a = 0; a < variables; a++)
        assert_int_equal(seen[a], 1);
    free(seen);
}

static void test_tiles_cover_the_grid_once(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 1);
    for (int k = 0; k < 300; k++) {
        const size_t axes = 1 + below(&rng, 3);
        dcrf_grid grid = dcrf_grid_3d(1 + below(&rng, 40), axes > 1 ? 1 + below(&rng, 40) : 1,
                                      axes > 2 ? 1 + below(&rng, 12) : 1);
        size_t window[3], overlap[3];
        grid.axes = axes;
        for (size_t axis = 0; axis < 3; axis++) {
            overlap[axis] = below(&rng, 6);
            window[axis] = k % 7 == 0 ? 0 : 2 * overlap[axis] + 1 + below(&rng, 20);
        }
        check_tiling(&grid, window, overlap);
    }
}

static void test_overlap_is_that_of_the_widest_kernel(void **state) {
    (void)state;
    dcrf_grid grid = dcrf_grid_3d(1000, 1000, 50);
    grid.spacing[2] = 2.5;
    const float colour = 0;
    const dcrf_view image = dcrf_view_interleaved(&colour, DCRF_F32, &grid, 1);
    const dcrf_kernel kernels[] = {dcrf_kernel_spatial(3, 1),
                                   dcrf_kernel_bilateral(10.1, 5, image, 1)};
    size_t overlap[3];
    dcrf_tiling_overlap(&grid, kernels, 2, 2, overlap);
    assert_int_equal(overlap[0], 21);
    assert_int_equal(overlap[1], 21);
    assert_int_equal(overlap[2], 9); /* 20.2 / 2.5, rounded up */
    dcrf_tiling_overlap(&grid, kernels, 2, 1e9, overlap);
    assert_int_equal(overlap[2], 50);
    dcrf_tiling_overlap(&grid, kernels, 0, 2, overlap);
    assert_int_equal(overlap[0], 0);
}

static void test_windows_need_room_for_their_overlap(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(100, 100);
    const size_t window[3] = {40, 100, 0}, overlap[3] = {20, 20, 0};
    dcrf_tiling tiling;
    dcrf_error error;
    assert_fails(DCRF_ERROR_SIZE, "windows of 40 along axis 0", error,
                 dcrf_tiling_make(&tiling, &grid, window, overlap, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_tiling_make(&tiling, NULL, window, overlap, &error));
    assert_int_equal(dcrf_tiling_count(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_cover_the_grid_once),
        cmocka_unit_test(test_overlap_is_that_of_the_widest_kernel),
        cmocka_unit_test(test_windows_need_room_for_their_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
