/* Counting labels against the truth, and what follows from the counts.
 *
 * Bands. The distance of a pixel to the nearest one of another truth is taken in two steps. First
 * down the columns: g(x, y) is the distance of pixel (x, y) to the nearest pixel of its column with
 * another truth. Then along its row, for a pixel (x, y) of truth t,
 *
 *   d(x, y)^2 = min over x' of (x - x')^2 + (truth(x', y) == t ? g(x', y)^2 : 0),
 *
 * for in column x' the nearest pixel of another truth than t is (x', y) itself, or, where that has
 * truth t, the one that g tells of. From x either way the search ends where x' alone is as far as
 * the best found, at the latest behind the first pixel of another truth. Numbers are integers:
 * nothing is rounded. */
#include "dataset/score.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Labels have 16 bits. */
#define CLASSES_MAX ((size_t)UINT16_MAX + 1)

bool score_new(score *s, size_t classes, size_t band_px) {
    assert(classes <= CLASSES_MAX && band_px <= SCORE_BAND_MAX_PX);
    *s = (score){.classes = classes, .band_px = band_px};
    if (classes == 0)
        return true;
    if (classes <= SIZE_MAX / classes)
        s->confusion = calloc(classes * classes, sizeof *s->confusion);
    if (!s->confusion)
        *s = (score){0};
    return s->confusion != NULL;
}

void score_free(score *s) {
    free(s->confusion);
    *s = (score){0};
}

/* ---- counting ------------------------------------------------------------------------------- */

/* g of all pixels, that beyond the widest band as one number more than it. */
static void measure_columns(const int32_t *truth, size_t width, size_t height, size_t band_px,
                            uint8_t *column_px) {
    const uint8_t far_px = (uint8_t)(band_px + 1);
    const size_t count = width * height;
    for (size_t i = 0; i < count; i++) {
        uint8_t px = far_px;
        if (i >= width && truth[i] != truth[i - width])
            px = 1;
        else if (i >= width && column_px[i - width] < far_px)
            px = (uint8_t)(column_px[i - width] + 1);
        column_px[i] = px;
    }
    for (size_t i = count - width; i-- > 0;) {
        const size_t below = i + width;
        const uint8_t px = truth[i] != truth[below] ? 1 : (uint8_t)(column_px[below] + 1);
        if (px < column_px[i])
            column_px[i] = px;
    }
}

/* The squared distance of pixel x of a row to another truth, or that of `most_px` if it is less. */
static size_t square_distance(const int32_t *truth, const uint8_t *column_px, size_t width,
                              size_t x, size_t most_px) {
    size_t best = most_px * most_px;
    for (int side = 0; side < 2; side++) {
        const size_t most = side == 0 ? x : width - 1 - x;
        for (size_t step = 0; step <= most && step * step < best; step++) {
            const size_t at = side == 0 ? x - step : x + step;
            const size_t column = truth[at] == truth[x] ? column_px[at] : 0;
            const size_t square = step * step + column * column;
            best = square < best ? square : best;
        }
    }
    return best;
}

/* The least band that holds a squared distance. */
static size_t band_of(size_t square) {
    size_t px = 1;
    while (px * px < square)
        px++;
    return px;
}

static void count_bands(score *s, const uint16_t *labels, const int32_t *truth, size_t width,
                        size_t height, uint8_t *column_px) {
    /* Pixels by the least band that holds them; the last one is beyond them all. */
    uint64_t pixels[SCORE_BAND_MAX_PX + 2] = {0}, right[SCORE_BAND_MAX_PX + 2] = {0};
    measure_columns(truth, width, height, s->band_px, column_px);
    for (size_t i = 0; i < width * height; i++) {
        if (truth[i] == TRUTH_VOID)
            continue;
        const size_t x = i % width, row = i - x;
        const size_t band =
            band_of(square_distance(truth + row, column_px + row, width, x, s->band_px + 1));
        pixels[band]++;
        right[band] += truth[i] == labels[i];
    }
    for (size_t band = 1; band <= s->band_px; band++) {
        pixels[band] += pixels[band - 1];
        right[band] += right[band - 1];
        s->band_pixels[band] += pixels[band];
        s->band_right[band] += right[band];
    }
}

bool score_count(score *s, const uint16_t *labels, const int32_t *truth, size_t width,
                 size_t height) {
    const size_t count = width * height;
    if (count == 0)
        return true;
    if (s->band_px > 0) {
        uint8_t *column_px = malloc(count);
        if (!column_px)
            return false;
        count_bands(s, labels, truth, width, height, column_px);
        free(column_px);
    }
    for (size_t i = 0; i < count; i++) {
        if (truth[i] == TRUTH_VOID)
            continue;
        assert(truth[i] >= 0 && (size_t)truth[i] < s->classes && labels[i] < s->classes);
        s->confusion[(size_t)truth[i] * s->classes + labels[i]]++;
    }
    return true;
}

