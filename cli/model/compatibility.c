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

const char *compatibility_file(const char *text) {
    const char *tree = file_behind("tree:", text), *cuts = file_behind("cuts:", text);
    return tree ? tree : cuts ? cuts : ends_with(text, ".npy") ? text : NULL;
}

bool compatibility_apply(const char *text, dcrf_model *model, cli_problem *problem) {
    const char *file = compatibility_file(text);
    if (!file)
        return apply_name(text, model, problem);
    return (file_behind("tree:", text)   ? apply_tree(file, model, problem)
            : file_behind("cuts:", text) ? apply_cuts(file, model, problem)
                                         : apply_matrix(file, model, problem)) ||
           problem_of_option(problem, option_name);
}

/* ---- the LP --------------------------------------------------------------------------------- */

static bool check_cuts(const char *text, const dcrf_model *model, cli_problem *problem) {
    const char *file = compatibility_file(text);
    dcrf_left_out left_out;
    dcrf_error error;
    size_t count;
    for (size_t k = 0; k < dcrf_model_kernels(model); k++)
        if (dcrf_model_count_cuts(model, k, &count, &left_out, &error) < 0)
            return library_problem(problem, file ? file : option_name, &error) ||
                   (file && problem_of_option(problem, option_name));
    return true;
}

bool compatibility_check(const char *text, size_t labels, bool for_lp, cli_problem *problem) {
    const dcrf_grid grid = dcrf_grid_1d(1);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 1);
    dcrf_model *model = NULL;
    dcrf_error error;
    const bool done = ((dcrf_model_new(&model, &grid, labels, &error) >= 0 &&
                        dcrf_model_add_kernel(model, &kernel, &error) >= 0) ||
                       library_problem(problem, option_name, &error)) &&
                      compatibility_apply(text, model, problem) &&
                      (!for_lp || check_cuts(text, model, problem));
    dcrf_model_free(&model);
    return done;
}

bool compatibility_problem(const char *text, size_t labels, const char *subject,
                           const dcrf_error *error, cli_problem *problem) {
    if (error->status == DCRF_ERROR_UNSUPPORTED &&
        !compatibility_check(text, labels, true, problem))
        return false;
    return library_problem(problem, subject, error);
}
