/* Counting labels against the truth, and values derived from the counts.
 *
 * Bands. The distance of a pixel to the nearest one of another truth is computed in two steps.
 * First along the columns: g(x, y) is the distance of pixel (x, y) to the nearest pixel of its
 * column with another truth. Then along its row, for a pixel (x, y) of truth t,
 *
 *   d(x, y)^2 = min over x' of (x - x')^2 + (truth(x', y) == t ? g(x', y)^2 : 0),
 *
 * because in column x' the nearest pixel of another truth than t is (x', y) itself, or, if that
 * has truth t, the one at distance g. In both directions from x, the search ends where x' alone
 * is as far as the best found, at the latest after the first pixel of another truth. All numbers
 * are integers, so there is no rounding. */
#include "dataset/score.h"

#include "io/json.h"

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
    s->of_class = calloc(classes, SCORE_CLASS_COUNTS * sizeof *s->of_class);
    if (!s->of_class)
        *s = (score){0};
    return s->of_class != NULL;
}

void score_free(score *s) {
    confusion_free(&s->pairs);
    free(s->of_class);
    *s = (score){0};
}

/* ---- counting ------------------------------------------------------------------------------- */

/* g of all pixels, clamped to one more than the widest band. */
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

/* The squared distance of pixel x of a row to another truth, at most that of `most_px`. */
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

/* The narrowest band that contains a squared distance. */
static size_t band_of(size_t square) {
    size_t px = 1;
    while (px * px < square)
        px++;
    return px;
}

