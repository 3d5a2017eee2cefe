/* The summary as JSON.
 *
 *   {"dataset", "split", "images", "labels", "classes", "band_px", "settings",
 *    "methods": [{"method", "images", "energy", "energy_rounded", "lower_bound", "relative_gap",
 *                 "iterations", "constant", "changed_share",
 *                 "bound_left_out": {"distance", "fraction"}, "pixel_accuracy",
 *                 "mean_class_accuracy", "mean_iou", "band_accuracy": [...],
 *                 "class_accuracy": [...], "iou": [...], "confusion": [[...], ...]}],
 *    "failures": [{"image", "message"}]}
 *
 * Bands start at 1 pixel; the confusion has the truth in rows and the labels in columns. With
 * more than MATRIX_CLASSES_MAX classes it is [[truth, label, pixels], ...] without zeros. */
#include "dataset/summary.h"

#include "io/json.h"
#include "report/json_text.h"

#define MATRIX_CLASSES_MAX 256

/* The values from `first` to `last`. */
static json_t *values_to_json(const score *counts, double (*value)(const score *, size_t),
                              size_t first, size_t last) {
    json_t *array = json_array();
    for (size_t i = first; i <= last; i++)
        array = json_append(array, number_or_null(value(counts, i)));
    return array;
}

static json_t *confusion_to_json(const score *counts) {
    if (counts->classes > MATRIX_CLASSES_MAX)
        return score_pairs_to_json(counts);
    json_t *matrix = json_array();
    for (size_t truth = 0; truth < counts->classes; truth++) {
        json_t *row = json_array();
        for (size_t label = 0; label < counts->classes; label++)
            row = json_append(row, json_integer((json_int_t)confusion_get(
                                       &counts->pairs, (uint16_t)truth, (uint16_t)label)));
        matrix = json_append(matrix, row);
    }
    return matrix;
}

static json_t *scores_to_json(const score *counts) {
    const size_t last = counts->classes - 1;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pixel_accuracy",
                     number_or_null(score_accuracy(counts)), "mean_class_accuracy",
                     number_or_null(score_mean_class_accuracy(counts)), "mean_iou",
                     number_or_null(score_mean_iou(counts)), "band_accuracy",
                     values_to_json(counts, score_band_accuracy, 1, counts->band_px),
                     "class_accuracy", values_to_json(counts, score_class_accuracy, 0, last), "iou",
                     values_to_json(counts, score_iou, 0, last), "confusion",
                     confusion_to_json(counts));
}

static json_t *row_to_json(const summary_row *row) {
    json_t *json = json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "method", row->method, "images",
        (json_int_t)row->images, "energy", number_or_null(row->energy), "energy_rounded",
        number_or_null(row->rounded), "lower_bound", number_or_null(row->lower_bound),
        "relative_gap", number_or_null(row->relative_gap), "proven_share",
        number_or_null(row->proven_share), "iterations", number_or_null(row->iterations),
        "constant", (json_int_t)row->constant, "changed_share", number_or_null(row->changed_share));
    if (row->left_out.fraction > 0)
        json =
            json_merge(json, json_pack("{s:{s:f, s:f}}", "bound_left_out", "distance",
                                       row->left_out.distance, "fraction", row->left_out.fraction));
    return row->counts.classes == 0 ? json : json_merge(json, scores_to_json(&row->counts));
}

static json_t *rows_to_json(const summary *found) {
    json_t *array = json_array();
    for (size_t m = 0; m < found->row_count; m++)
        array = json_append(array, row_to_json(&found->rows[m]));
    return array;
}

static json_t *failures_to_json(const summary *found) {
    json_t *array = json_array();
    for (size_t i = 0; i < found->failure_count; i++)
        array =
            json_append(array, json_pack("{s:o, s:o}", "image", json_text(found->failures[i].image),
                                         "message", json_text(found->failures[i].message)));
    return array;
}

static json_t *classes_to_json(const dataset *data) {
    json_t *array = json_array();
    for (size_t i = 0; i < data->labels; i++)
        array = json_append(array, json_text(data->classes[i]));
    return array;
}

json_t *summary_to_json(const summary *found) {
    const dataset *data = found->data;
    return json_pack("{s:o, s:o, s:I, s:I, s:o, s:I, s:o, s:o, s:o}", "dataset",
                     json_text(summary_title(found)), "split",
                     found->split ? json_text(found->split) : json_null(), "images",
                     (json_int_t)data->count, "labels", (json_int_t)data->labels, "classes",
                     classes_to_json(data), "band_px", (json_int_t)found->band_px, "settings",
                     found->settings ? json_deep_copy(found->settings) : json_object(), "methods",
                     rows_to_json(found), "failures", failures_to_json(found));
}
