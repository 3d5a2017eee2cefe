/* Energies of rough label maps: distances and moves against naive ones, and properties that hold
 * for maps of every kind. */
#include "unit.h"

#include "scribble/distance.h"
#include "scribble/mask_border.h"
#include "scribble/mask_colours.h"
#include "scribble/mask_reduce.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- distances ------------------------------------------------------------------------------ */

static double naive_distance(const dcrf_grid *grid, const int32_t *map, int32_t label, size_t a) {
    const size_t count = grid->size[0] * grid->size[1] * grid->size[2];
    double least = HUGE_VAL;
    for (size_t b = 0; b < count; b++) {
        double square = 0;
        for (size_t i = 0, step = 1; i < 3; step *= grid->size[i++]) {
            const double way =
                (double)(a / step % grid->size[i]) - (double)(b / step % grid->size[i]);
            square += way * way * grid->spacing[i] * grid->spacing[i];
        }
        if (map[b] == label)
            least = fmin(least, sqrt(square));
    }
    return least;
}

static void test_distances(void **state) {
    (void)state;
    const dcrf_grid grids[] = {
        dcrf_grid_1d(17), dcrf_grid_2d(13, 11), {3, {7, 5, 4}, {0.5, 1, 2.5}}};
    for (size_t g = 0; g < 3; g++) {
        const size_t count = grids[g].size[0] * grids[g].size[1] * grids[g].size[2];
        struct dcrf_distance_lines lines;
        int32_t map[200];
        float found[200];
        for (size_t a = 0; a < count; a++)
            map[a] = (a * 7919 + 13) % 23 < 2;
        assert_true(dcrf_distance_lines_init(&lines, &grids[g], NULL));
        dcrf_distances_to(&grids[g], map, 1, &lines, NULL, found);
        for (size_t a = 0; a < count; a++) /* float rounding */
            assert_true(fabs((double)found[a] - naive_distance(&grids[g], map, 1, a)) < 1e-5);
        dcrf_distances_to(&grids[g], map, 5, &lines, NULL, found);
        assert_true(isinf(found[0]) && isinf(found[count - 1]));
        dcrf_distance_lines_clear(&lines);
    }
}

/* ---- pictures ------------------------------------------------------------------------------- */

struct scene {
    dcrf_grid grid;
    size_t pixels, labels;
    uint8_t *image;
    int32_t *truth, *map;
    float *energies;
};

static uint8_t noise(size_t a) {
    return (uint8_t)((a * 2654435761u >> 8) % 17);
}

/* A bright disc on a dark background, and a map with a disc of another radius. `label`: that of the
 * disc. */
static struct scene make_scene(size_t side, size_t depth, size_t labels, double radius,
                               double rough_radius) {
    struct scene s = {.grid =
                          depth > 1 ? dcrf_grid_3d(side, side, depth) : dcrf_grid_2d(side, side),
                      .pixels = side * side * depth,
                      .labels = labels};
    s.image = calloc(s.pixels, 3);
    s.truth = calloc(s.pixels, sizeof *s.truth);
    s.map = calloc(s.pixels, sizeof *s.map);
    s.energies = calloc(s.pixels, labels * sizeof *s.energies);
    for (size_t a = 0; a < s.pixels; a++) {
        const double half = ((double)side - 1) / 2;
        const double x = (double)(a % side) - half, y = (double)(a / side % side) - half;
        const double from_middle = sqrt(x * x + y * y) / (double)side;
        const size_t sector = labels > 2 && x > 0 ? 2 : 1;
        s.truth[a] = from_middle < radius ? (int32_t)sector : 0;
        s.map[a] = from_middle < rough_radius ? (int32_t)sector : 0;
        for (size_t c = 0; c < 3; c++)
            s.image[3 * a + c] = (uint8_t)(60 + noise(3 * a + c) + (s.truth[a] > 0 ? 90 : 0) +
                                           (s.truth[a] == 2 && c == 0 ? 70 : 0));
    }
    return s;
}

static void free_scene(struct scene *s) {
    free(s->image);
    free(s->truth);
    free(s->map);
    free(s->energies);
}

