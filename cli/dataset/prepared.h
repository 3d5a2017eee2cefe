/* An image of a data set, ready to be solved repeatedly under changing settings.
 *
 * What the settings determine is kept for as long as they stay the same: new weights are only
 * set in the model, whose plan is kept; new sigmas need a new plan; superpixels are kept for
 * every size that was used. */
#ifndef DCRF_CLI_DATASET_PREPARED_H
#define DCRF_CLI_DATASET_PREPARED_H

#include "dataset/dataset.h"
#include "dataset/methods.h"
#include "dataset/outcome.h"
#include "dataset/store.h"
#include "model/model_options.h"
#include "solution.h"

typedef struct prepared_image prepared_image;

/* How an image is solved, for all methods. */
typedef struct solve_choice {
    model_options model;   /* kernels and cliques; its unary options are ignored */
    solver_options solver; /* overridden by the method's own solver and iterations, if it has
                            * them */
    bool rounded;          /* the method's own rounding is the result, without polishing */
    size_t band_px;        /* of the scores */
} solve_choice;

/* The groups of options about it, for a settings struct of type `settings` whose members have the
 * groups' names. */
#define DATASET_OPTION_GROUPS(settings)                                                            \
    {"Work", workers_option_table, offsetof(settings, workers)},                                   \
        {"Solver", solver_option_table, offsetof(settings, solver)},                               \
        {"Kernels", kernel_option_table, offsetof(settings, model.kernels)},                       \
        {"Labels", label_option_table, offsetof(settings, model)},                                 \
        {"Strength", strength_option_table, offsetof(settings, model.strength)},                   \
        {"Cliques", clique_option_table, offsetof(settings, model)},                               \
        {"Device", device_option_table, offsetof(settings, model.kernels)},                        \
        {"Settings from elsewhere", source_option_table, offsetof(settings, sources)}, {           \
        "Feedback", feedback_option_table, offsetof(settings, feedback)                            \
    }

/* The settings that a choice was made from, as in a config file: without the data set, without
 * threads, which do not affect results, and without the tables `left_out` (ends with NULL). Of
 * the device, only a GPU is mentioned, without its number. NULL if out of memory. */
json_t *solve_choice_to_json(const option_record *record, const cli_option *const *left_out);

option_parser parse_band; /* size_t: the band of a choice, at most SCORE_BAND_MAX_PX */

/* The source of cliques: a superpixel method, or a folder with one map per image. Methods with
 * cliques use mean shift if the options give none. */
const char *cliques_wanted(const model_options *options);
bool cliques_are_files(const char *source);

/* Read image, unary energies and ground truth. The workspace belongs to the calling thread. */
bool prepared_new(prepared_image **image, const dataset *data, const dataset_item *item,
                  cli_problem *problem);
void prepared_free(prepared_image **image);

/* Solve. `energies` may be NULL; otherwise the run is traced, which takes time and may change
 * the labelling. The caller frees both results. */
bool prepared_solve(prepared_image *image, dcrf_workspace *workspace, const solve_choice *choice,
                    const method_choice *method, outcome *found, curve *energies,
                    cli_problem *problem);

/* The method that needs the most memory; the list must not be empty. */
const method_choice *hungriest_method(const method_list *methods);

/* Approximate memory to solve this image by the method, estimated before it is read; 0 if its
 * files do not tell. */
size_t prepared_estimate_bytes(const dataset *data, const dataset_item *item,
                               const method_choice *method);

#endif
