/* Results on the disk.
 *
 *   OUT/results/METHOD/NAME.png     the labels
 *   OUT/results/METHOD/NAME.json    the outcome, and its key
 *   OUT/curves/METHOD/NAME.json     energies against time, of the first images
 *   OUT/failures/NAME.txt           why an image was skipped
 *   OUT/dcrf-folder.json            whose folder this is
 *
 * The key is a hash of everything the result depends on: the bytes of the inputs, the settings in
 * force and the version. Files appear by rename, the JSON last, and the JSON holds a hash of the
 * labels' file and one of itself: so a result is there whole and as it was written, or it is not
 * there. A killed run leaves temporary files, which the next run removes; one run at a time holds
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

/* Open, for the one who holds the folder and cleans it, or for those who work for it. `owner` is
 * the command that holds it, as "dcrf batch"; NULL for the others. A folder that is not empty and
 * not that command's own is refused as it is. */
bool store_open(store *s, const char *folder, const char *owner, cli_problem *problem);
void store_close(store *s);

/* Make the folder of a method. */
bool store_add_method(const store *s, const char *method, cli_problem *problem);

/* Is there a result with this key? */
bool store_has(const store *s, const char *method, const char *name, const content_hash *key);

/* `settings` are what a config file would hold. */
bool store_put(const store *s, const char *method, const char *name, const content_hash *key,
               const outcome *o, json_t *settings, const palette *colours, cli_problem *problem);

/* The result without its labels; false and a problem where there is none. */
bool store_get(const store *s, const char *method, const char *name, outcome *o,
               cli_problem *problem);

/* The file of the labels, to be freed; NULL when memory is out. */
char *store_labels_file(const store *s, const char *method, const char *name);

/* How the energy fell while the method ran, with a trace, in a run of its own. */
typedef struct curve_point {
    double time_s;
    double energy;      /* of the method's own labelling, or of the best so far */
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

/* Why an image was skipped. `message` = NULL: it was not. */
bool store_put_failure(const store *s, const char *name, const char *message, cli_problem *problem);
/* To be freed; NULL: there is none. */
char *store_get_failure(const store *s, const char *name);

/* OUT/NAME, to be freed; NULL when memory is out. */
char *store_file(const store *s, const char *name);

#endif
