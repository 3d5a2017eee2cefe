/* The plan of a lattice against naive programs: points embedded one at a time, vertices in a sorted
 * list, neighbours found by searching it. Must be byte-identical. */
#include "dense.h"
#include "lattice_oracle.h"

#include "core/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plans ---------------------------------------------------------------------------------- */

/* number[i] is the lattice's number of vertex i of the list: known if a variable touches the
 * vertex, otherwise found through its neighbours. */
static void check_neighbours(const struct dcrf_lattice *lattice, const struct vertices *list,
                             size_t *number, bool has_strangers, const char *what) {
    const size_t corners = list->corners;
    size_t unknown = list->count, before = NONE;
    while (unknown > 0 && unknown < before) {
        before = unknown;
        unknown = 0;
        for (size_t i = 0; i < list->count; i++) {
            unknown += number[i] == NONE;
            for (size_t j = 0; number[i] != NONE && j < 2 * corners; j++) {
                int64_t key[DCRF_MAX_CORNERS];
                step_key(list->key + i * corners, corners, j / 2, j % 2 ? 1 : -1, key);
                const size_t expected = vertices_find(list, key);
                const size_t found = dcrf_lattice_neighbours(lattice, j / 2)[2 * number[i] + j % 2];
                if ((expected == NONE) != (found == lattice->vertices))
                    fail_msg("%s: a neighbour along axis %zu that %s", what, j / 2,
                             expected == NONE ? "there is not" : "was not found");
                if (expected == NONE)
                    continue;
                if (number[expected] == NONE)
                    number[expected] = found;
                assert_int_equal(number[expected], found);
            }
        }
    }
    /* All numbers occur exactly once, except those of unreachable vertices. */
    assert_true(has_strangers ? unknown <= corners : unknown == 0);
    size_t *seen = calloc(lattice->vertices, sizeof *seen);
    for (size_t i = 0; i < list->count; i++)
        if (number[i] != NONE)
            assert_int_equal(seen[number[i]]++, 0);
    /* For unreachable vertices, at least the number of links is checked. */
    size_t links = 0, expected_links = 0;
    for (size_t j = 0; has_strangers && j < 2 * corners; j++) {
        const uint32_t *neighbours = dcrf_lattice_neighbours(lattice, j / 2);
        for (size_t v = 0; v < lattice->vertices; v++)
            links += neighbours[2 * v + j % 2] != lattice->vertices;
        for (size_t i = 0; i < list->count; i++) {
            int64_t key[DCRF_MAX_CORNERS];
            step_key(list->key + i * corners, corners, j / 2, j % 2 ? 1 : -1, key);
            expected_links += vertices_find(list, key) != NONE;
        }
    }
    assert_int_equal(links, expected_links);
    free(seen);
}

/* The vertices of a run, whose rows may be copies of its group. */
static void run_vertices(const struct dcrf_lattice *lattice, size_t run, uint32_t *vertex) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const uint32_t *row = runs->vertex + run * lattice->corners;
    const size_t place = runs->first ? runs->first[run] : run;
    for (size_t k = 0; k < lattice->corners; k++) {
        vertex[k] = row[k];
        if (lattice->ring.rows > 0)
            continue;
        vertex[k] = dcrf_lattice_vertex(dcrf_lattice_names_at(lattice, place), row[k]);
        assert_true(vertex[k] < lattice->vertices);
    }
}

