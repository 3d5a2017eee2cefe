/* The columns that the LP passes through the ordered filter.
 *
 * Kernels are grouped by equal cuts (model/cuts.h). The columns of a group are z_c, one per cut,
 * and the filtered columns g_c contribute to label i
 *
 *   sum_{c holds i} 2 length_c g_c.
 *
 * For Potts the cuts are the labels, of length 1/2: the map is the identity and is not stored. */
#ifndef DCRF_ENERGY_COLUMNS_H
#define DCRF_ENERGY_COLUMNS_H

#include "model/cuts.h"
#include "model/model.h"

struct dcrf_column_group {
    const struct dcrf_cuts *cuts; /* NULL: the columns are the labels */
    struct dcrf_cuts *own;        /* the same, if not owned by the model; else NULL */
    size_t count;                 /* number of columns */
};

struct dcrf_columns {
    size_t group_count;
    struct dcrf_column_group *groups;
    size_t *group_of;       /* per kernel; DCRF_NO_GROUP if its weight is zero */
    size_t most;            /* largest number of columns of a group, but at least that of labels */
    dcrf_left_out left_out; /* the most of any kernel */
};

#define DCRF_NO_GROUP SIZE_MAX

/* Fails with a message that says which kernel the LP does not support, and why. */
dcrf_status dcrf_columns_new(struct dcrf_columns **columns, const dcrf_model *model,
                             dcrf_error *error);
void dcrf_columns_free(struct dcrf_columns **columns);

bool dcrf_columns_are_labels(const struct dcrf_columns *columns);

/* Of a group: the maximum factor of a kernel value in the sum of one label, the curvature of its
 * columns, and the number of double roundings in its map. 1, 1 and 0 if the columns are labels. */
double dcrf_columns_reach(const struct dcrf_column_group *group);
double dcrf_columns_stiffness(const struct dcrf_column_group *group);
double dcrf_columns_roundings(const struct dcrf_column_group *group);

#endif
