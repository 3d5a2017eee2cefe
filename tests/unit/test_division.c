/* How work is divided among threads, counted in chunks: detects a stage that becomes serial or
 * whose tasks become uneven, on any machine. */
#include "unit.h"

#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"
#include "core/workspace.h"
#include "densecrf/densecrf.h"

#include <dcrf/dcrf.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 256
#define HEIGHT 192
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

/* ---- parts of runs -------------------------------------------------------------------------- */

/* Every corner of every run is in exactly one part, every row belongs to one task, and no task has
 * much more work than the others: `work` is the number of places times corners. */
static void check_parts(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t corners = lattice->corners, rows = dcrf_lattice_rows(lattice);
    const size_t tasks = dcrf_lattice_splat_tasks(lattice), bands = runs->band_count;
    unsigned char *times = calloc(runs->count * corners, 1);
    size_t *owner = calloc(rows, sizeof *owner), most = 0, all = 0;
    assert_int_equal(tasks, THREADS);
    for (size_t task = 0; task < tasks; task++) {
        size_t work = 0;
        for (size_t band = 0; band < bands; band++)
            for (size_t i = runs->parts.first[task * bands + band];
                 i < runs->parts.first[task * bands + band + 1]; i++) {
                const struct dcrf_run_part part = runs->parts.part[i];
                const size_t run = runs->band[band] + part.run;
                assert_true(run < runs->band[band + 1] && part.corner + part.corners <= corners);
                work += (runs->first ? runs->first[run + 1] - runs->first[run] : 1) * part.corners;
                for (size_t k = part.corner; k < (size_t)part.corner + part.corners; k++) {
                    size_t *own = &owner[runs->vertex[run * corners + k]];
                    times[run * corners + k]++;
                    assert_true(*own == 0 || *own == task + 1);
                    *own = task + 1;
                }
            }
        most = work > most ? work : most;
        all += work;
    }
    for (size_t i = 0; i < runs->count * corners; i++)
        assert_int_equal(times[i], 1);
    assert_int_equal(all, VARIABLES * corners);
    assert_true(most * tasks < all + all / 2);
    free(times);
    free(owner);
}

/* Splatting by tasks, last one first, is bit-identical to splatting band by band. */
static void check_splat(const struct dcrf_lattice *lattice, size_t width) {
    const size_t floats = dcrf_lattice_rows(lattice) * width, bands = lattice->runs.band_count;
    float *in = malloc(VARIABLES * width * sizeof *in);
    float *one = calloc(floats, sizeof *one), *other = calloc(floats, sizeof *other);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 4);
    for (size_t i = 0; i < VARIABLES * width; i++)
        in[i] = (float)dcrf_rng_uniform(&rng);
    for (size_t task = dcrf_lattice_splat_tasks(lattice); task-- > 0;)
        dcrf_lattice_splat_task(lattice, task, in, width, width, one);
    for (size_t band = 0; band < bands; band++)
        dcrf_lattice_splat_band(lattice, band, in + band * lattice->runs.band_variables * width,
                                width, width, other);
    assert_memory_equal(one, other, floats * sizeof *one);
    free(in);
    free(one);
    free(other);
}

static void splats_are_divided_evenly(void **state) {
    (void)state;
    unsigned char *rgb = draw_picture();
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, THREADS, NULL), DCRF_OK);
    for (size_t labels = 3; labels <= 21; labels += 18) {
        dcrf_densecrf *crf = new_crf(workspace, rgb, labels, 60, 12);
        for (size_t m = 0; m < 2 && !crf->on_device; m++) {
            const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(&crf->terms[m]);
            check_parts(lattice);
            check_splat(lattice, labels == 3 ? 4 : 20);
            check_splat(lattice, labels == 3 ? 2 : 8);
        }
        dcrf_densecrf_free(&crf);
    }
    dcrf_workspace_free(&workspace);
    free(rgb);
}

/* ---- mean field ----------------------------------------------------------------------------- */

struct loops {
    atomic_size_t count;
    atomic_size_t chunks[MOST_LOOPS];
    size_t indices[MOST_LOOPS];
};

static void count_chunks(void *user, const struct dcrf_chunk *chunk) {
    struct loops *loops = user;
    if (chunk->is_done || chunk->loop >= MOST_LOOPS)
        return;
    if (chunk->is_loop) {
        loops->indices[chunk->loop] = chunk->end;
        atomic_store(&loops->count, chunk->loop + 1);
    } else {
        atomic_fetch_add(&loops->chunks[chunk->loop], 1);
    }
}

/* From loop `first` on, only loops over few rows of vertices have fewer chunks than threads. */
static void check_loops(const struct loops *loops, size_t first, size_t least) {
    const size_t count = atomic_load(&loops->count);
    assert_true(count >= least);
    for (size_t i = first; i < count; i++) {
        const size_t indices = loops->indices[i], chunks = atomic_load(&loops->chunks[i]);
        const bool is_small = indices > THREADS && chunks * MOST_ROWS >= indices;
        if (chunks < THREADS && !is_small)
            fail_msg("loop %zu: %zu indices in %zu chunks", i, indices, chunks);
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
    assert_int_equal(dcrf_densecrf_infer(crf, workspace, 5, q, NULL, NULL, NULL), DCRF_OK);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), NULL, NULL);
    if (!crf->on_device)
        check_loops(loops, 1, 5 * 10); /* the first loop inspects a few bands */
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

/* The same for the library's own mean field, from its second update to the fifth. */
static void every_stage_of_own_mean_field_is_divided(void **state) {
    (void)state;
    unsigned char *rgb = draw_picture();
    const size_t labels = 21;
    float *unary = calloc(VARIABLES * labels, sizeof *unary);
    struct loops *loops = calloc(1, sizeof *loops);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view energies = dcrf_view_planar(unary, DCRF_F32, &grid, labels);
    const dcrf_kernel kernels[2] = {
        dcrf_kernel_spatial(3, 1),
        dcrf_kernel_bilateral(60, 12, dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3), 1)};
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_plan *plan;
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
    assert_int_equal(dcrf_model_new(&model, &grid, labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &energies, NULL), DCRF_OK);
    for (size_t m = 0; m < 2; m++)
        assert_int_equal(dcrf_model_add_kernel(model, &kernels[m], NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    check_loops(loops, 0, 4 * 10);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
    free(loops);
    free(unary);
    free(rgb);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(splats_are_divided_evenly),
                                       cmocka_unit_test(every_stage_of_mean_field_is_divided),
                                       cmocka_unit_test(unaries_of_the_drop_in_are_divided),
                                       cmocka_unit_test(unaries_of_models_are_divided),
                                       cmocka_unit_test(unaries_of_arrays_are_divided),
                                       cmocka_unit_test(every_stage_of_own_mean_field_is_divided)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
