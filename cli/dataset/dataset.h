/* A data set: a folder of images, unary energies and, optionally, the ground truth.
 *
 *   images/NAME.png          the pictures (.png .jpg .jpeg .ppm .pgm .tif .tiff)
 *   unaries/NAME.npy         one number per pixel and label
 *   gt/NAME.png              the ground truth: one label per pixel, grey, indexed (as in Pascal
 * VOC) or .npy splits/SPLIT.txt         names, one per line classes.txt              names of the
 * labels, one per line palette.txt              colours of the labels, one per line dataset.json
 * {"labels": 21, "void": 255, "unary": {"kind": "energies", "energy_per_unit": 0.05}}
 *
 * gt/, splits/, classes.txt and palette.txt may be missing. In dataset.json only "labels" is
 * required; by default void is 255, and numbers are energies with a unit of 1. */
#ifndef DCRF_CLI_DATASET_DATASET_H
#define DCRF_CLI_DATASET_DATASET_H

#include "model/palette.h"
#include "model/unary.h"

#include <jansson.h>

typedef struct dataset_item {
    char *name;
    /* NULL: there is none */
    char *image_file;
    char *unary_file;
    char *truth_file;
} dataset_item;

typedef struct dataset {
    const char *folder;
    const char *split; /* NULL: all images */
    size_t labels;
    int32_t void_value;
    unary_options unary; /* kind and scale; the file depends on the item */
    bool has_truth;
    char **classes; /* names of the labels */
    palette colours;
    dataset_item *items; /* in the order of the split, or sorted by name */
    size_t count;
} dataset;

/* `split` = NULL: all images. Missing images are only noticed when they are read. On failure
 * there is nothing to free, but freeing is allowed. */
bool dataset_open(dataset *data, const char *folder, const char *split, cli_problem *problem);
void dataset_free(dataset *data);

/* Is no file of the data set inside an output folder? Region maps are named by an option, which
 * is checked with the others (file_options.h). */
bool dataset_check_apart(const dataset *data, const char *out, cli_problem *problem);

/* Read the description in dataset.json; `path` is for messages. */
bool dataset_parse_description(const uint8_t *bytes, size_t size, const char *path, dataset *data,
                               cli_problem *problem);

/* The map in another folder, with one number per pixel, for an image; the caller frees it. NULL:
 * none. */
char *dataset_find_map(const char *folder, const char *name);

/* Does the data set have this split? */
bool dataset_has_split(const char *folder, const char *split);

#endif
