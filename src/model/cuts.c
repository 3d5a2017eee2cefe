#include "model/cuts.h"

#include "core/error.h"
#include "core/owned.h"

#include <math.h>
#include <string.h>

/* ---- making --------------------------------------------------------------------------------- */

void dcrf_cuts_free(struct dcrf_cuts **cuts) {
    if (!*cuts)
        return;
    dcrf_release((*cuts)->order);
    dcrf_release((*cuts)->offsets);
    dcrf_release((*cuts)->runs);
    dcrf_release((*cuts)->lengths);
    dcrf_release(*cuts);
    *cuts = NULL;
}

/* Is the complement the smaller set? Of two halves, the one without the first place is taken. */
static bool is_complemented(const uint8_t *set, const uint16_t *order, size_t labels) {
    size_t size = 0;
    for (size_t i = 0; i < labels; i++)
        size += set[i];
    return 2 * size > labels || (2 * size == labels && set[order[0]]);
}

/* The runs of a set, written if `runs` is not NULL. Returns their number. */
static size_t find_runs(const uint8_t *set, const uint16_t *order, size_t labels,
                        struct dcrf_cut_run *runs) {
    const uint8_t held = !is_complemented(set, order, labels);
    size_t count = 0;
    for (size_t k = 0; k < labels; k++) {
        const bool is_in = set[order[k]] == held;
        const bool was_in = k > 0 && set[order[k - 1]] == held;
        if (is_in && !was_in && runs)
            runs[count].begin = (uint16_t)k;
        if (is_in && runs)
            runs[count].end = (uint16_t)(k + 1);
        count += is_in && (k + 1 == labels || set[order[k + 1]] != held);
    }
    return count;
}

static bool is_same(const struct dcrf_cuts *cuts, size_t one, size_t other) {
    const size_t count = cuts->offsets[one + 1] - cuts->offsets[one];
    return count == cuts->offsets[other + 1] - cuts->offsets[other] &&
           memcmp(cuts->runs + cuts->offsets[one], cuts->runs + cuts->offsets[other],
                  count * sizeof *cuts->runs) == 0;
}

/* Merge the last cut into an equal one, if there is one. */
static bool join_last(struct dcrf_cuts *cuts) {
    for (size_t c = 0; c + 1 < cuts->count; c++)
        if (is_same(cuts, c, cuts->count - 1)) {
            cuts->lengths[c] += cuts->lengths[cuts->count - 1];
            return true;
        }
    return false;
}

static void fill(struct dcrf_cuts *cuts, size_t count, const uint8_t *sets, const double *lengths) {
    for (size_t c = 0; c < count; c++) {
        const uint8_t *set = sets + c * cuts->labels;
        const size_t runs =
            lengths[c] > 0 ? find_runs(set, cuts->order, cuts->labels, cuts->runs + cuts->run_count)
                           : 0;
        if (runs == 0)
            continue;
        cuts->offsets[cuts->count] = cuts->run_count;
        cuts->lengths[cuts->count++] = lengths[c];
        cuts->run_count += runs;
        cuts->offsets[cuts->count] = cuts->run_count;
        if (join_last(cuts)) {
            cuts->count--;
            cuts->run_count = cuts->offsets[cuts->count];
        }
    }
}

/* The relative rounding error of a sum of nonnegative terms is below count 2^-53, less than half of
 * the 1e-12 added. */
static void find_reach(struct dcrf_cuts *cuts) {
    double held[DCRF_CUTS_MOST_LABELS + 1] = {0};
    for (size_t c = 0; c < cuts->count; c++)
        for (size_t r = cuts->offsets[c]; r < cuts->offsets[c + 1]; r++)
            for (size_t k = cuts->runs[r].begin; k < cuts->runs[r].end; k++)
                held[k] += 2 * cuts->lengths[c];
    for (size_t k = 0; k < cuts->labels; k++)
        cuts->reach = fmax(cuts->reach, held[k] * (1 + 1e-12));
}

/* Power iteration, from a start that is in no invariant subspace of windows or trees: multiples of
 * the golden section, the same on every system. It converges from below: the slack covers what it
 * has not reached. */
#define GOLDEN 0.61803398874989485
#define POWER_STEPS 40
#define POWER_SLACK 1.05

