/* Moves of blobs against a naive program: connected components are found by propagating the
 * smallest number until nothing changes. */
#include "unit.h"

#include "core/rng.h"
#include "proof/blobs.h"

#include <dcrf/dcrf.h>
#include <stdlib.h>

enum { WIDTH = 9, HEIGHT = 8, PIXELS = WIDTH * HEIGHT, LABELS = 3, MOST_BLOBS = 24 };

struct scene {
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    struct dcrf_knowledge known;
};

static void make(struct scene *s, dcrf_rng *rng, size_t patch) {
    static float unary[PIXELS * LABELS];
    uint16_t labels[PIXELS], of_patch[PIXELS];
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 0.3);
    for (size_t k = 0; k < PIXELS * LABELS; k++)
        unary[k] = (float)dcrf_rng_uniform(rng);
    for (size_t a = 0; a < PIXELS; a++)
        of_patch[a] = (uint16_t)(dcrf_rng_next(rng) % LABELS);
    for (size_t a = 0; a < PIXELS; a++)
        labels[a] = of_patch[a / WIDTH / patch * WIDTH + a % WIDTH / patch];
    assert_int_equal(dcrf_model_new(&s->model, &grid, LABELS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(s->model, &energies, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(s->model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&s->workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&s->plan, s->model, DCRF_OPERATOR_EXACT, s->workspace, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_knowledge_init(&s->known, s->plan, s->workspace, labels, NULL), DCRF_OK);
    for (size_t a = 0; a < PIXELS; a++) {
        s->known.round[a] =
            (uint16_t)(dcrf_rng_next(rng) % 8 == 0 ? 1 + dcrf_rng_next(rng) % 2 : 0);
        for (size_t i = 0; i < LABELS; i++)
            s->known.possible[a * LABELS + i] = labels[a] == i || dcrf_rng_next(rng) % 6 > 0;
    }
}

static void drop(struct scene *s) {
    dcrf_knowledge_clear(&s->known);
    dcrf_plan_free(&s->plan);
    dcrf_workspace_free(&s->workspace);
    dcrf_model_free(&s->model);
}

static bool are_one(const struct dcrf_knowledge *known, const uint16_t *labels, size_t a,
                    size_t b) {
    return known->round[a] == 0 && known->round[b] == 0 && labels[a] == labels[b];
}

/* blob[a]: the smallest variable of a's component. */
static void find_blobs(const struct dcrf_knowledge *known, size_t *blob) {
    for (size_t a = 0; a < PIXELS; a++)
        blob[a] = a;
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t a = 0; a < PIXELS; a++)
            for (int side = 0; side < 2; side++) {
                const size_t b = side == 0 ? a + 1 : a + WIDTH;
                if ((side == 0 ? a % WIDTH + 1 == WIDTH : b >= PIXELS) ||
                    !are_one(known, known->labels, a, b) || blob[a] == blob[b])
                    continue;
                blob[a] = blob[b] = blob[a] < blob[b] ? blob[a] : blob[b];
                is_new = true;
            }
    }
}

/* The next in order: the largest remaining one, the first on ties; PIXELS: none. */
static size_t next_blob(const struct dcrf_knowledge *known, const size_t *blob, bool *is_used) {
    size_t best = PIXELS, most = 0;
    for (size_t first = 0; first < PIXELS; first++) {
        size_t size = 0;
        for (size_t a = 0; a < PIXELS; a++)
            size += known->round[a] == 0 && blob[a] == first;
        if (!is_used[first] && size > most) {
            best = first;
            most = size;
        }
    }
    if (best < PIXELS)
        is_used[best] = true;
    return best;
}

static double energy_of(const struct scene *s, const uint16_t *labels) {
    dcrf_energy energy;
    assert_int_equal(dcrf_energy_of_labels(s->plan, s->workspace, labels, &energy, NULL, 0, NULL),
                     DCRF_OK);
    return energy.total;
}

/* Returns the number of improving moves. */
static size_t move_plainly(const struct scene *s, const size_t *blob, uint16_t *labels,
                           double *energy) {
    const struct dcrf_knowledge *known = &s->known;
    bool is_used[PIXELS] = {false};
    size_t good = 0, first = 0;
    for (size_t k = 0; k < MOST_BLOBS && (first = next_blob(known, blob, is_used)) < PIXELS; k++)
        for (uint16_t i = 0; i < LABELS; i++) {
            uint16_t trial[PIXELS];
            for (size_t a = 0; a < PIXELS; a++)
                trial[a] =
                    known->round[a] == 0 && blob[a] == first && known->possible[a * LABELS + i]
                        ? i
                        : labels[a];
            if (energy_of(s, trial) < *energy) {
                *energy = energy_of(s, trial);
                memcpy(labels, trial, sizeof trial);
                good++;
            }
        }
    return good;
}

static void moves_are_those_of_a_plain_program(void **state) {
    (void)state;
    size_t all = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct scene s;
        struct dcrf_groups groups = {.known = &s.known};
        uint16_t labels[PIXELS];
        size_t blob[PIXELS];
        bool is_better;
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        make(&s, &rng, 1 + seed % 4);
        memcpy(labels, s.known.labels, sizeof labels);
        find_blobs(&s.known, blob);
        double energy = energy_of(&s, labels), expected = energy;
        const size_t good = move_plainly(&s, blob, labels, &expected);
        assert_int_equal(dcrf_blobs_move(&groups, &energy, &is_better, NULL), DCRF_OK);
        assert_memory_equal(s.known.labels, labels, sizeof labels);
        assert_true(energy == expected);
        assert_int_equal(is_better, good > 0);
        all += good;
        drop(&s);
    }
    assert_true(all > 100);
}

static bool at_once(void *user) {
    (void)user;
    return true;
}

/* Without time nothing is tried. */
static void moves_end_when_told(void **state) {
    (void)state;
    struct scene s;
    struct dcrf_groups groups = {.known = &s.known, .is_over = at_once};
    uint16_t labels[PIXELS];
    bool is_better;
    double energy = 1e9;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 1);
    make(&s, &rng, 2);
    memcpy(labels, s.known.labels, sizeof labels);
    assert_int_equal(dcrf_blobs_move(&groups, &energy, &is_better, NULL), DCRF_OK);
    assert_memory_equal(s.known.labels, labels, sizeof labels);
    assert_false(is_better);
    drop(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_are_those_of_a_plain_program),
        cmocka_unit_test(moves_end_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
