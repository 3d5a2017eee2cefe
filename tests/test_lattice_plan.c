/* The plan of a lattice against plain programs: points embedded one at a time, vertices in a sorted
 * list, neighbours by searching it.
 *
 * Which simplex holds a point is decided by rounding, so the programs for one point do the same
 * operations in the same order as those that take many, and bytes are compared. */
#include "dense.h"

#include "core/rng.h"
#include "filter/lattice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one point ------------------------------------------------------------------------------ */

struct point {
    int64_t origin[DCRF_MAX_CORNERS];
    int rank[DCRF_MAX_CORNERS];
    float weight[DCRF_MAX_CORNERS];
};

/* The rank of a coordinate: how many are larger, and of equal ones how many come before it; and
 * what the sum of the rounded coordinates is off. */
static void rank_by(const double *difference, size_t d, int excess, struct point *p) {
    for (size_t i = 0; i <= d; i++) {
        p->rank[i] = excess;
        for (size_t j = 0; j <= d; j++)
            p->rank[i] +=
                difference[j] > difference[i] || (difference[j] == difference[i] && j < i);
    }
}

/* These say whether the point fits. */
static bool embed_in_double(const double *factor, size_t d, const float *feature, struct point *p) {
    const double corners = (double)(d + 1);
    double elevated[DCRF_MAX_CORNERS], difference[DCRF_MAX_CORNERS], above = 0;
    double barycentric[DCRF_MAX_CORNERS + 1] = {0};
    int excess = 0;
    for (size_t i = d; i > 0; i--) {
        const double along = (double)feature[i - 1] * factor[i - 1];
        elevated[i] = above - (double)i * along;
        above += along;
    }
    elevated[0] = above;
    for (size_t i = 0; i <= d; i++) {
        if (!(fabs(elevated[i]) < 1073741824))
            return false;
        const double quotient = elevated[i] * (1 / corners);
        const int rounded = (int)(quotient + (quotient < 0 ? -0.5 : 0.5));
        p->origin[i] = (int64_t)rounded * (int64_t)(d + 1);
        difference[i] = elevated[i] - (double)p->origin[i];
        excess += rounded;
    }
    rank_by(difference, d, excess, p);
    for (size_t i = 0; i <= d; i++) {
        const int step = p->rank[i] < 0 ? 1 : p->rank[i] > (int)d ? -1 : 0;
        p->rank[i] += step * (int)(d + 1);
        p->origin[i] += step * (int)(d + 1);
        difference[i] -= step * corners;
        const double share = difference[i] * (1 / corners);
        barycentric[d - (size_t)p->rank[i]] += share;
        barycentric[d + 1 - (size_t)p->rank[i]] -= share;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    for (size_t k = 0; k <= d; k++)
        p->weight[k] = barycentric[k] > 0 ? (float)barycentric[k] : 0;
    return true;
}

static bool embed_in_single(const double *factor, size_t d, const float *feature, struct point *p) {
    const float corners = (float)(d + 1), per_corner = 1 / corners;
    double difference[DCRF_MAX_CORNERS]; /* floats */
    float elevated[DCRF_MAX_CORNERS], above = 0;
    float barycentric[DCRF_MAX_CORNERS + 1] = {0};
    int excess = 0;
    for (size_t i = d; i > 0; i--) {
        const float along = feature[i - 1] * (float)factor[i - 1];
        elevated[i] = above - (float)i * along;
        above += along;
    }
    elevated[0] = above;
    for (size_t i = 0; i <= d; i++) {
        if (!(fabsf(elevated[i]) < 1073741824))
            return false;
        const float rounded = nearbyintf(per_corner * elevated[i]);
        p->origin[i] = (int64_t)(rounded * corners);
        difference[i] = (double)(elevated[i] - rounded * corners);
        excess += (int)rounded;
    }
    rank_by(difference, d, excess, p);
    for (size_t i = 0; i <= d; i++) {
        const int step = p->rank[i] < 0 ? 1 : p->rank[i] > (int)d ? -1 : 0;
        p->rank[i] += step * (int)(d + 1);
        p->origin[i] += step * (int)(d + 1);
        if (p->rank[i] < 0 || p->rank[i] > (int)d)
            return false; /* roundings that do not sum to what they must */
        const float share = (elevated[i] - (float)p->origin[i]) * per_corner;
        barycentric[d - (size_t)p->rank[i]] += share;
        barycentric[d + 1 - (size_t)p->rank[i]] -= share;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    memcpy(p->weight, barycentric, (d + 1) * sizeof *p->weight);
    return true;
}

static bool embed_one(bool is_single, size_t d, const float *feature, struct point *p) {
    struct dcrf_embedding embedding;
    dcrf_embedding_init(&embedding, d, 1, is_single);
    return (is_single ? embed_in_single : embed_in_double)(embedding.factor, d, feature, p);
}

/* ---- a list of vertices --------------------------------------------------------------------- */

#define NONE SIZE_MAX

/* All d + 1 coordinates of each. */
struct vertices {
    size_t corners, count;
    int64_t *key;
};

static size_t compared; /* coordinates, by qsort and bsearch */

static int compare_keys(const void *one, const void *other) {
    const int64_t *a = one, *b = other;
    for (size_t i = 0; i < compared; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static void vertices_sort(struct vertices *list) {
    const size_t row = list->corners * sizeof *list->key;
    compared = list->corners;
    qsort(list->key, list->count, row, compare_keys);
    size_t kept = 0;
    for (size_t v = 0; v < list->count; v++)
        if (kept == 0 || compare_keys(list->key + (kept - 1) * list->corners,
                                      list->key + v * list->corners) != 0)
            memmove(list->key + kept++ * list->corners, list->key + v * list->corners, row);
    list->count = kept;
}

static size_t vertices_find(const struct vertices *list, const int64_t *key) {
    compared = list->corners;
    const int64_t *found =
        bsearch(key, list->key, list->count, list->corners * sizeof *key, compare_keys);
    return found ? (size_t)(found - list->key) / list->corners : NONE;
}

/* One step ahead (sign 1) or back (-1). */
static void step_key(const int64_t *key, size_t corners, size_t axis, int64_t sign, int64_t *next) {
    for (size_t i = 0; i < corners; i++)
        next[i] = key[i] + (i == axis ? -sign * (int64_t)(corners - 1) : sign);
}

/* Corner k by the definition: k is added to all coordinates, and d + 1 taken from the k whose ranks
 * are the highest. */
static void corner_key(const struct point *p, size_t corners, size_t k, int64_t *key) {
    for (size_t i = 0; i < corners; i++)
        key[i] = p->origin[i] + (int64_t)k -
                 (p->rank[i] > (int)(corners - 1 - k) ? (int64_t)corners : 0);
}

static void add_rings(struct vertices *list, size_t rings) {
    for (size_t ring = 0; ring < rings; ring++) {
        const size_t count = list->count, corners = list->corners;
        list->key = realloc(list->key, count * (1 + 2 * corners) * corners * sizeof *list->key);
        for (size_t v = 0; v < count; v++)
            for (size_t i = 0; i < 2 * corners; i++)
                step_key(list->key + v * corners, corners, i / 2, i % 2 ? 1 : -1,
                         list->key + list->count++ * corners);
        vertices_sort(list);
    }
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* number[i] is the lattice's number of vertex i of the list: known for those that variables touch,
 * and found for others as neighbours of those. */
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
    /* All numbers are there, each once; but for those that nothing leads to. */
    assert_true(has_strangers ? unknown <= corners : unknown == 0);
    size_t *seen = calloc(lattice->vertices, sizeof *seen);
    for (size_t i = 0; i < list->count; i++)
        if (number[i] != NONE)
            assert_int_equal(seen[number[i]]++, 0);
    /* Of strangers at least the number of links is known. */
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

/* Write the corners by variable that the runs stand for, each once. */
static void check_runs(const struct dcrf_lattice *lattice, uint32_t *vertex, float *weight) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t corners = lattice->corners, row = corners * sizeof(float);
    size_t *seen = calloc(lattice->base.variables, sizeof *seen);
    assert_int_equal(runs->first[0], 0);
    assert_int_equal(runs->first[runs->count], lattice->base.variables);
    assert_int_equal(runs->band[runs->band_count], runs->count);
    for (size_t band = 0; band < runs->band_count; band++)
        assert_int_equal(runs->first[runs->band[band]], band * runs->band_variables);
    for (size_t run = 0; run < runs->count; run++) {
        assert_true(runs->first[run] < runs->first[run + 1]);
        for (size_t place = runs->first[run]; place < runs->first[run + 1]; place++) {
            const size_t a = place - place % runs->band_variables + runs->variable[place];
            assert_true(runs->variable[place] < runs->band_variables);
            assert_int_equal(seen[a]++, 0);
            memcpy(vertex + a * corners, runs->vertex + run * corners, row);
            memcpy(weight + a * corners, runs->weight + place * corners, row);
        }
        /* In a band no simplex comes twice, and lowest vertices do not fall. */
        if (run == 0 || runs->first[run] % runs->band_variables == 0)
            continue;
        const uint32_t *here = runs->vertex + run * corners, *before = here - corners;
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

static void check_entries(const struct dcrf_lattice *lattice) {
    const size_t corners = lattice->corners, entries = lattice->base.variables * corners;
    assert_int_equal(lattice->first[0], 0);
    assert_int_equal(lattice->first[lattice->vertices], entries);
    for (size_t v = 0; v < lattice->vertices; v++)
        for (size_t e = lattice->first[v]; e < lattice->first[v + 1]; e++) {
            const size_t a = lattice->entry_variable[e];
            size_t k = 0;
            while (k < corners && lattice->corner_vertex[a * corners + k] != v)
                k++;
            assert_true(k < corners);
            assert_true(lattice->entry_weight[e] == lattice->corner_weight[a * corners + k]);
            assert_true(e == lattice->first[v] || lattice->entry_variable[e - 1] < a);
        }
}

static void check_plan(const struct dcrf_features *features, struct dcrf_refinement refinement,
                       dcrf_workspace *workspace, const char *what) {
    const size_t n = features->variables, d = features->dimension, corners = d + 1;
    dcrf_operator *op;
    assert_int_equal(dcrf_lattice_new_refined(&op, features, refinement, workspace, NULL), DCRF_OK);
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)op;
    struct point *points = malloc((n + 1) * sizeof *points);
    struct vertices list = {.corners = corners};
    list.key = malloc((n + 1) * corners * corners * sizeof *list.key);
    for (size_t a = 0; a < n + refinement.has_origin; a++) {
        float feature[DCRF_MAX_FEATURES] = {0};
        if (a < n)
            dcrf_features_row(features, a, feature);
        embed_one(refinement.is_single, d, feature, &points[a]);
        for (size_t k = 0; k < corners; k++)
            corner_key(&points[a], corners, k, list.key + list.count++ * corners);
    }
    vertices_sort(&list);
    add_rings(&list, refinement.rings);
    if (lattice->vertices != list.count)
        fail_msg("%s: %zu vertices, not %zu", what, lattice->vertices, list.count);
    size_t *number = malloc(list.count * sizeof *number);
    uint32_t *vertex = malloc(n * corners * sizeof *vertex);
    float *weight = malloc(n * corners * sizeof *weight);
    if (refinement.has_runs) {
        check_runs(lattice, vertex, weight);
    } else {
        check_entries(lattice);
        memcpy(vertex, lattice->corner_vertex, n * corners * sizeof *vertex);
        memcpy(weight, lattice->corner_weight, n * corners * sizeof *weight);
    }
    for (size_t i = 0; i < list.count; i++)
        number[i] = NONE;
    /* Rows of a ring are not vertices: test_lattice.c filters through them. */
    const bool has_ring = refinement.has_runs && lattice->ring.rows > 0;
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
        check_neighbours(lattice, &list, number, refinement.has_origin, what);
    free(vertex);
    free(weight);
    free(number);
    free(points);
    free(list.key);
    dcrf_operator_free(&op);
}

/* From points that share simplices to spreads of millions of sigmas, where a code takes several
 * words: all dimensions, both precisions, runs and entries, rings, and the origin. More than one
 * chunk of variables, and not a multiple of anything. */
static void plans_are_those_of_plain_programs(void **state) {
    (void)state;
    const double spreads[] = {0.5, 8, 3e3, 2e6};
    const size_t n = SANITIZED ? 150 : 400;
    dcrf_workspace *workspace = new_workspace(2);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (size_t s = 0; s < 4; s++)
            for (int is_single = 0; is_single < 2; is_single++) {
                /* Far out, single precision does not know in which simplex a point is. */
                const double spread = is_single && s == 3 ? 2e3 : spreads[s];
                const size_t points = d == 5 && s == 1 ? 9001 : d > 8 ? n / 4 + 3 : n + 3;
                float *values = random_block(points, d, -spread, spread, 31 * d + s);
                for (size_t i = 0; s == 1 && i < points * d; i++)
                    values[i] += 40;                        /* where the origin is a stranger */
                for (size_t i = 0; i < points * d / 5; i++) /* some on borders, some twice */
                    values[i] = i % 3 ? roundf(values[i]) : values[i + d];
                const dcrf_grid grid = dcrf_grid_1d(points);
                const dcrf_kernel kernel =
                    dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F32, &grid, d), 1);
                struct dcrf_features features;
                assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
                for (int turn = 0; turn < 5; turn++) {
                    const struct dcrf_refinement refinement = {.rounds = 1,
                                                               .is_single = is_single,
                                                               .has_runs = turn % 3 == 1,
                                                               .has_origin = turn == 3,
                                                               .rings = turn == 2 && d <= 4 ? 1 : 0,
                                                               .row_floats =
                                                                   turn == 0 ? 1 << 20 : 8};
                    char what[80];
                    snprintf(what, sizeof what, "d %zu, spread %g, %s, turn %d", d, spread,
                             is_single ? "single" : "double", turn);
                    check_plan(&features, refinement, workspace, what);
                }
                dcrf_features_clear(&features);
                free(values);
            }
    dcrf_workspace_free(&workspace);
}

/* ---- points, many at a time ----------------------------------------------------------------- */

/* Every set of instructions, to the last bit. Points at integers lie on borders; of points far out
 * some are refused. */
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
                dcrf_embedding_init(&embedding, d, 1, is_single);
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

/* ---- codes ---------------------------------------------------------------------------------- */

/* A vertex between the limits of the first d coordinates but one, some of them at the limits; the
 * last but one is what is left. */
static void draw_vertex(dcrf_rng *rng, size_t corners, const int64_t *least, const int64_t *largest,
                        int64_t *key) {
    const int64_t all = (int64_t)corners;
    const int64_t remainder = (int64_t)(dcrf_rng_next(rng) % corners);
    int64_t sum = 0;
    for (size_t i = 0; i < corners; i++) {
        if (i == corners - 2 && corners > 1)
            continue;
        const uint64_t where = dcrf_rng_next(rng) % 8;
        const double share = where < 2 ? (double)where : dcrf_rng_uniform(rng);
        const int64_t lowest = least[i] + all; /* so that rounding down stays inside */
        const int64_t value = lowest + (int64_t)(share * (double)(largest[i] - lowest - all));
        key[i] = value - ((value - remainder) % all + all) % all;
        sum += key[i];
    }
    key[corners - 2] = -sum;
}

/* Whatever the features between limits are, the fields have room for the corners of their simplices
 * and the neighbours of those; points at the limits go furthest. */
static void codes_have_room(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (int turn = 0; turn < 3000; turn++) {
            float least[DCRF_MAX_FEATURES], largest[DCRF_MAX_FEATURES], feature[DCRF_MAX_FEATURES];
            const double spread = pow(10, turn % 5);
            const size_t upwards = dcrf_rng_next(&rng) % (d + 1);
            for (size_t i = 0; i < d; i++) {
                least[i] = (float)(spread * (dcrf_rng_uniform(&rng) - 0.5));
                largest[i] = least[i] + (float)(spread * dcrf_rng_uniform(&rng));
                /* Coordinate k is at a limit where feature k - 1 is and those after it are at the
                 * other. */
                const bool is_high = (i >= upwards) == (turn % 2 == 0);
                feature[i] = is_high ? largest[i] : least[i];
                if (i + 1 == upwards)
                    feature[i] = turn % 2 == 0 ? least[i] : largest[i];
            }
            struct dcrf_embedding embedding;
            struct dcrf_code code;
            struct point p;
            int64_t low[DCRF_MAX_CORNERS], high[DCRF_MAX_CORNERS], key[DCRF_MAX_CORNERS];
            const bool is_single = turn / 2 % 2;
            dcrf_embedding_init(&embedding, d, 1, is_single);
            dcrf_embedding_range(&embedding, least, largest, low, high);
            dcrf_code_init(&code, d, low, high, 1);
            if (!embed_one(is_single, d, feature, &p))
                continue;
            for (size_t i = 0; i <= d; i++)
                if (p.origin[i] < low[i] || p.origin[i] > high[i])
                    fail_msg("d %zu, turn %d: coordinate %zu is %lld, not in %lld .. %lld", d, turn,
                             i, (long long)p.origin[i], (long long)low[i], (long long)high[i]);
            for (size_t k = 0; k <= d; k++) {
                corner_key(&p, d + 1, k, key);
                for (size_t i = 0; i <= d; i++) {
                    /* one ring around, and its neighbours */
                    assert_true(key[i] - 2 * (int64_t)d >= code.least[i]);
                    assert_true(key[i] + 2 * (int64_t)d <= code.largest[i]);
                }
            }
        }
    /* The limits of a code are those of its fields. */
    const int64_t low[] = {-5, -6, -7}, high[] = {5, 6, 7};
    struct dcrf_code code;
    dcrf_code_init(&code, 2, low, high, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(code.least[i], low[i] - 3 * 2);
        assert_int_equal(code.largest[i], high[i] + 3 * 2);
    }
    assert_int_equal(code.lowest[0], code.least[2]);
    assert_int_equal(code.lowest[1], code.least[0]);
    assert_true(code.lowest[0] + (int64_t)code.mask[0] >= code.largest[2]);
}

/* In the order of the fields; neighbours as found by searching. */
static void check_codes(size_t d, unsigned bits_of_field, size_t extra_bits, bool is_large,
                        size_t words) {
    const size_t corners = d + 1;
    const int64_t room = (int64_t)(2 * d), all = (int64_t)corners; /* two steps are left */
    int64_t least[DCRF_MAX_CORNERS], largest[DCRF_MAX_CORNERS];
    for (size_t i = 0; i < corners; i++) {
        /* Field 0 is coordinate d; the fields are as wide as they can be. */
        const unsigned bits = bits_of_field + (i == d && extra_bits > 0 ? (unsigned)extra_bits : 0);
        least[i] = -((int64_t)1 << (bits - 1)) + room;
        largest[i] = ((int64_t)1 << (bits - 1)) - 1 - room;
    }
    /* Coordinate d - 1 has no field and is what the others leave. */
    least[d - 1] = largest[d - 1] = 0;
    for (size_t i = 0; i < corners; i++)
        if (i != d - 1) {
            least[d - 1] -= largest[i];
            largest[d - 1] -= least[i];
        }
    struct dcrf_code code;
    dcrf_code_init(&code, d, least, largest, 0);
    assert_int_equal(code.words, words);
    struct vertices list = {.corners = corners, .count = 1200};
    list.key = malloc(list.count * corners * sizeof *list.key);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, d * 1000 + bits_of_field);
    for (size_t v = 0; v < list.count; v++) {
        int64_t *key = list.key + v * corners;
        if (v % 3 == 0 || d == 0) {
            draw_vertex(&rng, corners, least, largest, key);
            continue;
        }
        /* Many have neighbours: a step from the one before, unless that leads out. */
        step_key(key - corners, corners, dcrf_rng_next(&rng) % corners, v % 2 ? 1 : -1, key);
        for (size_t i = 0; i < corners; i++)
            if (i != d - 1 && (key[i] < least[i] || key[i] > largest[i])) {
                memcpy(key, key - corners, corners * sizeof *key);
                break;
            }
    }
    vertices_sort(&list);
    uint64_t *codes = malloc(list.count * code.words * sizeof *codes);
    uint64_t *taken = aligned_alloc(64, (list.count * code.words * sizeof *codes + 63) / 64 * 64);
    for (size_t v = 0; v < list.count; v++)
        dcrf_code_pack(&code, list.key + v * corners, codes + v * code.words);
    memcpy(taken, codes, list.count * code.words * sizeof *codes);
    struct dcrf_lattice_order order;
    assert_int_equal(dcrf_lattice_order_new(&order, &code, taken, list.count, is_large, NULL, NULL),
                     DCRF_OK);
    size_t *vertex = malloc(list.count * sizeof *vertex);
    for (size_t v = 0; v < list.count; v++)
        vertex[v] = NONE;
    for (size_t v = 0; v < list.count; v++) {
        assert_true(order.number[v] < list.count);
        assert_int_equal(vertex[order.number[v]], NONE);
        vertex[order.number[v]] = v;
    }
    for (size_t v = 1; v < list.count; v++) {
        const int64_t *one = list.key + vertex[v - 1] * corners;
        const int64_t *other = list.key + vertex[v] * corners;
        int64_t sign = 0;
        for (size_t i = 0; sign == 0 && i < d; i++) {
            const size_t k = is_large || d <= 2 ? (i == 0 ? d : i - 1) : d - 1 - i;
            sign = is_large || d <= 2
                       ? other[k] - one[k]
                       : (other[k] - other[k + 1]) / all - (one[k] - one[k + 1]) / all;
        }
        assert_true(sign > 0);
        assert_true(dcrf_lattice_order_layer(&order, v - 1) <= dcrf_lattice_order_layer(&order, v));
    }
    uint32_t *neighbours = malloc(2 * list.count * sizeof *neighbours);
    size_t found = 0;
    for (size_t axis = 0; axis < corners; axis++) {
        dcrf_lattice_order_connect(&order, list.count, axis, neighbours);
        for (size_t v = 0; v < list.count; v++)
            for (size_t direction = 0; direction < 2; direction++) {
                int64_t key[DCRF_MAX_CORNERS];
                step_key(list.key + v * corners, corners, axis, direction ? 1 : -1, key);
                const size_t expected = vertices_find(&list, key);
                const size_t there = neighbours[2 * order.number[v] + direction];
                assert_int_equal(there, expected == NONE ? list.count : order.number[expected]);
                found += expected != NONE;
            }
    }
    assert_true(found > list.count / 4); /* the test is about something */
    dcrf_lattice_order_clear(&order);
    free(neighbours);
    free(vertex);
    free(codes);
    free(list.key);
}

/* Fields that fill one word to the last bit, one bit more, and fields as wide as coordinates get.
 */
static void codes_order_and_connect(void **state) {
    (void)state;
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (int is_large = 0; is_large < 2; is_large++) {
            const unsigned bits = (unsigned)(64 / d < 33 ? 64 / d : 33);
            const size_t rest = 64 - d * bits;
            if (bits > 9) { /* there is room for steps */
                check_codes(d, bits, 0, is_large, 1);
                if (rest < 8 && d > 1)
                    check_codes(d, bits, rest, is_large, 1);
                if (rest < 8 && d > 1)
                    check_codes(d, bits, rest + 1, is_large, 2);
            }
            check_codes(d, 33, 0, is_large, d);
            check_codes(d, 20, 0, is_large, (d + 2) / 3);
        }
}

/* A table that grows: numbers by appearance, keys that stand in its own memory. */
static void tables_number_keys(void **state) {
    (void)state;
    for (size_t words = 1; words <= 4; words++) {
        struct dcrf_table table;
        const size_t count = 5000;
        uint64_t *keys = malloc(count * words * sizeof *keys);
        uint32_t *numbers = malloc(count * sizeof *numbers);
        dcrf_rng rng;
        dcrf_rng_seed(&rng, words);
        for (size_t i = 0; i < count * words; i++)
            keys[i] = dcrf_rng_next(&rng) % 3 << (dcrf_rng_next(&rng) % 4 * 17);
        for (int is_borrowed = 0; is_borrowed < 2; is_borrowed++) {
            uint64_t *own = malloc(count * words * sizeof *own);
            memcpy(own, keys, count * words * sizeof *own);
            assert_int_equal(dcrf_table_new(&table, words, is_borrowed ? own : NULL,
                                            is_borrowed ? count : 3, NULL),
                             DCRF_OK);
            assert_int_equal(
                dcrf_table_enter(&table, is_borrowed ? own : keys, count, numbers, NULL), DCRF_OK);
            size_t next = 0;
            for (size_t i = 0; i < count; i++) {
                size_t first = 0;
                while (memcmp(keys + first * words, keys + i * words, words * sizeof *keys) != 0)
                    first++;
                assert_int_equal(numbers[i], first == i ? next++ : numbers[first]);
                assert_memory_equal(table.keys + numbers[i] * words, keys + i * words,
                                    words * sizeof *keys);
            }
            assert_int_equal(table.count, next);
            dcrf_table_clear(&table);
            free(own);
        }
        free(keys);
        free(numbers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_embedded_alike),         cmocka_unit_test(codes_have_room),
        cmocka_unit_test(codes_order_and_connect),           cmocka_unit_test(tables_number_keys),
        cmocka_unit_test(plans_are_those_of_plain_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