static void find_stiffness(struct dcrf_cuts *cuts) {
    const size_t labels = cuts->labels;
    double y[DCRF_CUTS_MOST_LABELS], next[DCRF_CUTS_MOST_LABELS];
    for (size_t i = 0; i < labels; i++) {
        const double turns = GOLDEN * (double)(i + 1);
        y[i] = 2 * (turns - floor(turns)) - 1 + (double)i / (double)labels;
    }
    double norm = 1;
    for (int step = 0; step < POWER_STEPS && norm > 0; step++) {
        double mean = 0;
        for (size_t i = 0; i < labels; i++)
            mean += y[i] / (double)labels;
        norm = 0;
        for (size_t i = 0; i < labels; i++) {
            y[i] -= mean;
            norm += y[i] * y[i];
            next[i] = 0;
        }
        norm = sqrt(norm);
        if (!(norm > 0))
            break;
        if (step > 0)
            cuts->stiffness = POWER_SLACK * norm;
        for (size_t i = 0; i < labels; i++)
            y[i] /= norm;
        for (size_t c = 0; c < cuts->count; c++) {
            double z = 0;
            for (size_t r = cuts->offsets[c]; r < cuts->offsets[c + 1]; r++)
                for (size_t k = cuts->runs[r].begin; k < cuts->runs[r].end; k++)
                    z += y[cuts->order[k]];
            for (size_t r = cuts->offsets[c]; r < cuts->offsets[c + 1]; r++)
                for (size_t k = cuts->runs[r].begin; k < cuts->runs[r].end; k++)
                    next[cuts->order[k]] += 2 * cuts->lengths[c] * z;
        }
        memcpy(y, next, labels * sizeof *y);
    }
}

dcrf_status dcrf_cuts_new(struct dcrf_cuts **out, size_t labels, size_t count, const uint8_t *sets,
                          const double *lengths, const uint16_t *order, dcrf_error *error) {
    *out = NULL;
    if (labels > DCRF_CUTS_MOST_LABELS)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "distances between labels are for %d labels at most, not %zu",
                         DCRF_CUTS_MOST_LABELS, labels);
    struct dcrf_cuts *cuts = dcrf_allocate_zero(1, sizeof *cuts);
    if (!cuts)
        return dcrf_fail_memory(error, "a distance between labels");
    cuts->labels = labels;
    cuts->order = dcrf_allocate(labels, sizeof *cuts->order);
    for (size_t k = 0; k < labels && cuts->order; k++)
        cuts->order[k] = order ? order[k] : (uint16_t)k;
    size_t runs = 0;
    for (size_t c = 0; c < count && cuts->order; c++)
        runs += find_runs(sets + c * labels, cuts->order, labels, NULL);
    cuts->offsets = dcrf_allocate_zero(count + 1, sizeof *cuts->offsets);
    cuts->runs = dcrf_allocate_zero(runs + 1, sizeof *cuts->runs);
    cuts->lengths = dcrf_allocate(count + 1, sizeof *cuts->lengths);
    if (!cuts->order || !cuts->offsets || !cuts->runs || !cuts->lengths) {
        dcrf_cuts_free(&cuts);
        return dcrf_fail_memory(error, "a distance between labels");
    }
    fill(cuts, count, sets, lengths);
    if (cuts->count > DCRF_CUTS_MOST) {
        const size_t found = cuts->count;
        dcrf_cuts_free(&cuts);
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "a distance between labels has %d cuts at most, not %zu", DCRF_CUTS_MOST,
                         found);
    }
    find_reach(cuts);
    find_stiffness(cuts);
    *out = cuts;
    return DCRF_OK;
}

/* ---- using ---------------------------------------------------------------------------------- */

/* sums[k] = sum of the row over the places before k */
static void add_prefix(const struct dcrf_cuts *cuts, const float *row, double *sums) {
    sums[0] = 0;
    for (size_t k = 0; k < cuts->labels; k++)
        sums[k + 1] = sums[k] + (double)row[cuts->order[k]];
}

static inline double sum_runs(const struct dcrf_cuts *cuts, size_t c, const double *sums) {
    double sum = 0;
    for (size_t r = cuts->offsets[c]; r < cuts->offsets[c + 1]; r++)
        sum += sums[cuts->runs[r].end] - sums[cuts->runs[r].begin];
    return sum;
}

void dcrf_cuts_columns(const struct dcrf_cuts *cuts, const float *row, float *columns) {
    double sums[DCRF_CUTS_MOST_LABELS + 1];
    add_prefix(cuts, row, sums);
    for (size_t c = 0; c < cuts->count; c++) {
        const float z = (float)sum_runs(cuts, c, sums);
        columns[c] = z < 0 ? 0 : z > 1 ? 1 : z;
    }
}

/* Add a value to all places of a run: it is added where the run begins and subtracted where it
 * ends; prefix sums then give every place its value. */
