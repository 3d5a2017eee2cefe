/* Names are the library's. A tree is a text file with one edge per line,
 *
 *   0 animals 1       label, group, length
 *   1 animals 1
 *   animals all 2     group, group, length
 *   2 all 3
 *
 * where integers are labels and all other words are groups; # starts a comment. */
#include "model/compatibility.h"

#include "io/file.h"
#include "io/lines.h"
#include "io/npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char option_name[] = "--compatibility";
static const char tree_prefix[] = "tree:";

/* ---- trees ---------------------------------------------------------------------------------- */

typedef struct edge_list {
    size_t count;
    size_t *ends;
    double *lengths;
    line_list groups;
    size_t labels;
} edge_list;

static void edges_free(edge_list *edges) {
    free(edges->ends);
    free(edges->lengths);
    lines_free(&edges->groups);
}

/* A label's node is its number; groups follow in order of first occurrence. */
static bool find_node(edge_list *edges, const char *word, const char *file, size_t line,
                      size_t *node, cli_problem *problem) {
    if (strspn(word, "0123456789") == strlen(word)) {
        errno = 0;
        const unsigned long label = strtoul(word, NULL, 10);
        *node = (size_t)label;
        return (errno == 0 && label < edges->labels) ||
               bad_input(problem, file, "has the label %s in edge %zu; the labels are 0 to %zu",
                         word, line, edges->labels - 1);
    }
    for (size_t g = 0; g < edges->groups.count; g++)
        if (strcmp(edges->groups.lines[g], word) == 0) {
            *node = edges->labels + g;
            return true;
        }
    *node = edges->labels + edges->groups.count;
    return lines_add(&edges->groups, word, strlen(word)) || out_of_memory(problem, file);
}

static bool read_edge(edge_list *edges, char *text, const char *file, size_t line,
                      cli_problem *problem) {
    char *remark = strchr(text, '#');
    if (remark)
        *remark = '\0';
    char *words[4] = {NULL}, *end = NULL, *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(text, " \t", &rest); word && count < 4;
         word = strtok_r(NULL, " \t", &rest))
        words[count++] = word;
    if (count == 0)
        return true;
    const double length = count == 3 ? strtod(words[2], &end) : 0;
    if (count != 3 || *end != '\0')
        return bad_input(problem, file,
                         "has an edge that is not 'node node length': number %zu, which begins "
                         "with '%s'",
                         line, words[0]);
    edges->lengths[edges->count] = length;
    if (!find_node(edges, words[0], file, line, &edges->ends[2 * edges->count], problem) ||
        !find_node(edges, words[1], file, line, &edges->ends[2 * edges->count + 1], problem))
        return false;
    edges->count++;
    return true;
}

static bool read_tree(const char *file, edge_list *edges, cli_problem *problem) {
    line_list list;
    if (!lines_read(file, &list, problem))
        return false;
    edges->ends = calloc(2 * list.count + 1, sizeof *edges->ends);
    edges->lengths = calloc(list.count + 1, sizeof *edges->lengths);
    bool done = (edges->ends && edges->lengths) || out_of_memory(problem, file);
    for (size_t k = 0; done && k < list.count; k++)
        done = read_edge(edges, list.lines[k], file, k + 1, problem);
    lines_free(&list);
    return done;
}

static bool apply_tree(const char *file, dcrf_model *model, cli_problem *problem) {
    edge_list edges = {.labels = dcrf_model_labels(model)};
    dcrf_error error;
    bool done = read_tree(file, &edges, problem);
    for (size_t k = 0; done && k < dcrf_model_kernels(model); k++)
        done = dcrf_model_set_tree(model, k, edges.count, edges.ends, edges.lengths, &error) >= 0 ||
               library_problem(problem, file, &error);
    edges_free(&edges);
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

bool compatibility_apply(const char *text, dcrf_model *model, cli_problem *problem) {
    if (strncmp(text, tree_prefix, sizeof tree_prefix - 1) == 0)
        return apply_tree(text + sizeof tree_prefix - 1, model, problem) ||
               problem_of_option(problem, option_name);
    return ends_with(text, ".npy")
               ? apply_matrix(text, model, problem) || problem_of_option(problem, option_name)
               : apply_name(text, model, problem);
}
