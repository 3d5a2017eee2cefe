/* How work is divided among threads, counted in chunks: detects a stage that becomes serial or
 * whose tasks become uneven, on any machine. */
#include "unit.h"

#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"
#include "core/workspace.h"
#include "densecrf/densecrf.h"
#include "energy/coupling.h"
#include "energy/energy_double.h"
#include "model/model.h"
#include "round/polisher.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* 49 x 1024 variables, which 16 threads would process 1024 at a time in four rounds. */
#define WIDTH 256
#define HEIGHT 196
#define VARIABLES (WIDTH * HEIGHT)
#define THREADS 16
#define MOST_LOOPS 4096
/* Rows per chunk when vertices are cleared, joined or copied. */
#define MOST_ROWS 512

/* A picture with edges and grain. */
static unsigned char *draw_picture(void) {
    unsigned char *rgb = malloc(VARIABLES * 3);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 3);
    for (size_t a = 0; a < VARIABLES; a++)
        for (size_t c = 0; c < 3; c++)
            rgb[a * 3 + c] = (unsigned char)((a % WIDTH / 50 * 40 + a / WIDTH / 40 * (20 + 9 * c)) +
                                             dcrf_rng_next(&rng) % 30);
    return rgb;
}

static dcrf_densecrf *new_crf(dcrf_workspace *workspace, const unsigned char *rgb, size_t labels,
                              double sigma, double colour) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3);
    const dcrf_kernel kernels[2] = {dcrf_kernel_spatial(3, 1),
                                    dcrf_kernel_bilateral(sigma, colour, image, 1)};
    const float weight = 3;
    dcrf_densecrf *crf;
    assert_int_equal(dcrf_densecrf_new(&crf, &grid, labels, NULL), DCRF_OK);
    for (size_t m = 0; m < 2; m++)
        assert_int_equal(dcrf_densecrf_add_kernel(crf, workspace, &kernels[m],
                                                  DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS,
                                                  &weight, NULL),
                         DCRF_OK);
    return crf;
}

/* ---- sectors -------------------------------------------------------------------------------- */

/* There is a sector for every thread, none has many more variables than others, and no two sectors
 * add to the same row. */
static void check_sectors(const struct dcrf_lattice *lattice, size_t threads) {
    const struct dcrf_lattice_sectors *sectors = &lattice->runs.sectors;
    const size_t bands = lattice->runs.band_count, corners = lattice->corners;
    size_t *owner = calloc(dcrf_lattice_rows(lattice), sizeof *owner), copies = 0;
    assert_int_equal(sectors->count, bands < THREADS ? bands : THREADS);
    assert_true(sectors->is_joint == (threads <= 2));
    for (size_t g = 0; g < sectors->count; g++) {
        const size_t first = dcrf_lattice_sector_first(lattice, g),
                     last = dcrf_lattice_sector_first(lattice, g + 1);
        const size_t most = (last - first) * lattice->runs.band_variables * sectors->count;
        assert_true(last > first && (double)most <= VARIABLES * 1.04);
        assert_int_equal(sectors->sector[g].first_row, copies);
        copies += sectors->sector[g].rows;
        for (size_t e = lattice->runs.band[first] * corners; e < lattice->runs.band[last] * corners;
             e++) {
            const size_t row = lattice->runs.vertex[e];
            if (!sectors->is_joint) { /* in memory of its own */
                assert_true(row < sectors->sector[g].rows);
                continue;
            }
            assert_true(owner[row] == 0 || owner[row] == g + 1);
            owner[row] = g + 1;
        }
    }
    assert_int_equal(dcrf_lattice_rows(lattice),
                     lattice->vertices + 1 + (sectors->is_joint ? copies : 0));
    assert_int_equal(dcrf_lattice_copies(lattice), sectors->is_joint ? 0 : copies);
    free(owner);
}

