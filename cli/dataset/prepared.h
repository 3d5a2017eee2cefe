/* An image of a data set, ready to be solved again and again under changing settings.
 *
 * What settings need is kept as long as they stay as they are: new weights only are set in the
 * model, whose plan stays; new sigmas make a new plan; superpixels are kept for every size that was
 * asked for. */
#ifndef DCRF_CLI_DATASET_PREPARED_H
#define DCRF_CLI_DATASET_PREPARED_H

#include "dataset/dataset.h"
#include "dataset/methods.h"
#include "dataset/outcome.h"
#include "dataset/store.h"
#include "model/model_options.h"
#include "solution.h"

typedef struct prepared_image prepared_image;

/* How an image is solved, whatever the method. */
typedef struct solve_choice {
    model_options model;   /* kernels and cliques; its unary options are not looked at */
    solver_options solver; /* its method and iterations are those of the method, if it has them */
    bool rounded;          /* the method's own rounding is the result, and nothing is polished */
    size_t band_px;        /* of the scores */
} solve_choice;

/* The settings that a choice was made from, as a config file has them: without the data set,
 * without threads, which change no result, and without the tables `left_out` (ends with NULL). Of a
 * device it matters only whether it is the CPU, which is not said. NULL when memory is out. */
json_t *solve_choice_to_json(const option_record *record, const cli_option *const *left_out);

option_parser parse_band; /* size_t: the band of a choice, at most SCORE_BAND_MAX_PX */

/* Where cliques come from: a method of superpixels, or a folder with one map an image. Methods with
 * cliques use mean shift where the options say none. */
const char *cliques_wanted(const model_options *options);
bool cliques_are_files(const char *source);

/* Read image, unary energies and truth. A workspace belongs to the thread that calls. */
bool prepared_new(prepared_image **image, const dataset *data, const dataset_item *item,
                  cli_problem *problem);
void prepared_free(prepared_image **image);

/* Solve. `energies` may be NULL; else the run is traced, which takes time and may change the
 * labelling. Both are to be freed. */
bool prepared_solve(prepared_image *image, dcrf_workspace *workspace, const solve_choice *choice,
                    const method_choice *method, outcome *found, curve *energies,
                    cli_problem *problem);

/* The method that takes the most memory, of at least one. */
const method_choice *hungriest_method(const method_list *methods);

/* About how much memory it takes to solve this image by the method, known before it is read; 0
 * where its files cannot tell. */
size_t prepared_estimate_bytes(const dataset *data, const dataset_item *item,
                               const method_choice *method);

#endif