static dcrf_status find_energies_in(struct scene *s, size_t threads, const dcrf_view *confidence,
                                    size_t count, dcrf_mask_info *info, dcrf_error *error) {
    const dcrf_view image = dcrf_view_interleaved(s->image, DCRF_U8, &s->grid, 3);
    const dcrf_view map = dcrf_view_interleaved(s->map, DCRF_I32, &s->grid, 1);
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, threads, error), DCRF_OK);
    const dcrf_status status = dcrf_mask_energies(&s->grid, &image, &map, s->labels, confidence,
                                                  NULL, workspace, s->energies, count, info, error);
    dcrf_workspace_free(&workspace);
    return status;
}

static dcrf_status find_energies(struct scene *s, size_t threads, const dcrf_view *confidence,
                                 dcrf_mask_info *info) {
    dcrf_error error;
    return find_energies_in(s, threads, confidence, s->pixels * s->labels, info, &error);
}

static int32_t cheapest(const struct scene *s, size_t a) {
    size_t best = 0;
    for (size_t i = 1; i < s->labels; i++)
        if (s->energies[a * s->labels + i] < s->energies[a * s->labels + best])
            best = i;
    return (int32_t)best;
}

static double wrong_share(const struct scene *s, const int32_t *labels) {
    size_t wrong = 0;
    for (size_t a = 0; a < s->pixels; a++)
        wrong += (labels ? labels[a] : cheapest(s, a)) != s->truth[a];
    return (double)wrong / (double)s->pixels;
}

/* Too large or too small by 1.5 % of the side, six units: the energies correct this. */
static void expect_found(size_t side, size_t depth, size_t labels, double rough_radius) {
    struct scene s = make_scene(side, depth, labels, 0.25, rough_radius);
    dcrf_mask_info info;
    assert_int_equal(find_energies(&s, 1, NULL, &info), DCRF_OK);
    assert_true(wrong_share(&s, s.map) > 0.015);
    if (!(wrong_share(&s, NULL) < 0.005))
        fail_msg("%zu x %zu, %zu labels: %g is wrong", side, depth, labels, wrong_share(&s, NULL));
    assert_int_equal(info.known, s.pixels);
    assert_int_equal(info.labels_used, labels);
    assert_true((info.offset > 0) == (rough_radius < 0.25));
    free_scene(&s);
}

static void test_borders_are_found(void **state) {
    (void)state;
    expect_found(200, 1, 2, 0.235);
    expect_found(200, 1, 2, 0.265);
    expect_found(200, 1, 3, 0.265);
    expect_found(80, 20, 2, 0.235);
}

/* The information by a plain sum over pixels instead of bins. */
static double naive_information(const struct dcrf_mask_colours *colours, const int32_t *labels,
                                size_t count, double limit) {
    double most = 0, of[2] = {0};
    for (size_t a = 0; a < count; a++)
        of[labels[a]]++;
    for (int i = 0; i <= 12; i++) {
        double sum = 0;
        for (size_t a = 0; a < count; a++) {
            const float *deficit = colours->deficit + colours->bins->bin_of[a] * colours->stride;
            const double e[2] = {i / 8.0 * fmin(limit, (double)deficit[0]),
                                 i / 8.0 * fmin(limit, (double)deficit[1])};
            sum += log(exp(-e[labels[a]]) / (exp(-e[0]) + exp(-e[1]))) / of[labels[a]];
        }
        most = fmax(most, 1 + sum / (2 * log(2)));
    }
    return most;
}