/* What is splat to the vertices, sectors in order or the last one first. */
static float *splat(const struct dcrf_lattice *lattice, const float *in, size_t width,
                    bool is_alone) {
    const size_t count = lattice->runs.sectors.count, step = lattice->runs.band_variables * width;
    struct dcrf_lattice_sums sums = {.lattice = lattice, .width = width, .is_alone = is_alone};
    float *vertices = malloc(dcrf_lattice_rows(lattice) * width * sizeof *vertices);
    sums.vertices = vertices;
    sums.copies = malloc((dcrf_lattice_copies(lattice) + 1) * width * sizeof *vertices);
    dcrf_lattice_sums_start(&sums, 1, NULL);
    for (size_t i = 0; i < count; i++) {
        const size_t sector = is_alone ? i : count - 1 - i;
        float *rows = dcrf_lattice_sums_begin(&sums, sector);
        assert_ptr_equal(rows, dcrf_lattice_sums_rows(&sums, sector));
        for (size_t band = dcrf_lattice_sector_first(lattice, sector);
             band < dcrf_lattice_sector_first(lattice, sector + 1); band++)
            dcrf_lattice_splat_band(lattice, band, in + band * step, width, width, rows);
        dcrf_lattice_sums_end(&sums, sector);
    }
    dcrf_lattice_sums_join(&sums, 1, NULL);
    free(sums.copies);
    return vertices;
}

/* The sums are the same in either layout and order. */
static void check_splat(const struct dcrf_lattice *joint, const struct dcrf_lattice *separate,
                        size_t width) {
    float *in = malloc(VARIABLES * width * sizeof *in);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 4);
    for (size_t i = 0; i < VARIABLES * width; i++)
        in[i] = (float)dcrf_rng_uniform(&rng);
    float *expected = splat(joint, in, width, true);
    for (size_t turn = 0; turn < 3; turn++) {
        float *sums = splat(turn == 0 ? joint : separate, in, width, turn == 2);
        assert_memory_equal(sums, expected, joint->vertices * width * sizeof *sums);
        free(sums);
    }
    free(in);
    free(expected);
}

static void splats_are_divided_evenly(void **state) {
    (void)state;
    const size_t threads[2] = {1, THREADS};
    unsigned char *rgb = draw_picture();
    for (size_t labels = 3; labels <= 21; labels += 18) {
        dcrf_workspace *workspace[2];
        dcrf_densecrf *crf[2];
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(dcrf_workspace_new(&workspace[i], threads[i], NULL), DCRF_OK);
            crf[i] = new_crf(workspace[i], rgb, labels, 60, 12);
        }
        for (size_t m = 0; m < 2 && !crf[0]->on_device; m++) {
            const struct dcrf_lattice *lattice[2];
            for (size_t i = 0; i < 2; i++) {
                lattice[i] = dcrf_densecrf_lattice(&crf[i]->terms[m]);
                check_sectors(lattice[i], threads[i]);
            }
            check_splat(lattice[0], lattice[1], labels == 3 ? 4 : 24);
            check_splat(lattice[0], lattice[1], labels == 3 ? 2 : 8);
        }
        for (size_t i = 0; i < 2; i++) {
            dcrf_densecrf_free(&crf[i]);
            dcrf_workspace_free(&workspace[i]);
        }
    }
    free(rgb);
}

/* ---- mean field ----------------------------------------------------------------------------- */

struct loops {
    atomic_size_t count;
    atomic_size_t chunks[MOST_LOOPS];
    atomic_size_t largest[MOST_LOOPS]; /* chunk */
    size_t indices[MOST_LOOPS];
    bool is_brief[MOST_LOOPS]; /* no thread is woken for it */
};

static void count_chunks(void *user, const struct dcrf_chunk *chunk) {
    struct loops *loops = user;
    if (chunk->is_done || chunk->loop >= MOST_LOOPS)
        return;
    if (chunk->is_loop) {
        loops->indices[chunk->loop] = chunk->end;
        loops->is_brief[chunk->loop] = chunk->is_brief;
        atomic_store(&loops->count, chunk->loop + 1);
    } else {
        atomic_fetch_add(&loops->chunks[chunk->loop], 1);
        if (chunk->begin == 0) /* only the last one can be smaller */
            atomic_store(&loops->largest[chunk->loop], chunk->end);
    }
}

/* The indices of the thread that has most, if each takes the next chunk when it has done one. */
static size_t largest_share(const struct loops *loops, size_t loop) {
    const size_t chunks = atomic_load(&loops->chunks[loop]);
    const size_t grain = atomic_load(&loops->largest[loop]);
    const size_t last = loops->indices[loop] - (chunks - 1) * grain;
    const size_t rounds = (chunks - 1) / THREADS; /* before the last one */
    return rounds * grain + (chunks % THREADS == 1 ? last : grain);
}

/* Loops over all variables have about equal shares. */
#define MOST_UNEVEN 1.1
static void check_shares(const struct loops *loops, size_t loop) {
    const size_t share = largest_share(loops, loop);
    if (loops->indices[loop] == VARIABLES && (double)(share * THREADS) > MOST_UNEVEN * VARIABLES)
        fail_msg("loop %zu: one thread has %zu of %d variables", loop, share, VARIABLES);
}