/* Write the corners per variable that the runs describe, each once. */
static void check_runs(const struct dcrf_lattice *lattice, uint32_t *vertex, float *weight) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t corners = lattice->corners, row = corners * sizeof(float);
    size_t *seen = calloc(lattice->base.variables, sizeof *seen);
    assert_int_equal(runs->first[0], 0);
    assert_int_equal(runs->first[runs->count], lattice->base.variables);
    assert_int_equal(runs->band[runs->band_count], runs->count);
    for (size_t band = 0; band < runs->band_count; band++)
        assert_int_equal(runs->first[runs->band[band]], band * runs->band_variables);
    uint32_t here[DCRF_MAX_CORNERS] = {0}, before[DCRF_MAX_CORNERS];
    for (size_t run = 0; run < runs->count; run++) {
        memcpy(before, here, row);
        run_vertices(lattice, run, here);
        assert_true(runs->first[run] < runs->first[run + 1]);
        for (size_t place = runs->first[run]; place < runs->first[run + 1]; place++) {
            const size_t a = place - place % runs->band_variables + runs->variable[place];
            assert_true(runs->variable[place] < runs->band_variables);
            assert_int_equal(seen[a]++, 0);
            memcpy(vertex + a * corners, here, row);
            memcpy(weight + a * corners, runs->weight + place * corners, row);
        }
        /* Within a band no simplex occurs twice, and the lowest vertices are nondecreasing. */
        if (run == 0 || runs->first[run] % runs->band_variables == 0)
            continue;
        uint32_t lowest[2] = {before[0], here[0]};
        for (size_t k = 1; k < corners; k++) {
            lowest[0] = before[k] < lowest[0] ? before[k] : lowest[0];
            lowest[1] = here[k] < lowest[1] ? here[k] : lowest[1];
        }
        if (lattice->ring.rows == 0)
            assert_true(lowest[0] <= lowest[1]);
        assert_true(memcmp(here, before, row) != 0);
    }
    free(seen);
}

/* The same if each variable is its own run. */
static void check_singles(const struct dcrf_lattice *lattice, uint32_t *vertex, float *weight) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    assert_null(runs->first);
    assert_int_equal(runs->count, n);
    assert_int_equal(runs->band[runs->band_count], n);
    for (size_t band = 0; band < runs->band_count; band++)
        assert_int_equal(runs->band[band], band * runs->band_variables);
    for (size_t a = 0; a < n; a++)
        run_vertices(lattice, a, vertex + a * corners);
    memcpy(weight, runs->weight, n * corners * sizeof *weight);
}

static void check_plan(const struct dcrf_features *features, struct dcrf_lattice_options options,
                       dcrf_workspace *workspace, const char *what) {
    const size_t n = features->variables, d = features->dimension, corners = d + 1;
    dcrf_operator *op;
    assert_int_equal(dcrf_lattice_new_with(&op, features, options, workspace, NULL), DCRF_OK);
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)op;
    struct point *points = malloc((n + 1) * sizeof *points);
    struct vertices list = {.corners = corners};
    list.key = malloc((n + 1) * corners * corners * sizeof *list.key);
    for (size_t a = 0; a < n + options.has_origin; a++) {
        float feature[DCRF_MAX_FEATURES] = {0};
        if (a < n)
            dcrf_features_row(features, a, feature);
        embed_one(options.is_single, d, feature, &points[a]);
        for (size_t k = 0; k < corners; k++)
            corner_key(&points[a], corners, k, list.key + list.count++ * corners);
    }
    vertices_sort(&list);
    if (lattice->vertices != list.count)
        fail_msg("%s: %zu vertices, not %zu", what, lattice->vertices, list.count);
    size_t *number = malloc(list.count * sizeof *number);
    uint32_t *vertex = malloc(n * corners * sizeof *vertex);
    float *weight = malloc(n * corners * sizeof *weight);
    if (options.runs)
        check_runs(lattice, vertex, weight);
    else
        check_singles(lattice, vertex, weight);
    for (size_t i = 0; i < list.count; i++)
        number[i] = NONE;
    /* Ring rows are not vertices; test_lattice.c tests filtering through them. */
    const bool has_ring = options.runs && lattice->ring.rows > 0;
    for (size_t a = 0; a < n; a++) {
        if (memcmp(points[a].weight, weight + a * corners, corners * sizeof(float)) != 0)
            fail_msg("%s: the weights of variable %zu", what, a);
        for (size_t k = 0; !has_ring && k < corners; k++) {
            int64_t key[DCRF_MAX_CORNERS];
            corner_key(&points[a], corners, k, key);
            const size_t i = vertices_find(&list, key);
            if (number[i] == NONE)
                number[i] = vertex[a * corners + k];
            assert_int_equal(number[i], vertex[a * corners + k]);
        }
    }
    /* The vertices of the origin may be far from all others. */
    if (!has_ring)
        check_neighbours(lattice, &list, number, options.has_origin, what);
    free(vertex);
    free(weight);
    free(number);
    free(points);
    free(list.key);
    dcrf_operator_free(&op);
}

/* From points that share simplices to spreads of millions of sigmas, where a code takes several
 * words: all dimensions, both precisions, runs of one variable and of several, and the origin. The
 * number of variables exceeds one chunk and is not a multiple of anything. */
