/* Distances between labels as cuts (Deza and Laurent, "Geometry of Cuts and Metrics", 1997):
 *
 *   d(i, j) = sum_c length_c [one of i and j is in S_c, the other is not],   length_c >= 0.
 *
 * With z_c = sum_{i in S_c} y_i, a relaxed labelling pays sum_c length_c |z_ac - z_bc| for a pair,
 * so a cut passes through the ordered filter like a label of the Potts model, whose cuts are the
 * single labels, with length 1/2.
 *
 * The labels are put in an order in which each set is a few runs: windows of ordered labels and
 * subtrees of a tree are one run each. Then all z, and all sums over the cuts that hold a label,
 * are prefix sums: O(labels + runs) per variable. */
#ifndef DCRF_MODEL_CUTS_H
#define DCRF_MODEL_CUTS_H

#include <dcrf/compatibility.h>
#include <stddef.h>
#include <stdint.h>

/* The most labels of a distance: rows of them are on the stack. */
#define DCRF_CUTS_MOST_LABELS 1024
/* The most cuts of a distance. */
#define DCRF_CUTS_MOST 4096

struct dcrf_cut_run {
    uint16_t begin, end; /* places in the order */
};

struct dcrf_cuts {
    size_t labels, count, run_count;
    uint16_t *order; /* the label at each place */
    size_t *offsets; /* count + 1: where the runs of a cut begin */
    struct dcrf_cut_run *runs;
    double *lengths;
    double reach;     /* the largest sum of 2 length_c over the cuts that hold one label */
    double stiffness; /* largest sum_c 2 length_c z_c^2 / |y|^2 over rows y that sum to 0 */
};

/* `sets` has a row of `labels` bytes per cut, 1 for the labels that it holds. Sets of more than
 * half of the labels are replaced by their complements, equal ones are merged, and those that have
 * no length or separate no pair are dropped. `order`: the labels by place, or NULL for 0, 1, ... */
dcrf_status dcrf_cuts_new(struct dcrf_cuts **cuts, size_t labels, size_t count, const uint8_t *sets,
                          const double *lengths, const uint16_t *order, dcrf_error *error);
void dcrf_cuts_free(struct dcrf_cuts **cuts);

/* columns[c] = sum_{i in S_c} row[i], clamped to [0, 1]. */
void dcrf_cuts_columns(const struct dcrf_cuts *cuts, const float *row, float *columns);

/* row[i] += factor sum_{c holds i} 2 length_c columns[c]. The rounding error of the additions in
 * such a sum is at most dcrf_cuts_roundings times 2^-53 of reach times the largest column. */
void dcrf_cuts_add(const struct dcrf_cuts *cuts, double factor, const double *columns, double *row);
double dcrf_cuts_roundings(const struct dcrf_cuts *cuts);

/* field[i] += sum_j d(i, j) row[j] */
void dcrf_cuts_apply(const struct dcrf_cuts *cuts, const float *row, float *field);

/* sets[c * labels + i] = does S_c hold i? */
void dcrf_cuts_sets(const struct dcrf_cuts *cuts, uint8_t *sets);

/* d(i, j), rounded up if at all, as a labels x labels matrix. */
dcrf_status dcrf_cuts_distances(const struct dcrf_cuts *cuts, double *matrix, dcrf_error *error);

/* The best cuts below a symmetric, nonnegative matrix with zeros on its diagonal: d(i, j) <=
 * matrix[i, j]. */
dcrf_status dcrf_cuts_below(struct dcrf_cuts **cuts, const float *matrix, size_t labels,
                            dcrf_left_out *left_out, dcrf_error *error);

/* The larger numbers of two, in the first; the energy is unknown then if anything is left out. */
void dcrf_left_out_join(dcrf_left_out *most, const dcrf_left_out *other);

#endif