/* From loop `first` on, only loops over few rows of vertices have fewer chunks than threads. There
 * are not many loops: threads wait for each other at the end of each. */
static void check_loops(const struct loops *loops, size_t first, size_t least, size_t most) {
    const size_t count = atomic_load(&loops->count);
    if (count < least || count > most)
        fail_msg("%zu loops, not %zu to %zu", count, least, most);
    for (size_t i = first; i < count; i++) {
        const size_t indices = loops->indices[i], chunks = atomic_load(&loops->chunks[i]);
        const bool is_small = indices > THREADS && chunks * MOST_ROWS >= indices;
        if (chunks < THREADS && !is_small)
            fail_msg("loop %zu: %zu indices in %zu chunks", i, indices, chunks);
        check_shares(loops, i);
    }
}

static void every_stage_of_mean_field_is_divided(void **state) {
    (void)state;
    unsigned char *rgb = draw_picture();
    const size_t labels = 21;
    float *q = malloc(VARIABLES * labels * sizeof *q);
    struct loops *loops = calloc(1, sizeof *loops);
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    dcrf_densecrf *crf = new_crf(workspace, rgb, labels, 60, 12);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    assert_int_equal(
        dcrf_densecrf_infer(crf, workspace, 5, q, VARIABLES * labels, NULL, NULL, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), NULL, NULL);
    if (!crf->on_device)
        check_loops(loops, 1, 5 * 8, 5 * 8 + 4); /* the first loop inspects a few bands */
    dcrf_densecrf_free(&crf);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(rgb);
    free(q);
}

/* A small picture wakes few threads: the others take longer to wake than its loops. */
static void small_pictures_wake_few_threads(void **state) {
    (void)state;
    enum { SIDE = 41, LABELS = 21, MOST_WOKEN = 3 };
    unsigned char *rgb = draw_picture();
    const dcrf_grid grid = dcrf_grid_2d(SIDE, SIDE);
    const dcrf_view image = dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3);
    const dcrf_kernel kernels[2] = {dcrf_kernel_spatial(3, 1),
                                    dcrf_kernel_bilateral(60, 12, image, 1)};
    const float weight = 3;
    float *q = malloc(SIDE * SIDE * LABELS * sizeof *q);
    struct loops *loops = calloc(1, sizeof *loops);
    dcrf_workspace *workspace;
    dcrf_densecrf *crf;
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&crf, &grid, LABELS, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    for (size_t m = 0; m < 2; m++)
        assert_int_equal(dcrf_densecrf_add_kernel(crf, workspace, &kernels[m],
                                                  DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS,
                                                  &weight, NULL),
                         DCRF_OK);
    assert_int_equal(
        dcrf_densecrf_infer(crf, workspace, 5, q, SIDE * SIDE * LABELS, NULL, NULL, NULL), DCRF_OK);
    size_t brief = 0;
    for (size_t i = 0; i < atomic_load(&loops->count); i++) {
        const size_t chunks = atomic_load(&loops->chunks[i]);
        brief += loops->is_brief[i];
        if (!loops->is_brief[i] && chunks > 1 + MOST_WOKEN)
            fail_msg("loop %zu of %zu: %zu indices in %zu chunks", i, atomic_load(&loops->count),
                     loops->indices[i], chunks);
    }
    assert_true(crf->on_device || brief >= 5 * 7); /* blurs and the joins before them */
    dcrf_densecrf_free(&crf);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(rgb);
    free(q);
}

/* Unaries are put in order by all threads, into the same bytes as by one. */
static void unaries_of_the_drop_in_are_divided(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const size_t labels = 21;
    float *unary = malloc(VARIABLES * labels * sizeof *unary);
    struct loops *loops = calloc(1, sizeof *loops);
    const dcrf_view energies = dcrf_view_planar(unary, DCRF_F32, &grid, labels);
    dcrf_workspace *workspace;
    dcrf_densecrf *one, *many;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t i = 0; i < VARIABLES * labels; i++)
        unary[i] = (float)dcrf_rng_uniform(&rng);
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&one, &grid, labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&many, &grid, labels, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    assert_int_equal(dcrf_densecrf_set_unary_with(many, workspace, &energies, NULL), DCRF_OK);
    assert_true(atomic_load(&loops->chunks[0]) >= THREADS);
    assert_int_equal(dcrf_densecrf_set_unary(one, &energies, NULL), DCRF_OK);
    assert_memory_equal(one->unary, many->unary,
                        dcrf_densecrf_unary_floats(one) * sizeof *one->unary);
    unary[VARIABLES + 7] = (float)INFINITY; /* found by whichever thread */
    assert_int_equal(dcrf_densecrf_set_unary_with(many, workspace, &energies, NULL),
                     DCRF_ERROR_NOT_FINITE);
    dcrf_densecrf_free(&one);
    dcrf_densecrf_free(&many);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(unary);
}

