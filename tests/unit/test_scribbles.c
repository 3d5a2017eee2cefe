/* Scribbles: energies against formulas written out independently, and what must not change the
 * mask. */
#include "unit.h"

#include "core/lanes.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

#define CHECK(call) assert_true((call) >= 0)

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* ---- a scene: a disc on the left, a square on the right, noise everywhere -------------------- */

enum { WIDTH = 60, HEIGHT = 40, PIXELS = WIDTH * HEIGHT, STRIDE = DCRF_LANES };

static const uint8_t colour_of[3][3] = {{60, 90, 60}, {190, 120, 60}, {70, 80, 170}};

static int truth_at(size_t x, size_t y) {
    const double dx = (double)x - 17, dy = (double)y - 20;
    if (dx * dx + dy * dy < 12 * 12)
        return 1;
    return x > 36 && x < 54 && y > 9 && y < 31 ? 2 : 0;
}

static void draw_scene(uint8_t *image, int32_t *strokes) {
    uint64_t random = 3;
    for (size_t y = 0; y < HEIGHT; y++)
        for (size_t x = 0; x < WIDTH; x++) {
            const size_t a = y * WIDTH + x;
            for (size_t c = 0; c < 3; c++)
                image[3 * a + c] =
                    (uint8_t)(colour_of[truth_at(x, y)][c] + (int)(40 * uniform(&random)) - 20);
            strokes[a] = -1;
        }
    for (size_t x = 10; x < 25; x++)
        strokes[20 * WIDTH + x] = 1;
    for (size_t y = 14; y < 26; y++)
        strokes[y * WIDTH + 45] = 2;
    for (size_t x = 5; x < 55; x++)
        strokes[3 * WIDTH + x] = 0;
}

struct scene {
    uint8_t image[3 * PIXELS];
    int32_t strokes[PIXELS];
    dcrf_grid grid;
    dcrf_view image_view, stroke_view;
};

static struct scene *make_scene(void) {
    static struct scene scene;
    scene.grid = dcrf_grid_2d(WIDTH, HEIGHT);
    draw_scene(scene.image, scene.strokes);
    scene.image_view = dcrf_view_interleaved(scene.image, DCRF_U8, &scene.grid, 3);
    scene.stroke_view = dcrf_view_interleaved(scene.strokes, DCRF_I32, &scene.grid, 1);
    return &scene;
}

struct result {
    uint16_t labels[PIXELS];
    float marginals[PIXELS * STRIDE];
};

static void take(const dcrf_scribbles *scribbles, struct result *result) {
    dcrf_error error;
    CHECK(dcrf_scribbles_labels(scribbles, result->labels, PIXELS, &error));
    memset(result->marginals, 0, sizeof result->marginals);
    CHECK(dcrf_scribbles_marginals(scribbles, result->marginals, PIXELS * STRIDE, STRIDE, &error));
}

static void run(const struct scene *scene, const dcrf_view *image, size_t labels, size_t threads,
                const dcrf_scribbles_settings *settings, struct result *result) {
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    dcrf_scribbles *scribbles = NULL;
    CHECK(dcrf_workspace_new(&workspace, threads, &error));
    CHECK(dcrf_scribbles_new(&scribbles, &scene->grid, image, labels, settings, workspace, &error));
    dcrf_workspace_free(&workspace); /* the object keeps it alive */
    CHECK(dcrf_scribbles_set_strokes(scribbles, &scene->stroke_view, &error));
    assert_int_equal(dcrf_scribbles_update(scribbles, &error), DCRF_OK);
    take(scribbles, result);
    dcrf_scribbles_free(&scribbles);
}

static size_t errors_of(const uint16_t *labels) {
    size_t errors = 0;
    for (size_t a = 0; a < PIXELS; a++)
        errors += labels[a] != truth_at(a % WIDTH, a / WIDTH);
    return errors;
}

static void test_finds_the_scene(void **state) {
    (void)state;
    static struct result result;
    const struct scene *scene = make_scene();
    run(scene, &scene->image_view, 3, 1, NULL, &result);
    /* Half the length of the outlines, about 75 + 78 pixels, may be off by one. */
    assert_true(errors_of(result.labels) < 80);
    for (size_t a = 0; a < PIXELS; a++)
        if (scene->strokes[a] >= 0)
            assert_int_equal(result.labels[a], scene->strokes[a]);
}

/* ---- what must not change the mask ----------------------------------------------------------- */

