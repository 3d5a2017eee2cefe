/* The results of a batch over all images: one row per method. */
#ifndef DCRF_CLI_DATASET_SUMMARY_H
#define DCRF_CLI_DATASET_SUMMARY_H

#include "dataset/dataset.h"
#include "dataset/methods.h"
#include "dataset/outcome.h"
#include "dataset/store.h"
#include "report/left_out_text.h"

typedef struct summary_row {
    const char *method;     /* "mf5+cliques" */
    bool is_unary;          /* no solver: the baseline of the others */
    size_t images;          /* that have a result */
    double energy;          /* means over those images; NaN if there are none */
    double rounded;         /* energy of the method's own rounding */
    double lower_bound;     /* NaN for methods without one */
    double relative_gap;    /* NaN for methods without one */
    dcrf_left_out left_out; /* by the bounds: the most of any image */
    double proven_share;    /* of the pixels; NaN for methods without a bound */
    double iterations;
    double changed_share; /* of the pixels, with a label other than the unary minimum */
    size_t constant;      /* images with only one label */
    score counts;         /* over all images; no classes: the data set has no ground truth */
    double setup_s;       /* means */
    double solve_s;
    double polish_s;
} summary_row;

typedef struct summary_failure {
    char *image;
    char *message;
} summary_failure;

typedef struct summary {
    const dataset *data;
    const char *split; /* NULL: all images */
    const json_t *settings;
    size_t band_px;
    summary_row *rows;
    size_t row_count;
    double *changed_share; /* per image of the data set: the maximum over the methods */
    summary_failure *failures;
    size_t failure_count;
} summary;

/* Read all results from the store. An image that failed, or lacks a result, is listed as a
 * failure and counts for no method. `settings` stays NULL. */
bool summary_gather(const dataset *data, const method_list *methods, const store *results,
                    size_t band_px, summary *found, cli_problem *problem);
void summary_free(summary *found);

/* The name of the data set: its folder's, without the path. */
const char *summary_title(const summary *found);
bool summary_has_failed(const summary *found, const char *image);

/* Which method is best, and by how much over the unaries: one sentence, empty if there is no
 * ground truth or no method besides the unaries. The score is the mean IoU. */
#define VERDICT_BYTES 256
const char *summary_verdict(const summary *found, char text[VERDICT_BYTES]);

/* What the bounds leave out of a compatibility: one sentence, empty if that is nothing. */
const char *summary_left_out(const summary *found, char text[LEFT_OUT_TEXT_BYTES]);

/* The tables, without any times, so that two runs give the same bytes. Unknown values, such as
 * the bound of methods that have none, are empty fields or null. Without ground truth there are
 * no scores. */
void summary_write_csv(FILE *stream, const summary *found);
void summary_write_markdown(FILE *stream, const summary *found);
json_t *summary_to_json(const summary *found); /* NULL if out of memory */

/* The times: mean seconds of each method's setup, solving and polishing, as CSV. */
void summary_write_times(FILE *stream, const summary *found);

#endif
