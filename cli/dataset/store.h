/* Results on disk.
 *
 *   OUT/results/METHOD/NAME.png     the labels
 *   OUT/results/METHOD/NAME.json    the outcome, and its key
 *   OUT/curves/METHOD/NAME.json     energies against time, of the first images
 *   OUT/failures/NAME.txt           why an image was skipped
 *   OUT/dcrf-folder.json            the command that owns the folder
 *
 * The key is a hash of everything the result depends on: the bytes of the inputs, the settings
 * in force and the version. Files appear by rename, the JSON last, and the JSON holds a hash of
 * the label file and one of itself: so a result is either complete and unmodified, or missing. A
 * killed run leaves temporary files, which the next run removes; only one run at a time holds
 * the folder. */
#ifndef DCRF_CLI_DATASET_STORE_H
#define DCRF_CLI_DATASET_STORE_H

#include "dataset/hash.h"
#include "dataset/outcome.h"
#include "model/palette.h"
#include "problem.h"

typedef struct store {
    char *folder;
    int lock; /* a descriptor; -1: not held */
} store;

/* Open the folder, either as its holder, who also cleans it, or as one of the holder's workers.
 * `owner` is the holding command, such as "dcrf batch"; NULL for the others. A folder that is
 * not empty and was not made by that command is refused and left unchanged. */
bool store_open(store *s, const char *folder, const char *owner, cli_problem *problem);
void store_close(store *s);

/* Create the folder of a method. */
bool store_add_method(const store *s, const char *method, cli_problem *problem);

/* Is there a result with this key? */
bool store_has(const store *s, const char *method, const char *name, const content_hash *key);

/* `settings` are as in a config file. */
bool store_put(const store *s, const char *method, const char *name, const content_hash *key,
               const outcome *o, json_t *settings, const palette *colours, cli_problem *problem);

/* The result without its labels; false and a problem if there is none. */
bool store_get(const store *s, const char *method, const char *name, outcome *o,
               cli_problem *problem);

/* The file of the labels; the caller frees it. NULL if out of memory. */
char *store_labels_file(const store *s, const char *method, const char *name);

/* How the energy decreased while the method ran, from a separate, traced run. */
typedef struct curve_point {
    double time_s;
    double energy;      /* of the method's current labelling, or of the best so far */
    double lower_bound; /* NaN: none */
} curve_point;

typedef struct curve {
    curve_point *points;
    size_t count;
} curve;

bool store_has_curve(const store *s, const char *method, const char *name, const content_hash *key);
bool store_put_curve(const store *s, const char *method, const char *name, const content_hash *key,
                     const curve *energies, cli_problem *problem);
bool store_get_curve(const store *s, const char *method, const char *name, curve *energies,
                     cli_problem *problem);
void curve_free(curve *energies);

/* Record why an image was skipped. `message` = NULL: it was not. */
bool store_put_failure(const store *s, const char *name, const char *message, cli_problem *problem);
/* The caller frees it; NULL: there is none. */
char *store_get_failure(const store *s, const char *name);

/* OUT/NAME; the caller frees it. NULL if out of memory. */
char *store_file(const store *s, const char *name);

#endif