static void test_threads(void **state) {
    (void)state;
    static struct result one, many;
    const struct scene *scene = make_scene();
    run(scene, &scene->image_view, 3, 1, NULL, &one);
    for (size_t threads = 2; threads <= 5; threads += 3) {
        run(scene, &scene->image_view, 3, threads, NULL, &many);
        assert_memory_equal(&one, &many, sizeof one);
    }
}

static void test_permuted_labels(void **state) {
    (void)state;
    static struct result plain, permuted;
    const int32_t to[] = {2, 0, 1};
    struct scene *scene = make_scene();
    run(scene, &scene->image_view, 3, 1, NULL, &plain);
    for (size_t a = 0; a < PIXELS; a++)
        if (scene->strokes[a] >= 0)
            scene->strokes[a] = to[scene->strokes[a]];
    run(scene, &scene->image_view, 3, 1, NULL, &permuted);
    for (size_t a = 0; a < PIXELS; a++) {
        assert_int_equal(permuted.labels[a], to[plain.labels[a]]);
        /* Sums over labels in another order: float rounding, through 15 updates. */
        for (size_t i = 0; i < 3; i++)
            assert_true(fabsf(permuted.marginals[a * STRIDE + (size_t)to[i]] -
                              plain.marginals[a * STRIDE + i]) < 1e-4f);
    }
}

/* A label without strokes is assigned to no pixel, and does not affect the others. */
static void test_label_without_strokes(void **state) {
    (void)state;
    static struct result three, four;
    const struct scene *scene = make_scene();
    run(scene, &scene->image_view, 3, 1, NULL, &three);
    run(scene, &scene->image_view, 4, 1, NULL, &four);
    assert_memory_equal(three.labels, four.labels, sizeof three.labels);
    for (size_t a = 0; a < PIXELS; a++)
        assert_true(four.marginals[a * STRIDE + 3] == 0);
}

/* Earlier strokes leave no trace: a warm start gives the same bytes as a cold one. */
static void test_history(void **state) {
    (void)state;
    static struct result cold, warm, again;
    struct scene *scene = make_scene();
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    dcrf_scribbles *scribbles = NULL;
    dcrf_scribbles_info info;
    run(scene, &scene->image_view, 3, 1, NULL, &cold);
    CHECK(dcrf_workspace_new(&workspace, 2, &error));
    CHECK(dcrf_scribbles_new(&scribbles, &scene->grid, &scene->image_view, 3, NULL, workspace,
                             &error));
    /* Wrong strokes, then the right ones. */
    for (size_t a = 0; a < PIXELS; a++)
        scene->strokes[a] = a % 97 == 0 ? (int32_t)(a % 3) : -1;
    CHECK(dcrf_scribbles_set_strokes(scribbles, &scene->stroke_view, &error));
    CHECK(dcrf_scribbles_update(scribbles, &error));
    take(scribbles, &warm);
    assert_true(memcmp(warm.labels, cold.labels, sizeof cold.labels) != 0);
    scene = make_scene();
    CHECK(dcrf_scribbles_set_strokes(scribbles, &scene->stroke_view, &error));
    take(scribbles, &again); /* still the old mask */
    assert_memory_equal(&again, &warm, sizeof warm);
    CHECK(dcrf_scribbles_update(scribbles, &error));
    take(scribbles, &again);
    assert_memory_equal(&again, &cold, sizeof cold);
    dcrf_scribbles_get_info(scribbles, &info);
    size_t changed = 0;
    for (size_t a = 0; a < PIXELS; a++)
        changed += warm.labels[a] != cold.labels[a];
    assert_int_equal(info.changed, changed);
    assert_int_equal(info.labels_drawn, 3);
    assert_int_equal(info.strokes, 15 + 12 + 50);
    dcrf_scribbles_free(&scribbles);
    dcrf_workspace_free(&workspace);
}

/* The unit does not matter if the image is not a photograph. */
static void test_units(void **state) {
    (void)state;
    static struct result plain, scaled;
    static float grey[PIXELS], other[PIXELS];
    const struct scene *scene = make_scene();
    for (size_t a = 0; a < PIXELS; a++) {
        grey[a] = (float)scene->image[3 * a];
        other[a] = 16 * grey[a] - 4096; /* exact */
    }
    const dcrf_view plain_view = dcrf_view_interleaved(grey, DCRF_F32, &scene->grid, 1);
    const dcrf_view other_view = dcrf_view_interleaved(other, DCRF_F32, &scene->grid, 1);
    run(scene, &plain_view, 3, 1, NULL, &plain);
    run(scene, &other_view, 3, 1, NULL, &scaled);
    size_t differences = 0;
    for (size_t a = 0; a < PIXELS; a++)
        differences += plain.labels[a] != scaled.labels[a];
    /* Values are rounded at another point, so one on the border between two bins may fall on the
     * other side; half a percent of the pixels may change. */
    assert_true(differences <= PIXELS / 200);
}

