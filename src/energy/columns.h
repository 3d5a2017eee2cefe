/* The columns that go through the ordered filter for the LP.
 *
 * Kernels are put into groups that share their cuts (model/cuts.h). The columns of a group are z_c,
 * one for each cut, and what the filter makes of them, g_c, is for label i
 *
 *   sum_{c holds i} 2 length_c g_c.
 *
 * For Potts the cuts are the labels, of the length 1/2: the map is the identity, and there is none.
 */
#ifndef DCRF_ENERGY_COLUMNS_H
#define DCRF_ENERGY_COLUMNS_H

#include "model/cuts.h"
#include "model/model.h"

struct dcrf_column_group {
    const struct dcrf_cuts *cuts; /* NULL: the columns are the labels */
    struct dcrf_cuts *own;        /* the same, where they are not the model's */
    size_t count;                 /* of columns */
};

struct dcrf_columns {
    size_t group_count;
    struct dcrf_column_group *groups;
    size_t *group_of; /* per kernel; those without weight are in none */
    size_t most;      /* columns of a group */
};

#define DCRF_NO_GROUP SIZE_MAX

/* An error says which kernel the LP cannot take, and why. */
dcrf_status dcrf_columns_new(struct dcrf_columns **columns, const dcrf_model *model,
                             dcrf_error *error);
void dcrf_columns_free(struct dcrf_columns **columns);

bool dcrf_columns_are_labels(const struct dcrf_columns *columns);

/* Of a group: how often a kernel value counts in a sum of one label at most, the curvature of its
 * columns, and the roundings to double of its map. 1, 1 and 0 for labels. */
double dcrf_columns_reach(const struct dcrf_column_group *group);
double dcrf_columns_stiffness(const struct dcrf_column_group *group);
double dcrf_columns_roundings(const struct dcrf_column_group *group);

#endif