static void plans_are_those_of_plain_programs(void **state) {
    (void)state;
    const double spreads[] = {0.5, 8, 3e3, 2e6};
    const size_t n = SANITIZED ? 150 : 400;
    dcrf_workspace *workspace = new_workspace(2);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (size_t s = 0; s < 4; s++)
            for (int is_single = 0; is_single < 2; is_single++) {
                /* Far out, single precision cannot tell in which simplex a point lies. */
                const double spread = is_single && s == 3 ? 2e3 : spreads[s];
                const size_t points = d == 5 && s == 1 ? 9001 : d > 8 ? n / 4 + 3 : n + 3;
                float *values = random_block(points, d, -spread, spread, 31 * d + s);
                for (size_t i = 0; s == 1 && i < points * d; i++)
                    values[i] += 40; /* makes the origin's vertices unreachable */
                for (size_t i = 0; i < points * d / 5; i++) /* some on borders, some duplicated */
                    values[i] = i % 3 ? roundf(values[i]) : values[i + d];
                const dcrf_grid grid = dcrf_grid_1d(points);
                const dcrf_kernel kernel =
                    dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F32, &grid, d), 1);
                struct dcrf_features features;
                assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
                for (int turn = 0; turn < 4; turn++) {
                    const struct dcrf_lattice_options options = {
                        .is_single = is_single,
                        .runs = turn % 3 == 1 ? &dcrf_lattice_by_runs : NULL,
                        .has_origin = turn == 3,
                        .row_floats = turn == 0 ? 1 << 20 : 8};
                    char what[80];
                    snprintf(what, sizeof what, "d %zu, spread %g, %s, turn %d", d, spread,
                             is_single ? "single" : "double", turn);
                    check_plan(&features, options, workspace, what);
                }
                dcrf_features_clear(&features);
                free(values);
            }
    dcrf_workspace_free(&workspace);
}

/* ---- points, many at a time ----------------------------------------------------------------- */

/* Every instruction set, bit-identical. Points at integers lie on borders; some points far out are
 * refused. */
static void points_are_embedded_alike(void **state) {
    (void)state;
    const dcrf_cpu before = dcrf_cpu_in_use();
    size_t refused = 0, far = 0;
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++) {
        if (!dcrf_dsp_for(cpu))
            continue;
        assert_int_equal(dcrf_cpu_limit(cpu, NULL), DCRF_OK);
        for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
            for (int turn = 0; turn < 400; turn++) {
                const bool is_single = turn % 2;
                const double spread = pow(10, turn % 11 - 1);
                float *values =
                    random_block(d, DCRF_EMBED_POINTS, -spread, spread, (uint64_t)turn * 17 + d);
                for (size_t i = 0; i < d * DCRF_EMBED_POINTS; i++)
                    values[i] = turn / 7 % 3 == 0 ? roundf(values[i]) : values[i];
                if (turn % 5 == 0)
                    values[(size_t)turn % DCRF_EMBED_POINTS] = turn % 3 ? 3e9f : -INFINITY;
                struct dcrf_embedding embedding;
                struct dcrf_points points;
                dcrf_embedding_init(&embedding, d, is_single);
                const size_t fit = dcrf_embed_points(&embedding, values, &points);
                for (size_t p = 0; p <= fit && p < DCRF_EMBED_POINTS; p++) {
                    struct point expected;
                    float feature[DCRF_MAX_FEATURES];
                    for (size_t i = 0; i < d; i++)
                        feature[i] = values[i * DCRF_EMBED_POINTS + p];
                    assert_int_equal(embed_one(is_single, d, feature, &expected), p < fit);
                    refused += p == fit;
                    for (size_t k = 0; p < fit && k <= d; k++) {
                        assert_int_equal(points.origin[k][p], expected.origin[k]);
                        assert_int_equal(points.rank[k][p], expected.rank[k]);
                        assert_memory_equal(&points.weight[k][p], &expected.weight[k],
                                            sizeof(float));
                        far += is_single && expected.origin[k] > (int64_t)d << 24;
                    }
                }
                free(values);
            }
    }
    assert_true(refused > 0 && far > 0);
    assert_int_equal(dcrf_cpu_limit(before, NULL), DCRF_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_embedded_alike),
        cmocka_unit_test(plans_are_those_of_plain_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