void score_add(score *s, const score *part) {
    assert(s->classes == part->classes && s->band_px == part->band_px);
    for (size_t i = 0; i < s->classes * s->classes; i++)
        s->confusion[i] += part->confusion[i];
    for (size_t band = 1; band <= s->band_px; band++) {
        s->band_pixels[band] += part->band_pixels[band];
        s->band_right[band] += part->band_right[band];
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static double ratio(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static uint64_t right_of(const score *s, size_t label) {
    assert(label < s->classes);
    return s->confusion[label * s->classes + label];
}

/* Pixels that have the class in the truth. */
static uint64_t truth_of(const score *s, size_t label) {
    uint64_t sum = 0;
    for (size_t other = 0; other < s->classes; other++)
        sum += s->confusion[label * s->classes + other];
    return sum;
}

/* Pixels that have the class in the labelling. */
static uint64_t labelled_as(const score *s, size_t label) {
    uint64_t sum = 0;
    for (size_t other = 0; other < s->classes; other++)
        sum += s->confusion[other * s->classes + label];
    return sum;
}

uint64_t score_pixels(const score *s) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s->classes * s->classes; i++)
        sum += s->confusion[i];
    return sum;
}

static uint64_t right_pixels(const score *s) {
    uint64_t sum = 0;
    for (size_t label = 0; label < s->classes; label++)
        sum += right_of(s, label);
    return sum;
}

double score_accuracy(const score *s) {
    return ratio(right_pixels(s), score_pixels(s));
}

double score_class_accuracy(const score *s, size_t label) {
    return ratio(right_of(s, label), truth_of(s, label));
}

double score_iou(const score *s, size_t label) {
    const uint64_t right = right_of(s, label), truth = truth_of(s, label);
    return truth > 0 ? ratio(right, truth + labelled_as(s, label) - right) : NAN;
}

/* The mean over the classes that have a value. */
static double class_mean(const score *s, double (*value)(const score *s, size_t label)) {
    double sum = 0;
    size_t count = 0;
    for (size_t label = 0; label < s->classes; label++) {
        const double of_label = value(s, label);
        if (isnan(of_label))
            continue;
        sum += of_label;
        count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

double score_mean_class_accuracy(const score *s) {
    return class_mean(s, score_class_accuracy);
}

double score_mean_iou(const score *s) {
    return class_mean(s, score_iou);
}

double score_band_accuracy(const score *s, size_t band_px) {
    assert(band_px <= SCORE_BAND_MAX_PX);
    return ratio(s->band_right[band_px], s->band_pixels[band_px]);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *confusion_to_json(const score *s) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < s->classes * s->classes; i++) {
        if (s->confusion[i] == 0)
            continue;
        json_t *entry = json_pack("[I, I, I]", (json_int_t)(i / s->classes),
                                  (json_int_t)(i % s->classes), (json_int_t)s->confusion[i]);
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *bands_to_json(const uint64_t *counts, size_t band_px) {
    json_t *list = json_array();
    for (size_t band = 1; list && band <= band_px; band++)
        if (json_array_append_new(list, json_integer((json_int_t)counts[band])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

json_t *score_to_json(const score *s) {
    /* Members that are NULL make this NULL, and the others are dropped. */
    return json_pack("{s:I, s:o, s:o, s:o}", "classes", (json_int_t)s->classes, "confusion",
                     confusion_to_json(s), "band_pixels", bands_to_json(s->band_pixels, s->band_px),
                     "band_right", bands_to_json(s->band_right, s->band_px));
}

/* A whole number from 0 to `most`. */
static bool take_count(const json_t *json, uint64_t most, uint64_t *count) {
    const json_int_t number = json_integer_value(json);
    if (!json_is_integer(json) || number < 0 || (uint64_t)number > most)
        return false;
    *count = (uint64_t)number;
    return true;
}

/* Every pair of classes at most once, and a sum that is a number of JSON again. */
static bool take_confusion(score *s, const json_t *list) {
    uint64_t left = INT64_MAX;
    if (!json_is_array(list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        uint64_t truth, label, pixels;
        if (json_array_size(entry) != 3 || s->classes == 0 ||
            !take_count(json_array_get(entry, 0), s->classes - 1, &truth) ||
            !take_count(json_array_get(entry, 1), s->classes - 1, &label) ||
            !take_count(json_array_get(entry, 2), left, &pixels))
            return false;
        uint64_t *place = &s->confusion[(size_t)truth * s->classes + (size_t)label];
        if (pixels == 0 || *place > 0)
            return false;
        *place = pixels;
        left -= pixels;
    }
    return true;
}

/* A band holds the narrower ones, and is held by the image. */
static bool take_bands(score *s, const json_t *pixels, const json_t *right) {
    const uint64_t most_pixels = score_pixels(s), most_right = right_pixels(s);
    for (size_t band = 1; band <= s->band_px; band++) {
        uint64_t *count = &s->band_pixels[band], *count_right = &s->band_right[band];
        if (!take_count(json_array_get(pixels, band - 1), most_pixels, count) ||
            !take_count(json_array_get(right, band - 1), most_right, count_right) ||
            *count_right > *count || *count < s->band_pixels[band - 1] ||
            *count_right < s->band_right[band - 1])
            return false;
    }
    return true;
}

bool score_from_json(score *s, const json_t *json) {
    const json_t *pixels = json_object_get(json, "band_pixels");
    const json_t *right = json_object_get(json, "band_right");
    const size_t band_px = json_array_size(pixels);
    uint64_t classes;
    *s = (score){0};
    if (!json_is_array(pixels) || !json_is_array(right) || json_array_size(right) != band_px ||
        band_px > SCORE_BAND_MAX_PX ||
        !take_count(json_object_get(json, "classes"), CLASSES_MAX, &classes) ||
        !score_new(s, (size_t)classes, band_px))
        return false;
    const bool taken =
        take_confusion(s, json_object_get(json, "confusion")) && take_bands(s, pixels, right);
    if (!taken)
        score_free(s);
    return taken;
}
