/* Geodesic distances against Dijkstra's algorithm without a queue, on grids of one, two and three
 * axes. */
#include "unit.h"

#include "scribble/geodesic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST_VARIABLES = 400 };

static uint32_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

struct case_of_grid {
    dcrf_grid grid;
    size_t variables;
    struct dcrf_neighbourhood neighbourhood;
    uint16_t lengths[MOST_VARIABLES * DCRF_GEODESIC_MOST_STEPS];
    int32_t seeds[MOST_VARIABLES];
};

static void place_of(const dcrf_grid *grid, size_t a, long place[3]) {
    place[0] = (long)(a % grid->size[0]);
    place[1] = (long)(a / grid->size[0] % grid->size[1]);
    place[2] = (long)(a / grid->size[0] / grid->size[1]);
}

/* The length of the step between two variables, found by its offset; 0 if they are not
 * neighbours. */
static uint32_t length_between(const struct case_of_grid *c, size_t a, size_t b) {
    const size_t first = a < b ? a : b, second = a < b ? b : a;
    long from[3], to[3];
    place_of(&c->grid, first, from);
    place_of(&c->grid, second, to);
    for (size_t k = 0; k < c->neighbourhood.steps; k++) {
        const int *offset = c->neighbourhood.offset[k];
        if (to[0] - from[0] == offset[0] && to[1] - from[1] == offset[1] &&
            to[2] - from[2] == offset[2])
            return c->lengths[first * c->neighbourhood.steps + k];
    }
    return 0;
}

/* O(N^2): the nearest unsettled variable, N times. */
static void naive_distances(const struct case_of_grid *c, int32_t seed, uint32_t *distances) {
    bool is_settled[MOST_VARIABLES] = {false};
    for (size_t a = 0; a < c->variables; a++)
        distances[a] = c->seeds[a] == seed ? 0 : DCRF_GEODESIC_FAR;
    for (size_t round = 0; round < c->variables; round++) {
        size_t nearest = c->variables;
        for (size_t a = 0; a < c->variables; a++)
            if (!is_settled[a] && distances[a] != DCRF_GEODESIC_FAR &&
                (nearest == c->variables || distances[a] < distances[nearest]))
                nearest = a;
        if (nearest == c->variables)
            return;
        is_settled[nearest] = true;
        for (size_t b = 0; b < c->variables; b++) {
            const uint32_t length = b == nearest ? 0 : length_between(c, nearest, b);
            if (length > 0 && distances[nearest] + length < distances[b])
                distances[b] = distances[nearest] + length;
        }
    }
}

static void compare(const struct case_of_grid *c, int32_t seed) {
    static uint32_t found[MOST_VARIABLES], wanted[MOST_VARIABLES];
    struct dcrf_geodesic_queue queue;
    struct dcrf_owned owned = {0};
    assert_true(dcrf_geodesic_queue_init(&queue, &owned, c->variables));
    dcrf_geodesic_distances(&c->grid, &c->neighbourhood, c->lengths, c->seeds, seed, &queue, found);
    dcrf_disown(&owned);
    naive_distances(c, seed, wanted);
    for (size_t a = 0; a < c->variables; a++)
        assert_int_equal(found[a], wanted[a]);
}

static void test_against_dijkstra(void **state) {
    (void)state;
    static struct case_of_grid c;
    const dcrf_grid grids[] = {dcrf_grid_1d(1),       dcrf_grid_1d(50),      dcrf_grid_2d(1, 40),
                               dcrf_grid_2d(40, 1),   dcrf_grid_2d(2, 2),    dcrf_grid_2d(11, 7),
                               dcrf_grid_3d(5, 1, 7), dcrf_grid_3d(2, 2, 2), dcrf_grid_3d(4, 5, 4),
                               dcrf_grid_3d(1, 1, 30)};
    /* Short lengths, long ones, and a mixture with the maximum. */
    const uint32_t most[] = {3, 200, DCRF_GEODESIC_MOST_LENGTH};
    uint64_t random = 1;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
        for (size_t m = 0; m < 3; m++)
            for (uint32_t sparse = 1; sparse < 50; sparse *= 7) {
                c.grid = grids[g];
                c.variables = c.grid.size[0] * c.grid.size[1] * c.grid.size[2];
                dcrf_neighbourhood_of(&c.grid, &c.neighbourhood);
                for (size_t i = 0; i < c.variables * c.neighbourhood.steps; i++)
                    c.lengths[i] = (uint16_t)(1 + draw(&random) % most[m]);
                for (size_t a = 0; a < c.variables; a++)
                    c.seeds[a] = draw(&random) % sparse == 0 ? (int32_t)(draw(&random) % 2) : -1;
                compare(&c, 0);
                compare(&c, 1);
                compare(&c, 2); /* no seeds: everything is far */
            }
}

static void test_neighbours(void **state) {
    (void)state;
    const size_t steps[] = {1, 4, 13};
    dcrf_grid grids[] = {dcrf_grid_1d(9), dcrf_grid_2d(9, 8), dcrf_grid_3d(9, 8, 7)};
    struct dcrf_neighbourhood n;
    for (size_t g = 0; g < 3; g++) {
        grids[g].spacing[0] = 0.5; /* the smallest spacing becomes one */
        grids[g].spacing[2] = 2;
        dcrf_neighbourhood_of(&grids[g], &n);
        assert_int_equal(n.steps, steps[g]);
        for (size_t k = 0; k < n.steps; k++) {
            const int *o = n.offset[k];
            assert_true(n.distance[k] > 0);
            assert_int_equal(n.distance[k], o[0] + 9 * (o[1] + 8 * o[2]));
            assert_true(fabs(n.length[k] - sqrt(o[0] * o[0] + 4 * o[1] * o[1] + 16 * o[2] * o[2])) <
                        1e-12);
        }
    }
}

/* A path longer than the maximum: far, and no endless loop. */
static void test_far(void **state) {
    (void)state;
    const size_t count = 10000;
    const dcrf_grid grid = dcrf_grid_1d(count);
    struct dcrf_neighbourhood n;
    struct dcrf_geodesic_queue queue;
    struct dcrf_owned owned = {0};
    uint16_t *lengths = malloc(count * sizeof *lengths);
    int32_t *seeds = malloc(count * sizeof *seeds);
    uint32_t *distances = malloc(count * sizeof *distances);
    assert_true(lengths && seeds && distances && dcrf_geodesic_queue_init(&queue, &owned, count));
    dcrf_neighbourhood_of(&grid, &n);
    for (size_t a = 0; a < count; a++) {
        lengths[a] = DCRF_GEODESIC_MOST_LENGTH;
        seeds[a] = a == 0 ? 0 : -1;
    }
    dcrf_geodesic_distances(&grid, &n, lengths, seeds, 0, &queue, distances);
    for (size_t a = 0; a < count; a++) {
        const uint64_t exact = (uint64_t)a * DCRF_GEODESIC_MOST_LENGTH;
        assert_true(distances[a] == (exact < DCRF_GEODESIC_FAR ? exact : DCRF_GEODESIC_FAR));
    }
    dcrf_disown(&owned);
    free(lengths);
    free(seeds);
    free(distances);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_dijkstra),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