/* `overlap`: how many of ten pixels of label 1 have the colour of label 0. */
static double information_of(size_t overlap) {
    enum { SIDE = 30, COUNT = SIDE * SIDE };
    const dcrf_grid grid = dcrf_grid_2d(SIDE, SIDE);
    static uint8_t image[3 * COUNT];
    static int32_t labels[COUNT];
    static float members[COUNT * 8];
    const dcrf_view view = dcrf_view_interleaved(image, DCRF_U8, &grid, 3);
    const size_t stride = dcrf_padded(2);
    struct dcrf_colour_bins bins;
    struct dcrf_mask_colours colours;
    dcrf_workspace *workspace;
    dcrf_error error;
    for (size_t a = 0; a < COUNT; a++) {
        labels[a] = a >= COUNT / 3;
        memset(image + 3 * a, labels[a] && a % 10 >= overlap ? 180 : 60, 3);
        for (size_t label = 0; label < 2; label++)
            members[a * stride + label] = labels[a] == (int32_t)label;
    }
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    assert_int_equal(dcrf_colour_bins_init(&bins, &grid, &view, NULL, &error), DCRF_OK);
    assert_int_equal(dcrf_mask_colours_init(&colours, &bins, 2, workspace, &error), DCRF_OK);
    assert_int_equal(dcrf_mask_colours_learn(&colours, members, COUNT, stride, workspace, &error),
                     DCRF_OK);
    const double found = dcrf_mask_colours_information(&colours, members, COUNT, stride, 4);
    assert_true(fabs(found - naive_information(&colours, labels, COUNT, 4)) < 1e-6);
    memset(members, 0, sizeof members);
    assert_true(dcrf_mask_colours_information(&colours, members, COUNT, stride, 4) == 0);
    dcrf_mask_colours_clear(&colours);
    dcrf_colour_bins_clear(&bins);
    dcrf_workspace_free(&workspace);
    return found;
}

static void test_information(void **state) {
    (void)state;
    assert_true(information_of(10) < 1e-6);
    assert_true(information_of(0) > 0.98);
    assert_true(information_of(5) > information_of(8) && information_of(8) > 0.01);
}

/* The offset is a factor times the median depth, the spread sqrt(pi / 2) times the mean distance
 * from the median. */
static void test_offset_and_spread(void **state) {
    (void)state;
    enum { WIDTH = 40, HEIGHT = 4 };
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const size_t ends[HEIGHT] = {18, 20, 23, 23}; /* of label 0; at 20 in the map */
    int32_t map[WIDTH * HEIGHT], labelling[WIDTH * HEIGHT];
    struct dcrf_mask_border border;
    for (size_t a = 0; a < WIDTH * HEIGHT; a++) {
        map[a] = a % WIDTH >= 20;
        labelling[a] = a % WIDTH >= ends[a / WIDTH];
    }
    assert_true(dcrf_mask_border_init(&border, &grid, map, 2, 20, NULL));
    dcrf_mask_border_measure(&border, labelling, 1.5, 0, 100);
    double depths[WIDTH * HEIGHT], sum = 0;
    size_t count = 0;
    for (size_t a = 0; a < WIDTH * HEIGHT; a++)
        for (size_t axis = 0; axis < 2; axis++) {
            const size_t next = axis == 0 ? a + 1 : a + WIDTH;
            if ((axis == 0 ? next % WIDTH != 0 : next < WIDTH * HEIGHT) &&
                labelling[a] != labelling[next])
                depths[count++] = (dcrf_mask_border_depth(&border, a, 1) +
                                   dcrf_mask_border_depth(&border, next, 1)) /
                                  2;
        }
    for (size_t i = 0; i < count; i++) /* the simplest sort */
        for (size_t k = i + 1; k < count; k++)
            if (depths[k] < depths[i]) {
                const double less = depths[k];
                depths[k] = depths[i];
                depths[i] = less;
            }
    const double middle = (depths[(count - 1) / 2] + depths[count / 2]) / 2;
    for (size_t i = 0; i < count; i++)
        sum += fabs(depths[i] - middle);
    assert_true(fabs(border.offset[1] - 1.5 * middle) < 1e-6);
    assert_true(fabs(border.spread[1] - sqrt(acos(-1) / 2) * sum / (double)count) < 1e-6);
    const double doubt = fabs(middle) / border.spread[1]; /* then the offset counts by half */
    dcrf_mask_border_measure(&border, labelling, 1.5, doubt, 100);
    assert_true(middle != 0 && fabs(border.offset[1] - 0.75 * middle) < 1e-6);
    dcrf_mask_border_measure(&border, labelling, 1.5, 3 * doubt, 100);
    assert_true(fabs(border.offset[1]) < 0.02 * fabs(middle));
    dcrf_mask_border_measure(&border, map, 1, 0, 100); /* the map itself has no offset */
    assert_true(border.offset[0] == 0 && border.offset[1] == 0 && border.spread[1] == 0);
    dcrf_mask_border_clear(&border);
}

/* Borders within a rim of unknown pixels agree with the map; one that leaves it does not outvote
 * them. */
