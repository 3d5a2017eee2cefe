/* How well labellings agree with the truth.
 *
 * A score is made of counts, so that scores of images add up to that of a data set whatever the
 * order. Pixels whose truth is void count nowhere.
 *
 *   accuracy            right pixels / pixels
 *   class accuracy      right pixels of a class / its pixels in the truth
 *   IoU of a class      right pixels / pixels that have the class in the truth, in the labelling
 *                       or in both, all taken over the whole data set; NaN for a class that the
 *                       truth lacks
 *   mean IoU            over the classes that the truth has: one that the data lack says nothing
 *   accuracy in a band  of the pixels within k pixels of a boundary: their centres are at most k
 *                       apart from that of a pixel with another truth, void being a truth of its
 *                       own here (Kohli, Ladicky, Torr 2009 call such a band a trimap)
 *
 * A value that nothing was counted for is NaN. */
#ifndef DCRF_CLI_DATASET_SCORE_H
#define DCRF_CLI_DATASET_SCORE_H

#include "dataset/confusion.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCORE_BAND_MAX_PX 64
#define TRUTH_VOID (-1)

/* Of each class: the pixels that have it in truth and labelling, in the truth, in the labelling. */
enum { SCORE_RIGHT, SCORE_IN_TRUTH, SCORE_IN_LABELS, SCORE_CLASS_COUNTS };

typedef struct score {
    size_t classes;
    size_t band_px;     /* the widest band that is counted */
    confusion pairs;    /* how often a truth got a label */
    uint64_t *of_class; /* SCORE_CLASS_COUNTS sums of these for each class */
    /* Element k: pixels within k pixels of a boundary, and those of them that are right. */
    uint64_t band_pixels[SCORE_BAND_MAX_PX + 1];
    uint64_t band_right[SCORE_BAND_MAX_PX + 1];
} score;

/* A score of nothing yet. False when memory is out. Freeing one that is all zero is allowed. */
bool score_new(score *s, size_t classes, size_t band_px);
void score_free(score *s);

/* Count a labelling. The truth has one number per pixel: a class, or TRUTH_VOID. False when out of
 * memory; then nothing was counted. */
bool score_count(score *s, const uint16_t *labels, const int32_t *truth, size_t width,
                 size_t height);

/* Count what `part` has counted; both have the same classes and band. False when memory is out;
 * then nothing was counted. */
bool score_add(score *s, const score *part);

uint64_t score_pixels(const score *s);
double score_accuracy(const score *s);
double score_class_accuracy(const score *s, size_t label);
double score_mean_class_accuracy(const score *s);
double score_iou(const score *s, size_t label);
double score_mean_iou(const score *s);
double score_band_accuracy(const score *s, size_t band_px);

/* [[truth, label, pixels], ...] in this order, zeros left out. NULL when memory is out. */
json_t *score_pairs_to_json(const score *s);

/* {"classes": M, "confusion": [[truth, label, pixels], ...], "band_pixels": [...], "band_right":
 * [...]}, zeros of the confusion left out, bands from 1 on. NULL when memory is out. */
json_t *score_to_json(const score *s);

/* The inverse; false where this is no score. */
bool score_from_json(score *s, const json_t *json);

#endif