static inline void spread(const struct dcrf_cuts *cuts, size_t c, double value, double *changes) {
    for (size_t r = cuts->offsets[c]; r < cuts->offsets[c + 1]; r++) {
        changes[cuts->runs[r].begin] += value;
        changes[cuts->runs[r].end] -= value;
    }
}

void dcrf_cuts_add(const struct dcrf_cuts *cuts, double factor, const double *columns,
                   double *row) {
    double changes[DCRF_CUTS_MOST_LABELS + 1], sum = 0;
    memset(changes, 0, (cuts->labels + 1) * sizeof *changes);
    for (size_t c = 0; c < cuts->count; c++)
        spread(cuts, c, 2 * cuts->lengths[c] * columns[c], changes);
    for (size_t k = 0; k < cuts->labels; k++) {
        sum += changes[k];
        row[cuts->order[k]] += factor * sum;
    }
}

/* Every value is rounded once, enters at most two sums at each place where a run begins or ends and
 * all prefix sums behind it, and the row may be built in as many steps as there are cuts. All sums
 * are below the sum of the magnitudes at the ends of all runs. */
double dcrf_cuts_roundings(const struct dcrf_cuts *cuts) {
    if (!(cuts->reach > 0))
        return 0;
    const double additions =
        2 * (double)cuts->run_count + (double)cuts->labels + (double)cuts->count + 4;
    double magnitude = 0;
    for (size_t c = 0; c < cuts->count; c++)
        magnitude += 4 * cuts->lengths[c] * (double)(cuts->offsets[c + 1] - cuts->offsets[c]);
    return 1.01 * additions * magnitude / cuts->reach;
}

/* sum_c length_c ( [i in S_c] (all - z_c) + [i not in S_c] z_c ) */
void dcrf_cuts_apply(const struct dcrf_cuts *cuts, const float *row, float *field) {
    double sums[DCRF_CUTS_MOST_LABELS + 1], changes[DCRF_CUTS_MOST_LABELS + 1], sum = 0;
    memset(changes, 0, (cuts->labels + 1) * sizeof *changes);
    add_prefix(cuts, row, sums);
    for (size_t c = 0; c < cuts->count; c++) {
        const double z = sum_runs(cuts, c, sums);
        sum += cuts->lengths[c] * z;
        spread(cuts, c, cuts->lengths[c] * (sums[cuts->labels] - 2 * z), changes);
    }
    for (size_t k = 0; k < cuts->labels; k++) {
        sum += changes[k];
        field[cuts->order[k]] += (float)sum;
    }
}

void dcrf_cuts_sets(const struct dcrf_cuts *cuts, uint8_t *sets) {
    memset(sets, 0, cuts->count * cuts->labels);
    for (size_t c = 0; c < cuts->count; c++)
        for (size_t r = cuts->offsets[c]; r < cuts->offsets[c + 1]; r++)
            for (size_t k = cuts->runs[r].begin; k < cuts->runs[r].end; k++)
                sets[c * cuts->labels + cuts->order[k]] = 1;
}

/* ---- distances ------------------------------------------------------------------------------ */

/* The sum of the lengths of the cuts between two labels. A second addition recovers what the first
 * one loses (Knuth); if nothing was lost the sum is exact. */
static double measure(const uint8_t *one, const uint8_t *other, size_t step,
                      const struct dcrf_cuts *cuts) {
    double sum = 0;
    bool is_exact = true;
    for (size_t c = 0; c < cuts->count; c++) {
        if (one[c * step] == other[c * step])
            continue;
        const double next = sum + cuts->lengths[c], added = next - sum;
        is_exact &= sum - (next - added) + (cuts->lengths[c] - added) == 0;
        sum = next;
    }
    return is_exact ? sum : sum * (1 + 1e-12);
}

dcrf_status dcrf_cuts_distances(const struct dcrf_cuts *cuts, double *matrix, dcrf_error *error) {
    const size_t labels = cuts->labels;
    DCRF_SCOPED uint8_t *sets = dcrf_allocate(cuts->count + 1, labels);
    if (!sets)
        return dcrf_fail_memory(error, "a distance between labels");
    dcrf_cuts_sets(cuts, sets);
    for (size_t i = 0; i < labels; i++) {
        matrix[i * labels + i] = 0;
        for (size_t j = 0; j < i; j++)
            matrix[i * labels + j] = matrix[j * labels + i] =
                measure(sets + i, sets + j, labels, cuts);
    }
    return DCRF_OK;
}

void dcrf_left_out_join(dcrf_left_out *most, const dcrf_left_out *other) {
    most->distance = fmax(most->distance, other->distance);
    most->fraction = fmax(most->fraction, other->fraction);
    if (most->fraction > 0)
        most->energy = most->gap = (double)NAN;
}