static void test_borders_among_unknown_pixels(void **state) {
    (void)state;
    enum { SIDE = 40, FROM = 19, TO = 21, ASTRAY = 25 };
    const dcrf_grid grid = dcrf_grid_2d(SIDE, SIDE);
    int32_t map[SIDE * SIDE], labelling[SIDE * SIDE];
    struct dcrf_mask_border border;
    for (size_t a = 0; a < SIDE * SIDE; a++) {
        const size_t x = a % SIDE, row = a / SIDE;
        map[a] = x < FROM ? 0 : x < TO ? -1 : 1;
        labelling[a] = x >= (row == 0 ? ASTRAY : FROM + 1);
    }
    assert_true(dcrf_mask_border_init(&border, &grid, map, 2, 20, NULL));
    dcrf_mask_border_measure(&border, labelling, 1, 0, 100);
    assert_true(border.offset[0] == 0 && border.offset[1] == 0);
    assert_true(border.spread[1] > 0 && border.spread[1] < 1);
    dcrf_mask_border_clear(&border);
}

/* A strip along the picture's frame is as thin as one inside. */
static void test_strip_at_the_frame(void **state) {
    (void)state;
    enum { SIDE = 60, THICK = 6 };
    const dcrf_grid grid = dcrf_grid_2d(SIDE, SIDE);
    double reach[2];
    for (size_t k = 0; k < 2; k++) {
        struct dcrf_mask_border border;
        int32_t map[SIDE * SIDE];
        const size_t first = k == 0 ? 0 : SIDE / 2;
        for (size_t a = 0; a < SIDE * SIDE; a++)
            map[a] = a / SIDE >= first && a / SIDE < first + THICK;
        assert_true(dcrf_mask_border_init(&border, &grid, map, 2, 200, NULL));
        reach[k] = border.reach[1];
        dcrf_mask_border_clear(&border);
    }
    assert_true(reach[0] < 1 && reach[0] == reach[1]);
}

static size_t changes_of(struct scene *s) {
    size_t changed = 0;
    assert_int_equal(find_energies(s, 1, NULL, NULL), DCRF_OK);
    for (size_t a = 0; a < s->pixels; a++)
        changed += cheapest(s, a) != s->map[a];
    return changed;
}

/* A correct map is kept, and so is one that the image says nothing about. */
static void test_no_harm(void **state) {
    (void)state;
    struct scene right = make_scene(120, 1, 2, 0.3, 0.3), blind = make_scene(120, 1, 2, 0.3, 0.3);
    for (size_t i = 0; i < 3 * blind.pixels; i++)
        blind.image[i] = (uint8_t)(100 + 4 * noise(i / 3));
    assert_int_equal(changes_of(&right), 0);
    assert_true(changes_of(&blind) <= blind.pixels / 500);
    free_scene(&right);
    free_scene(&blind);
}

/* If the map is mostly unknown, no known pixel is near a border: colours are trusted. */
static void test_wide_trimap(void **state) {
    (void)state;
    struct scene s = make_scene(120, 1, 2, 0.3, 0.15), far = make_scene(120, 1, 2, 0.3, 0.45);
    size_t wrong = 0;
    for (size_t a = 0; a < s.pixels; a++)
        s.map[a] = s.map[a] == 1 ? 1 : far.map[a] == 0 ? 0 : -1;
    assert_int_equal(find_energies(&s, 1, NULL, NULL), DCRF_OK);
    for (size_t a = 0; a < s.pixels; a++)
        wrong += cheapest(&s, a) != s.truth[a];
    assert_true(wrong <= s.pixels / 100);
    free_scene(&s);
    free_scene(&far);
}

static void test_size_does_not_matter(void **state) {
    (void)state;
    struct scene small = make_scene(150, 1, 2, 0.25, 0.235),
                 large = make_scene(300, 1, 2, 0.25, 0.235);
    dcrf_mask_info first, second;
    size_t differing = 0;
    assert_int_equal(find_energies(&small, 1, NULL, &first), DCRF_OK);
    assert_int_equal(find_energies(&large, 1, NULL, &second), DCRF_OK);
    assert_true(fabs(second.unit / first.unit - 2) < 1e-9);
    assert_true(fabs(second.offset / first.offset - 2) < 0.4); /* pixels are half as large */
    for (size_t y = 0; y < 300; y++)
        for (size_t x = 0; x < 300; x++)
            differing += cheapest(&large, y * 300 + x) != cheapest(&small, y / 2 * 150 + x / 2);
    assert_true(differing < 700); /* within one small pixel of a border of 471 */
    free_scene(&small);
    free_scene(&large);
}