static void count_bands(score *s, const uint16_t *labels, const int32_t *truth, size_t width,
                        size_t height, uint8_t *column_px) {
    /* Pixels by the narrowest band that contains them; the last element is beyond all bands. */
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

/* Count pixels of a pair for which there is room. */
static void count_pair(score *s, uint16_t truth, uint16_t label, uint64_t pixels) {
    assert(truth < s->classes && label < s->classes);
    confusion_add(&s->pairs, truth, label, pixels);
    s->of_class[truth * SCORE_CLASS_COUNTS + SCORE_IN_TRUTH] += pixels;
    s->of_class[label * SCORE_CLASS_COUNTS + SCORE_IN_LABELS] += pixels;
    if (truth == label)
        s->of_class[truth * SCORE_CLASS_COUNTS + SCORE_RIGHT] += pixels;
}

static void count_pairs(score *s, const confusion *pairs) {
    for (size_t i = 0; i < pairs->capacity; i++)
        if (pairs->cells[i].pixels > 0)
            count_pair(s, pairs->cells[i].truth, pairs->cells[i].label, pairs->cells[i].pixels);
}

/* The pairs of an image; false if out of memory. */
static bool list_pairs(const uint16_t *labels, const int32_t *truth, size_t count,
                       confusion *pairs) {
    for (size_t i = 0; i < count;) {
        size_t end = i + 1; /* of a run of equal pairs */
        while (end < count && truth[end] == truth[i] && labels[end] == labels[i])
            end++;
        if (truth[i] != TRUTH_VOID) {
            if (!confusion_reserve(pairs, pairs->used + 1))
                return false;
            confusion_add(pairs, (uint16_t)truth[i], labels[i], end - i);
        }
        i = end;
    }
    return true;
}

bool score_count(score *s, const uint16_t *labels, const int32_t *truth, size_t width,
                 size_t height) {
    const size_t count = width * height;
    if (count == 0)
        return true;
    confusion pairs = {0};
    uint8_t *column_px = s->band_px > 0 ? malloc(count) : NULL;
    const bool has_room = (column_px || s->band_px == 0) &&
                          list_pairs(labels, truth, count, &pairs) &&
                          confusion_reserve(&s->pairs, s->pairs.used + pairs.used);
    if (has_room && s->band_px > 0)
        count_bands(s, labels, truth, width, height, column_px);
    if (has_room)
        count_pairs(s, &pairs);
    confusion_free(&pairs);
    free(column_px);
    return has_room;
}

bool score_add(score *s, const score *part) {
    assert(s->classes == part->classes && s->band_px == part->band_px);
    if (!confusion_reserve(&s->pairs, s->pairs.used + part->pairs.used))
        return false;
    count_pairs(s, &part->pairs);
    for (size_t band = 1; band <= s->band_px; band++) {
        s->band_pixels[band] += part->band_pixels[band];
        s->band_right[band] += part->band_right[band];
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

static double ratio(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static uint64_t count_of(const score *s, size_t label, size_t what) {
    assert(label < s->classes);
    return s->of_class[label * SCORE_CLASS_COUNTS + what];
}

static uint64_t sum_of(const score *s, size_t what) {
    uint64_t sum = 0;
    for (size_t label = 0; label < s->classes; label++)
        sum += count_of(s, label, what);
    return sum;
}

uint64_t score_pixels(const score *s) {
    return sum_of(s, SCORE_IN_TRUTH);
}

double score_accuracy(const score *s) {
    return ratio(sum_of(s, SCORE_RIGHT), score_pixels(s));
}

double score_class_accuracy(const score *s, size_t label) {
    return ratio(count_of(s, label, SCORE_RIGHT), count_of(s, label, SCORE_IN_TRUTH));
}

double score_iou(const score *s, size_t label) {
    const uint64_t right = count_of(s, label, SCORE_RIGHT);
    const uint64_t truth = count_of(s, label, SCORE_IN_TRUTH);
    return truth > 0 ? ratio(right, truth + count_of(s, label, SCORE_IN_LABELS) - right) : NAN;
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

json_t *score_pairs_to_json(const score *s) {
    confusion_cell *cells = confusion_sorted(&s->pairs);
    json_t *list = cells ? json_array() : NULL;
    for (size_t i = 0; list && i < s->pairs.used; i++)
        list =
            json_append(list, json_pack("[I, I, I]", (json_int_t)cells[i].truth,
                                        (json_int_t)cells[i].label, (json_int_t)cells[i].pixels));
    free(cells);
    return list;
}

static json_t *bands_to_json(const uint64_t *counts, size_t band_px) {
    json_t *list = json_array();
    for (size_t band = 1; band <= band_px; band++)
        list = json_append(list, json_integer((json_int_t)counts[band]));
    return list;
}

json_t *score_to_json(const score *s) {
    /* If a member is NULL, the result is NULL and the others are released. */
    return json_pack("{s:I, s:o, s:o, s:o}", "classes", (json_int_t)s->classes, "confusion",
                     score_pairs_to_json(s), "band_pixels",
                     bands_to_json(s->band_pixels, s->band_px), "band_right",
                     bands_to_json(s->band_right, s->band_px));
}

/* An integer from 0 to `most`. */
static bool take_count(const json_t *json, uint64_t most, uint64_t *count) {
    const json_int_t number = json_integer_value(json);
    if (!json_is_integer(json) || number < 0 || (uint64_t)number > most)
        return false;
    *count = (uint64_t)number;
    return true;
}

/* Every pair of classes at most once, and a sum that can be written as JSON again. */
static bool take_confusion(score *s, const json_t *list) {
    uint64_t left = INT64_MAX;
    if (!json_is_array(list) || !confusion_reserve(&s->pairs, json_array_size(list)))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        uint64_t truth, label, pixels;
        if (json_array_size(entry) != 3 || s->classes == 0 ||
            !take_count(json_array_get(entry, 0), s->classes - 1, &truth) ||
            !take_count(json_array_get(entry, 1), s->classes - 1, &label) ||
            !take_count(json_array_get(entry, 2), left, &pixels))
            return false;
        if (pixels == 0 || confusion_get(&s->pairs, (uint16_t)truth, (uint16_t)label) > 0)
            return false;
        count_pair(s, (uint16_t)truth, (uint16_t)label, pixels);
        left -= pixels;
    }
    return true;
}

/* A band contains the narrower ones, and is contained in the image. */
static bool take_bands(score *s, const json_t *pixels, const json_t *right) {
    const uint64_t most_pixels = score_pixels(s), most_right = sum_of(s, SCORE_RIGHT);
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