static void unaries_of_models_are_divided(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const size_t labels = 5;
    float *unary = calloc(VARIABLES * labels, sizeof *unary);
    struct loops *loops = calloc(1, sizeof *loops);
    const dcrf_view energies = dcrf_view_planar(unary, DCRF_F32, &grid, labels);
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_error error;
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, labels, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    unary[3 * VARIABLES + 2 * WIDTH + 7] = (float)NAN;
    unary[1 * VARIABLES + 100 * WIDTH + 9] = (float)NAN;
    assert_int_equal(dcrf_model_set_unary_with(model, workspace, &energies, &error),
                     DCRF_ERROR_NOT_FINITE);
    assert_non_null(strstr(error.message, "x = 7, y = 2")); /* the first, whoever finds it */
    assert_true(atomic_load(&loops->chunks[0]) >= THREADS);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(unary);
}

static void unaries_of_arrays_are_divided(void **state) {
    (void)state;
    const size_t labels = 5;
    float *unary = calloc(VARIABLES * labels, sizeof *unary);
    struct loops *loops = calloc(1, sizeof *loops);
    unsigned char *map = malloc(VARIABLES);
    dcrf_workspace *workspace;
    dcrf_arrays arrays;
    dcrf_arrays_defaults(&arrays);
    arrays.grid = dcrf_grid_2d(WIDTH, HEIGHT);
    arrays.unary = dcrf_view_planar(unary, DCRF_F32, &arrays.grid, labels);
    arrays.labels = dcrf_output_planar(map, DCRF_U8, &arrays.grid, 1);
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    assert_int_equal(dcrf_mean_field_arrays(workspace, &arrays, NULL), DCRF_OK);
    assert_int_equal(loops->indices[0], HEIGHT); /* lines */
    assert_true(atomic_load(&loops->chunks[0]) >= THREADS);
    dcrf_workspace_free(&workspace);
    free(unary);
    free(loops);
    free(map);
}

struct observed {
    dcrf_pool *pool;
    struct loops *loops;
};

static int observe_later(void *user, const dcrf_moment *moment) {
    const struct observed *observed = user;
    if (moment->iteration == 1)
        dcrf_pool_observe(observed->pool, count_chunks, observed->loops);
    if (moment->iteration == 5)
        dcrf_pool_observe(observed->pool, NULL, NULL);
    return 0;
}

