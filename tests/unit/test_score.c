/* Scores of labellings, against definitions written out independently over all pairs of pixels.
 *
 * Counts must agree exactly. Values may differ by the rounding of a few additions and a division of
 * numbers up to 1; 1e-14 is ample. */
#include "unit.h"

#include "alloc_injection.h"
#include "dataset/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-14
#define NOTHING ((double)NAN)

/* ---- pictures ------------------------------------------------------------------------------- */

enum { PIXELS_MAX = 8000, IMAGES_MAX = 2 };

typedef struct labelled_image {
    size_t width, height;
    uint16_t labels[PIXELS_MAX];
    int32_t truth[PIXELS_MAX];
} labelled_image;

/* Too large for the stack; every test writes them first. */
static labelled_image images[IMAGES_MAX];

static size_t below(size_t limit) {
    static uint64_t state = 12345;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % limit;
}

/* Classes from `first` to `last`, or void if `with_void`. */
static int32_t random_truth(size_t first, size_t last, bool with_void) {
    if (with_void && below(4) == 0)
        return TRUTH_VOID;
    return (int32_t)(first + below(last - first + 1));
}

enum { REGIONS_MAX = 6 };

/* Voronoi regions of some points, so that some pixels are far from any boundary. */
static void draw_regions(labelled_image *image, const int32_t *truth_of_region, size_t regions) {
    size_t x0[REGIONS_MAX], y0[REGIONS_MAX];
    for (size_t r = 0; r < regions; r++) {
        x0[r] = below(image->width);
        y0[r] = below(image->height);
    }
    for (size_t i = 0; i < image->width * image->height; i++) {
        double nearest = INFINITY;
        for (size_t r = 0; r < regions; r++) {
            const double distance = hypot((double)(i % image->width) - (double)x0[r],
                                          (double)(i / image->width) - (double)y0[r]);
            if (distance < nearest) {
                nearest = distance;
                image->truth[i] = truth_of_region[r];
            }
        }
    }
}

/* A truth of noise or of regions, with some classes absent; labels that are often right. */
static void draw(labelled_image *image, size_t width, size_t height, size_t classes) {
    const bool noise = below(4) == 0, with_void = below(3) > 0, only_void = below(12) == 0;
    const size_t first = below(classes), last = first + below(classes - first);
    int32_t truth_of_region[REGIONS_MAX];
    assert_true(width * height <= PIXELS_MAX);
    image->width = width;
    image->height = height;
    for (size_t r = 0; r < REGIONS_MAX; r++)
        truth_of_region[r] = only_void ? TRUTH_VOID : random_truth(first, last, with_void);
    draw_regions(image, truth_of_region, 1 + below(REGIONS_MAX));
    for (size_t i = 0; i < width * height; i++) {
        if (noise && !only_void)
            image->truth[i] = random_truth(first, last, with_void);
        image->labels[i] = image->truth[i] == TRUTH_VOID || below(3) == 0
                               ? (uint16_t)below(classes)
                               : (uint16_t)image->truth[i];
    }
}

/* ---- the definitions, literally ------------------------------------------------------------- */

/* Is there a pixel of another truth within `band_px` of pixel a? */
static bool is_in_band(const labelled_image *image, size_t a, size_t band_px) {
    for (size_t b = 0; b < image->width * image->height; b++) {
        const double dx = (double)(a % image->width) - (double)(b % image->width);
        const double dy = (double)(a / image->width) - (double)(b / image->width);
        if (image->truth[b] != image->truth[a] && sqrt(dx * dx + dy * dy) <= (double)band_px)
            return true;
    }
    return false;
}

/* The share of the scored pixels in `whole` that are also in `part`, over all images. */
typedef bool pixel_set(const labelled_image *image, size_t pixel, size_t argument);

static bool is_any(const labelled_image *image, size_t pixel, size_t argument) {
    (void)image, (void)pixel, (void)argument;
    return true;
}

