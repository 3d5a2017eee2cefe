/* Text files that describe distances between labels. # starts a comment.
 *
 * A tree: a line joins two nodes, or gives a group a cost.
 *
 *   0 animals 1            node, node, length
 *   pets cost 1: 0 1       the members of a group cost 1 against each other
 *   all cost 5: pets 2     members are labels and groups
 *
 * Whole numbers are labels, other words name groups. The cost of two labels is the length of the
 * path between them; for groups in groups that is the cost of the smallest one that holds both.
 *
 * Cuts: a line has a length, and the labels on one side.
 *
 *   1.5: 0 2 */
#ifndef DCRF_CLI_MODEL_DISTANCE_FILE_H
#define DCRF_CLI_MODEL_DISTANCE_FILE_H

#include "problem.h"

#include <stddef.h>

/* As dcrf_model_set_tree takes it. */
typedef struct distance_tree {
    size_t count; /* edges */
    size_t *ends;
    double *lengths;
} distance_tree;

/* The messages name the file and the line. On failure there is nothing to free, but freeing is
 * allowed. */
bool distance_tree_read(const char *file, size_t labels, distance_tree *tree, cli_problem *problem);
void distance_tree_free(distance_tree *tree);

/* As dcrf_model_set_cuts takes it. */
typedef struct distance_cuts {
    size_t count;
    unsigned char *sets;
    double *lengths;
} distance_cuts;

bool distance_cuts_read(const char *file, size_t labels, distance_cuts *cuts, cli_problem *problem);
void distance_cuts_free(distance_cuts *cuts);

#endif
