/* How well labellings agree with the ground truth.
 *
 * A score consists of counts, so that the scores of images add up to that of a data set in any
 * order. Pixels whose truth is void are not counted.
 *
 *   accuracy            right pixels / pixels
 *   class accuracy      right pixels of a class / its pixels in the truth
 *   IoU of a class      right pixels / pixels that have the class in the truth, in the labelling
 *                       or in both, all taken over the whole data set; NaN for a class that is
 *                       not in the truth
 *   mean IoU            over the classes that occur in the truth
 *   accuracy in a band  of the pixels within k pixels of a boundary: their centres are at most k
 *                       apart from that of a pixel with another truth, where void counts as a
 *                       truth of its own (Kohli, Ladicky, Torr 2009 call such a band a trimap)
 *
 * A value without any counts is NaN. */
#ifndef DCRF_CLI_DATASET_SCORE_H
#define DCRF_CLI_DATASET_SCORE_H

#include "dataset/confusion.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCORE_BAND_MAX_PX 64
#define TRUTH_VOID (-1)

/* Per class: the pixels that have it in truth and labelling, in the truth, in the labelling. */
enum { SCORE_RIGHT, SCORE_IN_TRUTH, SCORE_IN_LABELS, SCORE_CLASS_COUNTS };

typedef struct score {
    size_t classes;
    size_t band_px;     /* the widest band that is counted */
    confusion pairs;    /* how often each truth got each label */
    uint64_t *of_class; /* the sums of these: SCORE_CLASS_COUNTS per class */
    /* Element k: pixels within k pixels of a boundary, and how many of them are right. */
    uint64_t band_pixels[SCORE_BAND_MAX_PX + 1];
    uint64_t band_right[SCORE_BAND_MAX_PX + 1];
} score;

/* An empty score. False if out of memory. Freeing one that is all zero is allowed. */
bool score_new(score *s, size_t classes, size_t band_px);
void score_free(score *s);

/* Count a labelling. The truth has one number per pixel: a class, or TRUTH_VOID. False if out of
 * memory; then nothing was counted. */
bool score_count(score *s, const uint16_t *labels, const int32_t *truth, size_t width,
                 size_t height);

/* Add the counts of `part`; both have the same classes and band. False if out of memory; then
 * nothing was added. */
bool score_add(score *s, const score *part);

uint64_t score_pixels(const score *s);
double score_accuracy(const score *s);
double score_class_accuracy(const score *s, size_t label);
double score_mean_class_accuracy(const score *s);
double score_iou(const score *s, size_t label);
double score_mean_iou(const score *s);
double score_band_accuracy(const score *s, size_t band_px);

/* [[truth, label, pixels], ...] in this order, without zeros. NULL if out of memory. */
json_t *score_pairs_to_json(const score *s);

/* {"classes": M, "confusion": [[truth, label, pixels], ...], "band_pixels": [...], "band_right":
 * [...]}, without zeros in the confusion, with bands from 1 on. NULL if out of memory. */
json_t *score_to_json(const score *s);

/* The inverse; false if this is not a score. */
bool score_from_json(score *s, const json_t *json);

#endif