/* ---- the energies, written out again --------------------------------------------------------- */

enum { LINE = 24 };

/* One row of five greys; two labels, one Gaussian each. */
static void draw_line(float *values, int32_t *strokes) {
    const float greys[] = {10, 20, 60, 110, 120};
    for (size_t i = 0; i < LINE; i++) {
        values[i] = greys[(i * i + i / 5) % 3 + i / 10];
        strokes[i] = i < 4 ? 0 : i > 20 ? 1 : -1;
    }
}

struct gaussian {
    double mean, variance;
};

static struct gaussian moments(const double *values, const int32_t *labels, int32_t label) {
    double count = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < LINE; i++)
        if (!labels || labels[i] == label) {
            count++;
            sum += values[i];
            squares += values[i] * values[i];
        }
    return (struct gaussian){sum / count, squares / count - sum / count * (sum / count)};
}

static void test_energies(void **state) {
    (void)state;
    float values[LINE];
    double scaled[LINE], log_density[2][LINE], belief[LINE], way[2][LINE];
    int32_t strokes[LINE];
    draw_line(values, strokes);
    const dcrf_grid grid = dcrf_grid_1d(LINE);
    const dcrf_view image = dcrf_view_interleaved(values, DCRF_F32, &grid, 1);
    const dcrf_view stroke_view = dcrf_view_interleaved(strokes, DCRF_I32, &grid, 1);
    dcrf_scribbles_settings settings;
    dcrf_scribbles_settings_defaults(&settings);
    settings.components = 1;
    settings.refits = 0;
    settings.colour_limit = 0.7;
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    dcrf_scribbles *scribbles = NULL;
    CHECK(dcrf_workspace_new(&workspace, 1, &error));
    CHECK(dcrf_scribbles_new(&scribbles, &grid, &image, 2, &settings, workspace, &error));
    CHECK(dcrf_scribbles_set_strokes(scribbles, &stroke_view, &error));
    CHECK(dcrf_scribbles_update(scribbles, &error));

    /* Scaled to a standard deviation of 25; the box is 2 wider than the colours. */
    for (size_t i = 0; i < LINE; i++)
        scaled[i] = (double)values[i];
    const struct gaussian all = moments(scaled, NULL, 0);
    for (size_t i = 0; i < LINE; i++)
        scaled[i] = (scaled[i] - all.mean) * 25 / sqrt(all.variance);
    const double uniform_density = 0.02 / (110 * 25 / sqrt(all.variance) + 2);
    for (int32_t label = 0; label < 2; label++) {
        const struct gaussian g = moments(scaled, strokes, label);
        const double variance = g.variance + 1e-3 * 25 * 25;
        for (size_t i = 0; i < LINE; i++) {
            const double d = scaled[i] - g.mean;
            log_density[label][i] =
                log(0.98 * exp(-d * d / (2 * variance)) / sqrt(6.283185307179586 * variance) +
                    uniform_density);
        }
    }
    for (size_t i = 0; i < LINE; i++)
        belief[i] = 1 / (1 + exp(log_density[0][i] - log_density[1][i]));
    for (size_t label = 0; label < 2; label++)
        for (size_t i = 0; i < LINE; i++)
            way[label][i] = label ? 1e9 : 0;
    for (size_t i = 4; i < LINE; i++) /* along a line there is only one path */
        way[0][i] = way[0][i - 1] + fabs(belief[i] - belief[i - 1]) + settings.step_length;
    for (size_t i = LINE; i-- > 0;)
        way[1][i] =
            i > 20 ? 0 : way[1][i + 1] + fabs(belief[i] - belief[i + 1]) + settings.step_length;

    size_t stride;
    const float *unary = dcrf_model_unary(dcrf_scribbles_model(scribbles), &stride);
    for (size_t i = 0; i < LINE; i++)
        for (size_t label = 0; label < 2; label++) {
            const double energy = (double)unary[i * stride + label];
            if (strokes[i] >= 0) {
                assert_true(energy == (strokes[i] == (int32_t)label ? 0 : 1e6));
                continue;
            }
            const double deficit = fmax(log_density[1 - label][i] - log_density[label][i], 0);
            const double wanted =
                fmin(settings.colour_limit, settings.colour_weight * deficit) +
                settings.distance_weight * way[label][i] / (way[label][i] + way[1 - label][i]);
            /* Lengths are rounded to 1/4096, up to 23 of them in paths of 0.4 or more; the ratio
             * changes by twice that relative error. */
            assert_true(fabs(energy - wanted) < 0.02);
        }
    dcrf_scribbles_free(&scribbles);
    dcrf_workspace_free(&workspace);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void test_mistakes(void **state) {
    (void)state;
    struct scene *scene = make_scene();
    const dcrf_view *image = &scene->image_view;
    static uint16_t labels[PIXELS];
    dcrf_error error;
    dcrf_workspace *ws = NULL;
    dcrf_scribbles *s = NULL;
    dcrf_scribbles_settings settings;
    CHECK(dcrf_workspace_new(&ws, 1, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "2 to 255 labels", error,
                 dcrf_scribbles_new(&s, &scene->grid, image, 1, NULL, ws, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "2 to 255 labels", error,
                 dcrf_scribbles_new(&s, &scene->grid, image, 256, NULL, ws, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "a workspace", error,
                 dcrf_scribbles_new(&s, &scene->grid, image, 2, NULL, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_scribbles_new(NULL, &scene->grid, image, 2, NULL, ws, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_scribbles_set_strokes(NULL, &scene->stroke_view, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error, dcrf_scribbles_update(NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_scribbles_labels(NULL, labels, PIXELS, &error));
    assert_null(dcrf_scribbles_model(NULL));
    assert_null(dcrf_scribbles_plan(NULL));
    assert_false(dcrf_scribbles_is_ready(NULL));
    dcrf_scribbles_settings_defaults(&settings);
    settings.components = 9;
    assert_fails(DCRF_ERROR_ARGUMENT, "components", error,
                 dcrf_scribbles_new(&s, &scene->grid, image, 2, &settings, ws, &error));
    dcrf_scribbles_settings_defaults(&settings);
    settings.distance_weight = (double)NAN;
    assert_fails(DCRF_ERROR_ARGUMENT, "distance weight", error,
                 dcrf_scribbles_new(&s, &scene->grid, image, 2, &settings, ws, &error));
    dcrf_scribbles_settings_defaults(&settings);
    settings.reserved[3] = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "reserved", error,
                 dcrf_scribbles_new(&s, &scene->grid, image, 2, &settings, ws, &error));
    assert_null(s);

    CHECK(dcrf_scribbles_new(&s, &scene->grid, image, 3, NULL, ws, &error));
    assert_false(dcrf_scribbles_is_ready(s));
    assert_fails(DCRF_ERROR_ARGUMENT, "no strokes", error, dcrf_scribbles_update(s, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "no mask", error,
                 dcrf_scribbles_labels(s, labels, PIXELS, &error));
    CHECK(dcrf_scribbles_set_strokes(s, &scene->stroke_view, &error));
    CHECK(dcrf_scribbles_update(s, &error));
    assert_true(dcrf_scribbles_is_ready(s));
    /* A bad map changes nothing. */
    scene->strokes[WIDTH + 2] = 3;
    assert_fails(DCRF_ERROR_ARGUMENT, "the label 3 at (2, 1, 0)", error,
                 dcrf_scribbles_set_strokes(s, &scene->stroke_view, &error));
    for (size_t a = 0; a < PIXELS; a++)
        scene->strokes[a] = a < 9 ? 1 : 255;
    assert_fails(DCRF_ERROR_ARGUMENT, "one label only", error,
                 dcrf_scribbles_set_strokes(s, &scene->stroke_view, &error));
    CHECK(dcrf_scribbles_update(s, &error));
    CHECK(dcrf_scribbles_labels(s, labels, PIXELS, &error));
    assert_true(errors_of(labels) < 80);
    dcrf_scribbles_free(&s);
    dcrf_workspace_free(&ws);
}

/* A byte map with 255 for unmarked pixels is the same as one with -1. */
static void test_bytes(void **state) {
    (void)state;
    static struct result wide, narrow;
    static uint8_t bytes[PIXELS];
    struct scene *scene = make_scene();
    run(scene, &scene->image_view, 3, 1, NULL, &wide);
    for (size_t a = 0; a < PIXELS; a++)
        bytes[a] = scene->strokes[a] < 0 ? 255 : (uint8_t)scene->strokes[a];
    scene->stroke_view = dcrf_view_interleaved(bytes, DCRF_U8, &scene->grid, 1);
    run(scene, &scene->image_view, 3, 1, NULL, &narrow);
    assert_memory_equal(&wide, &narrow, sizeof wide);
}

/* ---- the callback ---------------------------------------------------------------------------- */

static int count_down(void *user, size_t round, dcrf_scribbles_stage stage) {
    int *left = user;
    (void)round;
    (void)stage;
    return (*left)-- == 0;
}

static void test_cancelling(void **state) {
    (void)state;
    static struct result before, after, cold;
    struct scene *scene = make_scene();
    int left = 1000;
    dcrf_error error;
    dcrf_workspace *ws = NULL;
    dcrf_scribbles *s = NULL;
    dcrf_scribbles_settings settings;
    dcrf_scribbles_settings_defaults(&settings);
    settings.progress = count_down;
    settings.progress_user = &left;
    CHECK(dcrf_workspace_new(&ws, 1, &error));
    CHECK(dcrf_scribbles_new(&s, &scene->grid, &scene->image_view, 3, &settings, ws, &error));
    CHECK(dcrf_scribbles_set_strokes(s, &scene->stroke_view, &error));
    CHECK(dcrf_scribbles_update(s, &error));
    const int stages = 1000 - left;
    assert_int_equal(stages, 3 * (1 + (int)settings.refits));
    take(s, &before);
    scene->strokes[5 * WIDTH + 5] = 2;
    CHECK(dcrf_scribbles_set_strokes(s, &scene->stroke_view, &error));
    for (int stage = 0; stage < stages; stage++) {
        left = stage;
        assert_int_equal(dcrf_scribbles_update(s, &error), DCRF_STOP_CANCELLED);
        take(s, &after);
        assert_memory_equal(&before, &after, sizeof before);
    }
    left = 1000;
    CHECK(dcrf_scribbles_update(s, &error));
    take(s, &after);
    run(scene, &scene->image_view, 3, 1, NULL, &cold);
    assert_memory_equal(&after, &cold, sizeof cold);
    dcrf_scribbles_free(&s);
    dcrf_workspace_free(&ws);
}

/* ---- odd images ------------------------------------------------------------------------------ */

/* A single colour, a volume, one pixel wide, many channels: there is a mask, and it obeys the
 * strokes. */
static void test_odd_images(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_1d(2), dcrf_grid_2d(1, 9), dcrf_grid_2d(12, 7),
                               dcrf_grid_3d(6, 5, 4)};
    const size_t channels[] = {1, 2, 3, 13};
    static float values[120 * 13];
    int32_t strokes[120];
    uint16_t labels[120];
    uint64_t random = 9;
    dcrf_error error;
    dcrf_workspace *ws = NULL;
    CHECK(dcrf_workspace_new(&ws, 2, &error));
    for (size_t g = 0; g < 4; g++)
        for (size_t c = 0; c < 4; c++)
            for (int kind = 0; kind < 3; kind++) {
                const size_t count = grids[g].size[0] * grids[g].size[1] * grids[g].size[2];
                for (size_t i = 0; i < count * channels[c]; i++)
                    values[i] =
                        kind == 0 ? 7 : (float)((kind == 1 ? 200 : 1e30) * uniform(&random));
                for (size_t a = 0; a < count; a++)
                    strokes[a] = a == 0 ? 1 : a + 1 == count ? 0 : -1;
                const dcrf_view image =
                    dcrf_view_interleaved(values, DCRF_F32, &grids[g], channels[c]);
                const dcrf_view view = dcrf_view_interleaved(strokes, DCRF_I32, &grids[g], 1);
                dcrf_scribbles *s = NULL;
                CHECK(dcrf_scribbles_new(&s, &grids[g], &image, 2, NULL, ws, &error));
                CHECK(dcrf_scribbles_set_strokes(s, &view, &error));
                CHECK(dcrf_scribbles_update(s, &error));
                CHECK(dcrf_scribbles_labels(s, labels, 120, &error));
                assert_int_equal(labels[0], 1);
                assert_int_equal(labels[count - 1], 0);
                dcrf_scribbles_free(&s);
            }
    dcrf_workspace_free(&ws);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_scene), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_permuted_labels), cmocka_unit_test(test_label_without_strokes),
        cmocka_unit_test(test_history),         cmocka_unit_test(test_units),
        cmocka_unit_test(test_energies),        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_bytes),           cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_odd_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