static void test_threads(void **state) {
    (void)state;
    struct scene one = make_scene(70, 1, 3, 0.25, 0.28), three = make_scene(70, 1, 3, 0.25, 0.28);
    assert_int_equal(find_energies(&one, 1, NULL, NULL), DCRF_OK);
    assert_int_equal(find_energies(&three, 3, NULL, NULL), DCRF_OK);
    assert_memory_equal(one.energies, three.energies, one.pixels * 3 * sizeof(float));
    free_scene(&one);
    free_scene(&three);
}

/* ---- large pictures ------------------------------------------------------------------------- */

enum { WIDE = 12, HIGH = 6, WIDE_CELLS = 4, HIGH_CELLS = 2, IN_CELL = 9 };

/* Cells of 3 x 3 pixels, pixel by pixel. */
static void test_reduction(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(WIDE, HIGH), cells = dcrf_mask_reduced_grid(&grid, 3.1);
    float image[WIDE * HIGH], confidence[WIDE * HIGH], sum[WIDE_CELLS * HIGH_CELLS] = {0};
    int32_t map[WIDE * HIGH];
    struct dcrf_mask_reduced found;
    dcrf_error error;
    for (size_t a = 0; a < WIDE * HIGH; a++) {
        image[a] = (float)(a * 37 % 100);
        confidence[a] = a % WIDE < 3 ? 1 : 0.5f;
        map[a] = a % WIDE < 5 ? 1 : a % WIDE < 6 ? -1 : a % WIDE == 8 ? 2 : 0;
        sum[a / WIDE / 3 * WIDE_CELLS + a % WIDE / 3] += image[a];
    }
    const dcrf_view view = dcrf_view_interleaved(image, DCRF_F32, &grid, 1);
    assert_int_equal(cells.size[0], WIDE_CELLS);
    assert_int_equal(cells.size[1], HIGH_CELLS);
    assert_true(cells.spacing[0] == 3 && cells.spacing[1] == 3);
    assert_int_equal(dcrf_mask_reduce(&found, &grid, &cells, &view, map, 3, confidence, &error),
                     DCRF_OK);
    for (size_t k = 0; k < WIDE_CELLS * HIGH_CELLS; k++) {
        assert_int_equal(found.map[k], k % WIDE_CELLS < 2);
        assert_true(found.confidence[k] == (k % WIDE_CELLS < 1 ? 1 : 0.5f));
        assert_true(fabs((double)(found.image[k] - sum[k] / IN_CELL)) < 1e-4); /* rounding */
    }
    /* Label 2 is one pixel wide: no cell has it. */
    assert_false(dcrf_mask_reduced_is_faithful(&found, (const size_t[]){30, 30, HIGH}, 3));
    assert_true(dcrf_mask_reduced_is_faithful(&found, (const size_t[]){30, 30, 0}, 3));
    dcrf_mask_reduced_clear(&found);
}

/* Axes of which the pixels are large already keep them. */
static void test_reduced_axes(void **state) {
    (void)state;
    const dcrf_grid volume = {3, {300, 200, 10}, {1, 1, 5}};
    const dcrf_grid cells = dcrf_mask_reduced_grid(&volume, 4);
    assert_int_equal(cells.size[0], 75);
    assert_int_equal(cells.size[1], 50);
    assert_int_equal(cells.size[2], 10);
    assert_true(cells.spacing[2] == 5);
}

/* Found at a reduced size, and then followed to the pixel with narrow kernels. */
static void test_large_picture(void **state) {
    (void)state;
    struct scene s = make_scene(1200, 1, 2, 0.25, 0.235);
    float *sure = calloc(s.pixels, sizeof *sure);
    const dcrf_view view = dcrf_view_interleaved(sure, DCRF_F32, &s.grid, 1);
    dcrf_mask_info info;
    for (size_t a = 0; a < s.pixels; a++)
        sure[a] = a % 1200 < 400 ? 1 : 0.9f; /* a part of the border is binding */
    assert_int_equal(find_energies(&s, 1, &view, &info), DCRF_OK);
    size_t wrong = 0;
    for (size_t a = 0; a < s.pixels; a++) {
        if (sure[a] >= 1)
            assert_int_equal(cheapest(&s, a), s.map[a]);
        wrong += sure[a] < 1 && cheapest(&s, a) != s.truth[a];
    }
    assert_true(wrong < 400); /* of a border of some 1,400 pixels, each less than a cell off */
    assert_true(info.spatial_sigma == 1);
    assert_true(info.bilateral_sigma > 1 && info.bilateral_sigma < info.unit);
    assert_int_equal(info.known, s.pixels);
    free(sure);
    free_scene(&s);
}