static bool has_truth(const labelled_image *image, size_t pixel, size_t class) {
    return image->truth[pixel] == (int32_t) class;
}

static bool has_either(const labelled_image *image, size_t pixel, size_t class) {
    return has_truth(image, pixel, class) || image->labels[pixel] == class;
}

static bool is_right(const labelled_image *image, size_t pixel, size_t argument) {
    (void)argument;
    return image->truth[pixel] == (int32_t)image->labels[pixel];
}

static bool is_right_class(const labelled_image *image, size_t pixel, size_t class) {
    return has_truth(image, pixel, class) && image->labels[pixel] == class;
}

static double size_of(pixel_set *set, size_t image_count, size_t argument) {
    double size = 0;
    for (size_t m = 0; m < image_count; m++)
        for (size_t i = 0; i < images[m].width * images[m].height; i++)
            if (images[m].truth[i] != TRUTH_VOID && set(&images[m], i, argument))
                size += 1;
    return size;
}

static double naive_ratio(pixel_set *part, pixel_set *whole, size_t image_count, size_t argument) {
    const double size = size_of(whole, image_count, argument);
    return size > 0 ? size_of(part, image_count, argument) / size : NOTHING;
}

static void assert_same(double found, double expected) {
    if (isnan(expected) ? !isnan(found) : !(fabs(found - expected) <= TOLERANCE))
        fail_msg("%.17g instead of %.17g", found, expected);
}

static void check_classes(const score *s, size_t image_count) {
    double sum_iou = 0, sum_accuracy = 0, present = 0;
    for (size_t c = 0; c < s->classes; c++) {
        const bool occurs = size_of(has_truth, image_count, c) > 0;
        const double iou = naive_ratio(is_right_class, has_either, image_count, c);
        const double accuracy = naive_ratio(is_right_class, has_truth, image_count, c);
        assert_same(score_iou(s, c), occurs ? iou : NOTHING);
        assert_same(score_class_accuracy(s, c), accuracy);
        if (occurs) {
            sum_iou += iou;
            sum_accuracy += accuracy;
            present += 1;
        }
    }
    assert_same(score_mean_iou(s), present > 0 ? sum_iou / present : NOTHING);
    assert_same(score_mean_class_accuracy(s), present > 0 ? sum_accuracy / present : NOTHING);
}

static void check_confusion(const score *s, size_t image_count) {
    for (size_t t = 0; t < s->classes; t++)
        for (size_t l = 0; l < s->classes; l++) {
            uint64_t expected = 0;
            for (size_t m = 0; m < image_count; m++)
                for (size_t i = 0; i < images[m].width * images[m].height; i++)
                    expected += has_truth(&images[m], i, t) && images[m].labels[i] == l;
            assert_int_equal(confusion_get(&s->pairs, (uint16_t)t, (uint16_t)l), expected);
        }
}

static void check_bands(const score *s, size_t image_count) {
    assert_int_equal(s->band_pixels[0], 0);
    assert_int_equal(s->band_right[0], 0);
    for (size_t k = 1; k <= SCORE_BAND_MAX_PX; k++) {
        const bool counted = k <= s->band_px;
        const double pixels = counted ? size_of(is_in_band, image_count, k) : 0;
        double right = 0;
        for (size_t m = 0; counted && m < image_count; m++)
            for (size_t i = 0; i < images[m].width * images[m].height; i++)
                if (is_right(&images[m], i, 0) && is_in_band(&images[m], i, k))
                    right += 1;
        assert_true((double)s->band_pixels[k] == pixels);
        assert_true((double)s->band_right[k] == right);
        assert_same(score_band_accuracy(s, k), pixels > 0 ? right / pixels : NOTHING);
    }
}

static void check_score(const score *s, size_t image_count) {
    check_confusion(s, image_count);
    check_classes(s, image_count);
    check_bands(s, image_count);
    assert_true((double)score_pixels(s) == size_of(is_any, image_count, 0));
    assert_same(score_accuracy(s), naive_ratio(is_right, is_any, image_count, 0));
}

