/* What a batch found, over all images: one row per method. */
#ifndef DCRF_CLI_DATASET_SUMMARY_H
#define DCRF_CLI_DATASET_SUMMARY_H

#include "dataset/dataset.h"
#include "dataset/methods.h"
#include "dataset/outcome.h"
#include "dataset/store.h"

typedef struct summary_row {
    const char *method;  /* "mf5+cliques" */
    bool is_unary;       /* no solver: what the others are compared with */
    size_t images;       /* that have a result */
    double energy;       /* means over those images; NaN where there is none */
    double rounded;      /* energy of the method's own rounding */
    double lower_bound;  /* NaN for methods without one */
    double relative_gap; /* NaN for methods without one */
    double proven_share; /* of the pixels; NaN for methods without a bound */
    double iterations;
    double changed_share; /* of the pixels, with another label than the unary minimum */
    size_t constant;      /* images with one label only */
    score counts;         /* over all images; no classes: the data set has no truth */
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
    double *changed_share; /* per image of the data set: the largest of the methods */
    summary_failure *failures;
    size_t failure_count;
} summary;

/* Read all results from the store. An image that failed, or whose results are not all there, is
 * listed as a failure and counts for no method. `settings` stays NULL. */
bool summary_gather(const dataset *data, const method_list *methods, const store *results,
                    size_t band_px, summary *found, cli_problem *problem);
void summary_free(summary *found);

/* The name of the data set: that of its folder, without where it lies. */
const char *summary_title(const summary *found);
bool summary_has_failed(const summary *found, const char *image);

/* Who won, and by how much over the unaries: one sentence, empty where there is no truth or no
 * method but the unaries. The score is the mean IoU. */
#define VERDICT_BYTES 256
const char *summary_verdict(const summary *found, char text[VERDICT_BYTES]);

/* The tables, without any time in them, so that two runs give the same bytes. What is not known,
 * as the bound of methods that have none, is an empty field or null. Without a truth there are no
 * scores. */
void summary_write_csv(FILE *stream, const summary *found);
void summary_write_markdown(FILE *stream, const summary *found);
json_t *summary_to_json(const summary *found); /* NULL when memory is out */

/* The times: mean seconds of a method's setup, solving and polishing, as CSV. */
void summary_write_times(FILE *stream, const summary *found);

#endif