/* ---- odd maps ------------------------------------------------------------------------------- */

static void test_odd_maps(void **state) {
    (void)state;
    struct scene s = make_scene(30, 1, 3, 0.25, 0.25);
    for (size_t a = 0; a < s.pixels; a++)
        s.map[a] = 1; /* full */
    assert_int_equal(find_energies(&s, 1, NULL, NULL), DCRF_OK);
    for (size_t a = 0; a < s.pixels; a++)
        assert_int_equal(cheapest(&s, a), 1);
    s.map[77] = 2; /* an object of one pixel */
    assert_int_equal(find_energies(&s, 1, NULL, NULL), DCRF_OK);
    for (size_t a = 0; a < s.pixels * 3; a++)
        assert_true(isfinite(s.energies[a]));
    s.map[5] = 3;
    assert_int_equal(find_energies(&s, 1, NULL, NULL), DCRF_ERROR_ARGUMENT);
    for (size_t a = 0; a < s.pixels; a++)
        s.map[a] = -1; /* empty */
    assert_int_equal(find_energies(&s, 1, NULL, NULL), DCRF_ERROR_ARGUMENT);
    free_scene(&s);
}

static void test_confidence(void **state) {
    (void)state;
    struct scene s = make_scene(60, 1, 2, 0.25, 0.35);
    float *sure = calloc(s.pixels, sizeof *sure);
    const dcrf_view view = dcrf_view_interleaved(sure, DCRF_F32, &s.grid, 1);
    for (size_t a = 0; a < s.pixels; a++)
        sure[a] = a % 60 < 30 ? 1 : 0.5f;
    assert_int_equal(find_energies(&s, 1, &view, NULL), DCRF_OK);
    for (size_t a = 0; a < s.pixels; a++)
        if (a % 60 < 30)
            assert_int_equal(cheapest(&s, a), s.map[a]);
    sure[3] = 2;
    assert_int_equal(find_energies(&s, 1, &view, NULL), DCRF_ERROR_ARGUMENT);
    free(sure);
    free_scene(&s);
}

static void test_too_few_floats(void **state) {
    (void)state;
    struct scene s = make_scene(30, 1, 3, 0.25, 0.25);
    const size_t floats = s.pixels * s.labels;
    dcrf_mask_info info = {.known = 77};
    dcrf_error error;
    for (size_t i = 0; i < floats; i++)
        s.energies[i] = 9;
    assert_fails(DCRF_ERROR_SIZE, "the energies: the array holds 2699 elements, 2700 are needed",
                 error, find_energies_in(&s, 1, NULL, floats - 1, &info, &error));
    for (size_t i = 0; i < floats; i++)
        assert_true(s.energies[i] == 9);
    assert_int_equal(info.known, 77);
    free_scene(&s);
}

static void test_moves(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(20, 10);
    uint8_t map[200];
    uint16_t moved[200];
    dcrf_workspace *workspace;
    dcrf_mask_moves moves;
    dcrf_error error;
    for (size_t a = 0; a < 200; a++) {
        map[a] = a % 20 >= 8;
        moved[a] = a % 20 >= 11;
    }
    const dcrf_view view = dcrf_view_interleaved(map, DCRF_U8, &grid, 1);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    assert_int_equal(dcrf_mask_compare(&grid, &view, moved, workspace, &moves, &error), DCRF_OK);
    assert_int_equal(moves.changed, 30);
    assert_int_equal(moves.border, 20);
    assert_true(moves.mean_offset == 2.5); /* columns 10 and 11 from 7 and 8: 2 and 3 */
    dcrf_workspace_free(&workspace);
}