static void count_image(score *s, const labelled_image *image) {
    assert_true(score_count(s, image->labels, image->truth, image->width, image->height));
}

/* ---- counting ------------------------------------------------------------------------------- */

static void check_random(size_t width_max, size_t height_max, size_t band_max, size_t rounds) {
    for (size_t round = 0; round < rounds; round++) {
        const size_t classes = 1 + below(5);
        score s;
        assert_true(score_new(&s, classes, below(band_max + 1)));
        for (size_t m = 0; m < IMAGES_MAX; m++) {
            draw(&images[m], 1 + below(width_max), 1 + below(height_max), classes);
            count_image(&s, &images[m]);
        }
        check_score(&s, IMAGES_MAX);
        score_free(&s);
    }
}

static void test_random_images(void **state) {
    (void)state;
    check_random(13, 13, 10, 300);
    check_random(30, 30, 40, 4);
    check_random(90, 1, SCORE_BAND_MAX_PX, 30);
    check_random(1, 90, SCORE_BAND_MAX_PX, 30);
}

/* Boundaries so far away that only the widest bands reach them, if any. */
static void test_a_far_corner(void **state) {
    (void)state;
    labelled_image *image = &images[0];
    image->width = 60;
    image->height = 50;
    for (size_t corner = 0; corner < 4; corner++) {
        score s;
        memset(image->truth, 0, sizeof image->truth);
        memset(image->labels, 0, sizeof image->labels);
        image->truth[(corner % 2) * 59 + (corner / 2) * 49 * 60] = 1;
        assert_true(score_new(&s, 2, SCORE_BAND_MAX_PX));
        count_image(&s, image);
        check_score(&s, 1);
        assert_true(s.band_pixels[SCORE_BAND_MAX_PX] < score_pixels(&s));
        assert_int_equal(s.band_pixels[1], 3);
        score_free(&s);
    }
}

static void test_nothing_counted(void **state) {
    (void)state;
    score s;
    assert_true(score_new(&s, 3, 5));
    assert_true(score_count(&s, NULL, NULL, 0, 7));
    draw(&images[0], 4, 3, 3);
    for (size_t i = 0; i < 12; i++)
        images[0].truth[i] = TRUTH_VOID;
    count_image(&s, &images[0]);
    assert_int_equal(score_pixels(&s), 0);
    assert_true(isnan(score_accuracy(&s)) && isnan(score_mean_iou(&s)));
    assert_true(isnan(score_mean_class_accuracy(&s)) && isnan(score_iou(&s, 2)));
    assert_true(isnan(score_class_accuracy(&s, 0)) && isnan(score_band_accuracy(&s, 5)));
    score_free(&s);
    assert_true(score_new(&s, 0, 0));
    assert_true(isnan(score_accuracy(&s)) && isnan(score_mean_iou(&s)));
    score_free(&s);
    score_free(&s);
}

/* Class 2 is only predicted: its pixels lower the others' scores, and it has no score itself. */
static void test_absent_classes_do_not_count(void **state) {
    (void)state;
    const int32_t truth[] = {0, 0, 0, 0, 1, 1, TRUTH_VOID, TRUTH_VOID};
    const uint16_t labels[] = {0, 0, 0, 2, 1, 0, 2, 1};
    score s;
    assert_true(score_new(&s, 4, 0));
    assert_true(score_count(&s, labels, truth, 8, 1));
    assert_same(score_accuracy(&s), 4. / 6);
    assert_same(score_iou(&s, 0), 3. / 5);
    assert_same(score_iou(&s, 1), 1. / 2);
    assert_true(isnan(score_iou(&s, 2)) && isnan(score_iou(&s, 3)));
    assert_same(score_mean_iou(&s), (3. / 5 + 1. / 2) / 2);
    assert_same(score_mean_class_accuracy(&s), (3. / 4 + 1. / 2) / 2);
    score_free(&s);
}

