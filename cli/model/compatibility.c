#include "model/compatibility.h"

#include "io/file.h"
#include "io/npy.h"
#include "model/distance_file.h"

#include <stdlib.h>
#include <string.h>

static const char option_name[] = "--compatibility";

/* ---- files of text -------------------------------------------------------------------------- */

static bool apply_tree(const char *file, dcrf_model *model, cli_problem *problem) {
    distance_tree tree;
    dcrf_error error;
    bool done = distance_tree_read(file, dcrf_model_labels(model), &tree, problem);
    for (size_t k = 0; done && k < dcrf_model_kernels(model); k++)
        done = dcrf_model_set_tree(model, k, tree.count, tree.ends, tree.lengths, &error) >= 0 ||
               library_problem(problem, file, &error);
    distance_tree_free(&tree);
    return done;
}

static bool apply_cuts(const char *file, dcrf_model *model, cli_problem *problem) {
    distance_cuts cuts;
    dcrf_error error;
    bool done = distance_cuts_read(file, dcrf_model_labels(model), &cuts, problem);
    for (size_t k = 0; done && k < dcrf_model_kernels(model); k++)
        done = dcrf_model_set_cuts(model, k, cuts.count, cuts.sets, cuts.lengths, &error) >= 0 ||
               library_problem(problem, file, &error);
    distance_cuts_free(&cuts);
    return done;
}

/* ---- matrices ------------------------------------------------------------------------------- */

static bool apply_matrix(const char *file, dcrf_model *model, cli_problem *problem) {
    file_bytes bytes;
    npy_array array;
    float *values = NULL;
    dcrf_error error;
    char text[NPY_TEXT_BYTES];
    const size_t labels = dcrf_model_labels(model);
    if (!file_read(file, &bytes, problem))
        return false;
    bool done = npy_parse(bytes.data, bytes.size, file, &array, problem) &&
                ((array.axes == 2 && array.shape[0] == labels && array.shape[1] == labels) ||
                 bad_input(problem, file, "has the shape %s; %zu labels need a %zu x %zu matrix",
                           npy_shape_text(&array, text), labels, labels, labels)) &&
                npy_to_floats(&array, file, &values, problem);
    for (size_t k = 0; done && k < dcrf_model_kernels(model); k++)
        done = dcrf_model_set_compatibility(model, k, DCRF_COMPATIBILITY_MATRIX, values, &error) >=
                   0 ||
               library_problem(problem, file, &error);
    free(values);
    file_free(&bytes);
    return done;
}

/* ---- dispatch ------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static bool apply_name(const char *name, dcrf_model *model, cli_problem *problem) {
    dcrf_error error;
    for (size_t k = 0; k < dcrf_model_kernels(model); k++)
        if (dcrf_model_set_distance(model, k, name, &error) < 0)
            return library_problem(problem, option_name, &error);
    return true;
}

/* The file behind "tree:" or "cuts:"; NULL if the text begins otherwise. */
static const char *file_behind(const char *prefix, const char *text) {
    return strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : NULL;
}

bool compatibility_apply(const char *text, dcrf_model *model, cli_problem *problem) {
    const char *tree = file_behind("tree:", text), *cuts = file_behind("cuts:", text);
    if (!tree && !cuts && !ends_with(text, ".npy"))
        return apply_name(text, model, problem);
    return (tree   ? apply_tree(tree, model, problem)
            : cuts ? apply_cuts(cuts, model, problem)
                   : apply_matrix(text, model, problem)) ||
           problem_of_option(problem, option_name);
}