/* A model of the picture, whose unary energies are random, and its plan. */
static dcrf_plan *new_plan(dcrf_workspace *workspace, size_t labels, dcrf_model **model) {
    unsigned char *rgb = draw_picture();
    float *unary = malloc(VARIABLES * labels * sizeof *unary);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view energies = dcrf_view_planar(unary, DCRF_F32, &grid, labels);
    const dcrf_kernel kernels[2] = {
        dcrf_kernel_spatial(3, 1),
        dcrf_kernel_bilateral(60, 12, dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3), 1)};
    dcrf_plan *plan;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 6);
    for (size_t i = 0; i < VARIABLES * labels; i++)
        unary[i] = (float)dcrf_rng_uniform(&rng);
    assert_int_equal(dcrf_model_new(model, &grid, labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(*model, &energies, NULL), DCRF_OK);
    for (size_t m = 0; m < 2; m++)
        assert_int_equal(dcrf_model_add_kernel(*model, &kernels[m], NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, *model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
    free(unary);
    free(rgb);
    return plan;
}

/* Both operators apply the ordered filter, whose tiles must not depend on the threads, in as many
 * parts. */
static void ordered_filters_are_divided(void **state) {
    (void)state;
    unsigned char *bin = malloc(VARIABLES);
    float *out = malloc(VARIABLES * sizeof *out);
    dcrf_workspace *workspace;
    dcrf_model *model;
    for (size_t a = 0; a < VARIABLES; a++)
        bin[a] = (unsigned char)(a / 37 % 24);
    const struct dcrf_ordered channel = {.bins = 24, .bin = bin, .out = out};
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    dcrf_plan *plan = new_plan(workspace, 2, &model);
    struct loops *loops = calloc(1, sizeof *loops);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    for (size_t m = 0; m < 2; m++) {
        const dcrf_operator *op = dcrf_plan_operator(plan, m);
        assert_int_equal(op->methods->ordered(op, workspace, &channel, NULL), DCRF_OK);
    }
    /* The grid is one loop. The lattice splats and joins weights, then histograms, and rounds them;
     * five steps blur both orders, then one; histograms are weighed and sliced. */
    check_loops(loops, 0, 2, 1 + 2 + 3 + 6 + 2);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(bin);
    free(out);
}

/* All loops over variables, from the second step on: the first one takes memory. */
static void steps_of_the_lp_are_divided(void **state) {
    (void)state;
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    dcrf_plan *plan = new_plan(workspace, 5, &model);
    struct loops *loops = calloc(1, sizeof *loops);
    uint16_t *labels = malloc(VARIABLES * sizeof *labels);
    assert_int_equal(dcrf_label_by_unary(model, labels, VARIABLES, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_start_labels(solver, labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_step(solver, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
    assert_int_equal(dcrf_solver_step(solver, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_step(solver, NULL), DCRF_OK);
    for (size_t i = 0; i < atomic_load(&loops->count); i++)
        if (loops->indices[i] == VARIABLES) {
            assert_true(atomic_load(&loops->chunks[i]) >= THREADS);
            check_shares(loops, i);
        }
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(labels);
}

/* The tables of polishing are filled, and labels changed, by all threads; the bytes are those of
 * one thread. */
static void polishing_is_divided(void **state) {
    (void)state;
    enum { LABELS = 21, ENTRIES = LABELS * LABELS };
    double unary[2][ENTRIES], mass[2][ENTRIES];
    size_t size[2][LABELS], changed[2];
    uint16_t *labels = malloc(VARIABLES * sizeof *labels);
    for (size_t a = 0; a < VARIABLES; a++)
        labels[a] = (uint16_t)(a / 37 % LABELS);
    for (size_t i = 0; i < 2; i++) {
        struct loops *loops = calloc(1, sizeof *loops);
        dcrf_workspace *workspace;
        dcrf_model *model;
        struct dcrf_coupling *coupling;
        struct dcrf_polisher *polisher;
        assert_int_equal(dcrf_workspace_new(&workspace, i == 0 ? 1 : THREADS, NULL), DCRF_OK);
        dcrf_plan *plan = new_plan(workspace, LABELS, &model);
        assert_int_equal(dcrf_coupling_new(&coupling, plan, workspace, NULL), DCRF_OK);
        assert_int_equal(dcrf_polisher_new(&polisher, coupling, NULL), DCRF_OK);
        assert_int_equal(dcrf_polisher_load(polisher, labels, 10, NULL), DCRF_OK);
        const struct dcrf_backend_moves_methods *methods = polisher->methods;
        dcrf_pool_observe(dcrf_workspace_pool(workspace), count_chunks, loops);
        assert_int_equal(methods->tables(polisher->moves, unary[i], mass[i], size[i], NULL),
                         DCRF_OK);
        assert_int_equal(methods->find_gains(polisher->moves, false, NULL), DCRF_OK);
        assert_int_equal(methods->change(polisher->moves, false, 5, 1, &changed[i], NULL), DCRF_OK);
        check_loops(loops, 0, 3, MOST_LOOPS);
        double sum = 0, expected = 0; /* plainly */
        for (size_t k = 0; k < ENTRIES; k++)
            sum += unary[i][k];
        for (size_t a = 0; a < VARIABLES; a++)
            for (size_t k = 0; k < LABELS; k++)
                expected += (double)model->unary[a * model->stride + k];
        assert_true(fabs(sum - expected) < 1e-9 * expected);
        dcrf_polisher_free(&polisher);
        dcrf_coupling_free(&coupling);
        dcrf_plan_free(&plan);
        dcrf_model_free(&model);
        dcrf_workspace_free(&workspace);
        free(loops);
    }
    assert_memory_equal(unary[0], unary[1], sizeof unary[0]);
    assert_memory_equal(mass[0], mass[1], sizeof mass[0]);
    assert_memory_equal(size[0], size[1], sizeof size[0]);
    assert_true(changed[0] == changed[1] && changed[0] > 0);
    free(labels);
}

/* Loops over all variables. */
static size_t count_whole(const struct loops *loops) {
    size_t whole = 0;
    for (size_t i = 0; i < atomic_load(&loops->count); i++)
        whole += loops->indices[i] == VARIABLES;
    return whole;
}

/* Diagonals, and an energy in double, are computed by all threads, into the bytes of one. */
static void diagonals_and_energies_are_divided(void **state) {
    (void)state;
    uint16_t *labels = malloc(VARIABLES * sizeof *labels);
    float *diagonal = malloc(VARIABLES * sizeof *diagonal);
    double energy[2][4];
    for (size_t a = 0; a < VARIABLES; a++)
        labels[a] = (uint16_t)(a / 37 % 11);
    for (size_t i = 0; i < 2; i++) {
        struct loops *loops = calloc(3, sizeof *loops);
        dcrf_workspace *workspace;
        dcrf_model *model;
        struct dcrf_coupling *coupling;
        dcrf_energy found;
        assert_int_equal(dcrf_workspace_new(&workspace, i == 0 ? 1 : THREADS, NULL), DCRF_OK);
        dcrf_plan *plan = new_plan(workspace, 21, &model);
        dcrf_pool *pool = dcrf_workspace_pool(workspace);
        dcrf_pool_observe(pool, count_chunks, &loops[0]);
        assert_int_equal(dcrf_coupling_new(&coupling, plan, workspace, NULL), DCRF_OK);
        assert_int_equal(count_whole(&loops[0]), 1);
        check_loops(&loops[0], 0, 1, 1);
        const size_t made = atomic_load(&loops[0].count);
        dcrf_pool_observe(pool, count_chunks, &loops[1]);
        assert_int_equal(dcrf_operator_diagonal(dcrf_plan_operator(plan, 0), workspace, diagonal,
                                                VARIABLES, NULL),
                         DCRF_OK);
        assert_memory_equal(diagonal, plan->kernels[0].diagonal, VARIABLES * sizeof *diagonal);
        assert_int_equal(count_whole(&loops[1]), 1);
        check_loops(&loops[1], made, made + 1, made + 1);
        /* For each of two kernels and two blocks of labels, indicators are filled in and summed up;
         * and the unary energies are. */
        dcrf_pool_observe(pool, count_chunks, &loops[2]);
        assert_int_equal(
            dcrf_energy_in_double(plan, workspace, labels, &found, NULL, 0, &energy[i][3], NULL),
            DCRF_OK);
        assert_true(count_whole(&loops[2]) >= 2 * 2 * 2 + 1);
        energy[i][0] = found.unary;
        energy[i][1] = found.pairwise;
        energy[i][2] = found.total;
        dcrf_coupling_free(&coupling);
        dcrf_plan_free(&plan);
        dcrf_model_free(&model);
        dcrf_workspace_free(&workspace);
        free(loops);
    }
    assert_memory_equal(energy[0], energy[1], sizeof energy[0]);
    free(diagonal);
    free(labels);
}

/* The same for the library's own mean field, from its second update to the fifth. */
static void every_stage_of_own_mean_field_is_divided(void **state) {
    (void)state;
    struct loops *loops = calloc(1, sizeof *loops);
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = 5;
    settings.stationarity = 0;
    settings.polish = 0;
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    struct observed observed = {dcrf_workspace_pool(workspace), loops};
    settings.progress = observe_later;
    settings.progress_user = &observed;
    dcrf_plan *plan = new_plan(workspace, 21, &model);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    check_loops(loops, 0, 4 * 11, 4 * 11 + 4);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
    free(loops);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(splats_are_divided_evenly),
                                       cmocka_unit_test(every_stage_of_mean_field_is_divided),
                                       cmocka_unit_test(small_pictures_wake_few_threads),
                                       cmocka_unit_test(unaries_of_the_drop_in_are_divided),
                                       cmocka_unit_test(unaries_of_models_are_divided),
                                       cmocka_unit_test(unaries_of_arrays_are_divided),
                                       cmocka_unit_test(ordered_filters_are_divided),
                                       cmocka_unit_test(steps_of_the_lp_are_divided),
                                       cmocka_unit_test(polishing_is_divided),
                                       cmocka_unit_test(diagonals_and_energies_are_divided),
                                       cmocka_unit_test(every_stage_of_own_mean_field_is_divided)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