static void assert_same_pairs(const score *a, const score *b) {
    assert_int_equal(a->pairs.used, b->pairs.used);
    confusion_cell *of_a = confusion_sorted(&a->pairs), *of_b = confusion_sorted(&b->pairs);
    for (size_t i = 0; i < a->pairs.used; i++)
        assert_true(of_a[i].truth == of_b[i].truth && of_a[i].label == of_b[i].label &&
                    of_a[i].pixels == of_b[i].pixels);
    free(of_a);
    free(of_b);
    assert_memory_equal(a->of_class, b->of_class,
                        a->classes * SCORE_CLASS_COUNTS * sizeof *a->of_class);
}

static void test_parts_add_up(void **state) {
    (void)state;
    for (size_t round = 0; round < 50; round++) {
        score whole, parts[2], sums[2];
        assert_true(score_new(&whole, 4, 6));
        for (size_t m = 0; m < 2; m++) {
            draw(&images[m], 1 + below(15), 1 + below(15), 4);
            assert_true(score_new(&parts[m], 4, 6) && score_new(&sums[m], 4, 6));
            count_image(&parts[m], &images[m]);
            count_image(&whole, &images[m]);
        }
        for (size_t m = 0; m < 2; m++) {
            assert_true(score_add(&sums[m], &parts[m]));
            assert_true(score_add(&sums[m], &parts[1 - m]));
            assert_same_pairs(&sums[m], &whole);
            assert_memory_equal(sums[m].band_pixels, whole.band_pixels, sizeof whole.band_pixels);
            assert_memory_equal(sums[m].band_right, whole.band_right, sizeof whole.band_right);
        }
        for (size_t m = 0; m < 2; m++) {
            score_free(&parts[m]);
            score_free(&sums[m]);
        }
        score_free(&whole);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static char *text_of(const score *s) {
    json_t *json = score_to_json(s);
    assert_non_null(json);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_non_null(text);
    json_decref(json);
    return text;
}

static bool from_text(score *s, const char *text) {
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    memset(s, 0x55, sizeof *s);
    const bool taken = score_from_json(s, json);
    json_decref(json);
    return taken;
}

/* A matrix of all pairs would take 34 GB. */
static void test_65535_classes(void **state) {
    (void)state;
    enum { CLASSES = 65535, WIDTH = 100, HEIGHT = 80 };
    score s, part;
    labelled_image *image = &images[0];
    image->width = WIDTH;
    image->height = HEIGHT;
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        image->truth[i] = (int32_t)(i * 8 % CLASSES);
        image->labels[i] = (uint16_t)(i % 4 ? image->truth[i] : CLASSES - 1);
    }
    assert_true(score_new(&s, CLASSES, 2) && score_new(&part, CLASSES, 2));
    count_image(&part, image);
    assert_true(score_add(&s, &part));
    assert_int_equal(s.pairs.used, WIDTH * HEIGHT);
    assert_same(score_accuracy(&s), 0.75);
    assert_same(score_iou(&s, 8), 1);
    assert_same(score_iou(&s, 0), 0);
    assert_int_equal(confusion_get(&s.pairs, 32, CLASSES - 1), 1);
    char *text = text_of(&s);
    score again;
    assert_true(from_text(&again, text));
    assert_same_pairs(&again, &s);
    free(text);
    score_free(&again);
    score_free(&part);
    score_free(&s);
}

static void test_json_round_trip(void **state) {
    (void)state;
    for (size_t round = 0; round < 50; round++) {
        score s, again;
        assert_true(score_new(&s, 1 + below(6), below(SCORE_BAND_MAX_PX + 1)));
        draw(&images[0], 1 + below(15), 1 + below(15), s.classes);
        if (round > 0)
            count_image(&s, &images[0]);
        char *text = text_of(&s);
        assert_true(from_text(&again, text));
        char *text_again = text_of(&again);
        assert_string_equal(text, text_again);
        assert_true(again.classes == s.classes && again.band_px == s.band_px);
        assert_same_pairs(&again, &s);
        assert_memory_equal(again.band_pixels, s.band_pixels, sizeof s.band_pixels);
        assert_memory_equal(again.band_right, s.band_right, sizeof s.band_right);
        free(text);
        free(text_again);
        score_free(&s);
        score_free(&again);
    }
}

static void test_json_by_hand(void **state) {
    (void)state;
    const int32_t truth[] = {0, 1, 1, 1};
    const uint16_t labels[] = {0, 0, 1, 1};
    score s;
    assert_true(score_new(&s, 2, 3));
    assert_true(score_count(&s, labels, truth, 4, 1));
    char *text = text_of(&s);
    assert_string_equal(text, "{\"classes\":2,\"confusion\":[[0,0,1],[1,0,1],[1,1,2]],"
                              "\"band_pixels\":[2,3,4],\"band_right\":[1,2,3]}");
    free(text);
    score_free(&s);
}

/* The four members; quotes are written as ' to avoid backslashes. */
static void write_json(char *text, size_t bytes, const char *classes, const char *pairs,
                       const char *pixels, const char *right) {
    snprintf(text, bytes, "{'classes': %s, 'confusion': %s, 'band_pixels': %s, 'band_right': %s}",
             classes, pairs, pixels, right);
    for (; *text; text++)
        if (*text == '\'')
            *text = '"';
}

static void test_malformed_json(void **state) {
    (void)state;
    static const char *const members[][4] = {
        /* classes */
        {"-1", "[]", "[]", "[]"},
        {"65537", "[]", "[]", "[]"},
        {"9223372036854775807", "[]", "[]", "[]"},
        {"2.0", "[]", "[]", "[]"},
        {"'2'", "[]", "[]", "[]"},
        {"null", "[]", "[]", "[]"},
        /* confusion */
        {"2", "{}", "[]", "[]"},
        {"2", "null", "[]", "[]"},
        {"2", "[3]", "[]", "[]"},
        {"2", "[[]]", "[]", "[]"},
        {"2", "[[0, 0]]", "[]", "[]"},
        {"2", "[[0, 0, 1, 1]]", "[]", "[]"},
        {"2", "[{}]", "[]", "[]"},
        {"2", "[[2, 0, 1]]", "[]", "[]"},
        {"2", "[[0, 2, 1]]", "[]", "[]"},
        {"2", "[[-1, 0, 1]]", "[]", "[]"},
        {"2", "[[0, -1, 1]]", "[]", "[]"},
        {"2", "[[0, 0, -1]]", "[]", "[]"},
        {"2", "[[0, 0, 0]]", "[]", "[]"},
        {"2", "[[0, 0, 1.0]]", "[]", "[]"},
        {"2", "[[0, '0', 1]]", "[]", "[]"},
        {"2", "[[0, 0, true]]", "[]", "[]"},
        {"2", "[[0, 0, 1], [0, 0, 1]]", "[]", "[]"},
        {"2", "[[0, 0, 9223372036854775807], [0, 1, 1]]", "[]", "[]"},
        {"0", "[[0, 0, 1]]", "[]", "[]"},
        /* bands */
        {"2", "[[0, 0, 9]]", "[1]", "[]"},
        {"2", "[[0, 0, 9]]", "[1, 2]", "[1]"},
        {"2", "[[0, 0, 9]]", "{}", "{}"},
        {"2", "[[0, 0, 9]]", "null", "null"},
        {"2", "[[0, 0, 9]]", "1", "1"},
        {"2", "[[0, 0, 9]]", "[1.0]", "[1]"},
        {"2", "[[0, 0, 9]]", "[1]", "['1']"},
        {"2", "[[0, 0, 9]]", "[-1]", "[-1]"},
        {"2", "[[0, 0, 9]]", "[1]", "[-1]"},
        {"2", "[[0, 0, 9]]", "[10]", "[1]"},
        {"2", "[[0, 0, 9]]", "[1]", "[2]"},
        {"2", "[[0, 1, 9]]", "[1]", "[1]"},
        {"2", "[[0, 0, 9]]", "[3, 2]", "[1, 1]"},
        {"2", "[[0, 0, 9]]", "[3, 3]", "[2, 1]"},
    };
    char text[512];
    score s;
    write_json(text, sizeof text, "2", "[[0, 0, 9]]", "[3, 4]", "[2, 2]");
    assert_true(from_text(&s, text));
    score_free(&s);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        write_json(text, sizeof text, members[i][0], members[i][1], members[i][2], members[i][3]);
        if (from_text(&s, text))
            fail_msg("%s was taken for a score", text);
        assert_true(!s.of_class && !s.pairs.cells && s.classes == 0 && s.band_px == 0);
    }
    assert_false(score_from_json(&s, NULL));
}