/* ---- what a map is -------------------------------------------------------------------------- */

static dcrf_mask_kind kind_of(const int32_t *numbers, size_t width, size_t rows, int is_rounded) {
    dcrf_mask_traits traits = {.is_rounded = is_rounded};
    for (size_t row = 0; row < rows; row++)
        dcrf_mask_inspect(&traits, numbers + row * width, width, 1);
    assert_true(traits.pixels <= width * rows);
    return dcrf_mask_kind_of(&traits);
}

static void masks_are_told_from_labels(void **state) {
    (void)state;
    enum { WIDTH = 12, ROWS = 2 };
    const int32_t hard[] = {0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 255, 0};
    const int32_t soft[] = {0, 0, 0, 30, 90, 150, 210, 255, 255, 255, 250, 255};
    const int32_t trimap[] = {0, 0, 0, 128, 128, 128, 128, 255, 255, 255, 255, 255};
    const int32_t few[] = {0, 0, 1, 1, 20, 20, 20, 3, 3, 255, 255, 255}; /* 255: unknown */
    const int32_t patches[] = {0, 0, 70, 70, 70, 70, 80, 80, 80, 80, 255, 255};
    const int32_t wide[] = {0, 0, 0, 30, 90, 150, 210, 255, 255, 256, 255, 255};
    const int32_t rounded[] = {0, 9, 3, 0, 1, 40, 254, 250, 240, 255, 255, 230};
    const int32_t missing = DCRF_MASK_MISSING;
    const int32_t parts[] = {0, missing, 0, 255, 255, missing};
    assert_int_equal(kind_of(hard, WIDTH, 1, 0), DCRF_MASK_HARD);
    assert_int_equal(kind_of(hard, WIDTH / ROWS, ROWS, 1), DCRF_MASK_HARD);
    assert_int_equal(kind_of(soft, WIDTH, 1, 0), DCRF_MASK_SOFT);
    assert_int_equal(kind_of(trimap, WIDTH, 1, 0), DCRF_MASK_TRIMAP);
    assert_int_equal(kind_of(few, WIDTH, 1, 0), DCRF_MASK_LABELS);
    assert_int_equal(kind_of(patches, WIDTH, 1, 0), DCRF_MASK_LABELS);
    assert_int_equal(kind_of(patches, WIDTH, 1, 1), DCRF_MASK_LABELS);
    assert_int_equal(kind_of(wide, WIDTH, 1, 0), DCRF_MASK_LABELS);
    assert_int_equal(kind_of(rounded, WIDTH, 1, 0), DCRF_MASK_SOFT);
    assert_int_equal(kind_of(rounded, WIDTH, 1, 1), DCRF_MASK_SOFT);
    assert_int_equal(kind_of(parts, 6, 1, 0), DCRF_MASK_HARD);
    assert_int_equal(kind_of(NULL, 6, 0, 0), DCRF_MASK_LABELS);
    assert_int_equal(dcrf_mask_kind_of(NULL), DCRF_MASK_LABELS);
    assert_int_equal(dcrf_mask_label(DCRF_MASK_LABELS, 128), 128);
    assert_int_equal(dcrf_mask_label(DCRF_MASK_HARD, 255), 1);
    assert_int_equal(dcrf_mask_label(DCRF_MASK_SOFT, 127), 0);
    assert_int_equal(dcrf_mask_label(DCRF_MASK_SOFT, 128), 1);
    assert_int_equal(dcrf_mask_label(DCRF_MASK_TRIMAP, 128), -1);
    assert_int_equal(dcrf_mask_label(DCRF_MASK_TRIMAP, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_borders_are_found),
        cmocka_unit_test(test_information),
        cmocka_unit_test(test_offset_and_spread),
        cmocka_unit_test(test_borders_among_unknown_pixels),
        cmocka_unit_test(test_strip_at_the_frame),
        cmocka_unit_test(test_no_harm),
        cmocka_unit_test(test_wide_trimap),
        cmocka_unit_test(test_size_does_not_matter),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_reduction),
        cmocka_unit_test(test_reduced_axes),
        cmocka_unit_test(test_large_picture),
        cmocka_unit_test(test_odd_maps),
        cmocka_unit_test(test_confidence),
        cmocka_unit_test(test_too_few_floats),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(masks_are_told_from_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