static void test_missing_members(void **state) {
    (void)state;
    static const char *const names[] = {"classes", "confusion", "band_pixels", "band_right"};
    score s, other;
    assert_true(score_new(&s, 2, 1));
    for (size_t i = 0; i < 4; i++) {
        json_t *json = score_to_json(&s);
        assert_int_equal(json_object_del(json, names[i]), 0);
        assert_false(score_from_json(&other, json));
        json_decref(json);
    }
    assert_false(from_text(&other, "[]"));
    assert_false(from_text(&other, "3"));
    score_free(&s);
}

static void test_number_of_bands(void **state) {
    (void)state;
    char text[1024], zeros[512] = "[0";
    score s;
    for (size_t k = 1; k < SCORE_BAND_MAX_PX; k++)
        strcat(zeros, ",0");
    strcat(zeros, "]");
    write_json(text, sizeof text, "2", "[]", zeros, zeros);
    assert_true(from_text(&s, text));
    assert_int_equal(s.band_px, SCORE_BAND_MAX_PX);
    score_free(&s);
    strcpy(zeros + strlen(zeros) - 1, ",0]");
    write_json(text, sizeof text, "2", "[]", zeros, zeros);
    assert_false(from_text(&s, text));
}

/* ---- memory --------------------------------------------------------------------------------- */

static dcrf_status no_memory(dcrf_error *error) {
    *error = (dcrf_error){DCRF_ERROR_MEMORY, "out of memory"};
    return DCRF_ERROR_MEMORY;
}

/* Count an image; a failure leaves the score unchanged. */
static dcrf_status count_scenario(dcrf_error *error) {
    score s = {0}, again = {0};
    json_t *json = NULL;
    bool done = score_new(&s, 3, 4);
    if (done) {
        done = score_count(&s, images[0].labels, images[0].truth, 9, 8);
        assert_int_equal(score_pixels(&s), done ? 72 : 0);
    }
    if (done) {
        json = score_to_json(&s);
        done = json && score_from_json(&again, json);
    }
    json_decref(json);
    score_free(&s);
    score_free(&again);
    return done ? DCRF_OK : no_memory(error);
}

static void test_failing_allocations(void **state) {
    (void)state;
    images[0].width = 9;
    images[0].height = 8;
    for (size_t i = 0; i < 72; i++) {
        images[0].truth[i] = (int32_t)(i % 5 % 3);
        images[0].labels[i] = (uint16_t)(i % 3);
    }
    /* So that JSON allocations can be made to fail too. */
    json_set_alloc_funcs(malloc, free);
    assert_true(check_failing_allocations("score", count_scenario) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_images),   cmocka_unit_test(test_a_far_corner),
        cmocka_unit_test(test_nothing_counted), cmocka_unit_test(test_absent_classes_do_not_count),
        cmocka_unit_test(test_parts_add_up),    cmocka_unit_test(test_65535_classes),
        cmocka_unit_test(test_json_round_trip), cmocka_unit_test(test_json_by_hand),
        cmocka_unit_test(test_malformed_json),  cmocka_unit_test(test_missing_members),
        cmocka_unit_test(test_number_of_bands), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
