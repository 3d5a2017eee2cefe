/* What stays undecided after all proofs is often a few patches that could equally well have another
 * label, but only as a whole: moves of single variables do not find that. A blob is a set of
 * undecided variables with the same label that is connected on the grid. */
#include "proof/blobs.h"

#include "core/error.h"
#include "core/owned.h"

#include <dcrf/energy.h>
#include <string.h>

/* Every trial of a blob with a label evaluates the energy. */
#define MOST_BLOBS 24

struct blob {
    size_t first, size; /* in `members` */
};

struct blobs {
    const struct dcrf_knowledge *known;
    uint32_t *members; /* grouped by blob */
    uint8_t *seen;
    size_t count;
    struct blob largest[MOST_BLOBS]; /* in descending order of size */
};

static void keep_if_large(struct blobs *blobs, struct blob blob) {
    size_t k = blobs->count;
    if (k == MOST_BLOBS && blobs->largest[k - 1].size >= blob.size)
        return;
    if (k < MOST_BLOBS)
        blobs->count = ++k;
    for (k--; k > 0 && blobs->largest[k - 1].size < blob.size; k--)
        blobs->largest[k] = blobs->largest[k - 1];
    blobs->largest[k] = blob;
}

/* Append the neighbours of variable a that belong to its blob. */
static void grow(struct blobs *blobs, uint32_t a, size_t *end) {
    const struct dcrf_knowledge *known = blobs->known;
    const dcrf_grid *grid = &known->model->grid;
    size_t stride = 1;
    for (size_t axis = 0; axis < grid->axes; axis++) {
        const size_t at = a / stride % grid->size[axis];
        for (int side = 0; side < 2; side++) {
            if (side == 0 ? at == 0 : at + 1 == grid->size[axis])
                continue;
            const size_t b = side == 0 ? a - stride : a + stride;
            if (blobs->seen[b] || known->round[b] != 0 || known->labels[b] != known->labels[a])
                continue;
            blobs->seen[b] = 1;
            blobs->members[(*end)++] = (uint32_t)b;
        }
        stride *= grid->size[axis];
    }
}

static void find(struct blobs *blobs) {
    size_t end = 0;
    for (size_t a = 0; a < blobs->known->model->variables; a++) {
        if (blobs->seen[a] || blobs->known->round[a] != 0)
            continue;
        const size_t first = end;
        blobs->seen[a] = 1;
        blobs->members[end++] = (uint32_t)a;
        for (size_t k = first; k < end; k++)
            grow(blobs, blobs->members[k], &end);
        keep_if_large(blobs, (struct blob){first, end - first});
    }
}

/* Give the blob the label wherever that is possible; returns how many variables changed. */
static size_t paint(const struct blobs *blobs, const struct blob *blob, size_t label,
                    uint16_t *labels) {
    const struct dcrf_knowledge *known = blobs->known;
    size_t changed = 0;
    for (size_t k = blob->first; k < blob->first + blob->size; k++) {
        const size_t a = blobs->members[k];
        if (labels[a] == label || !known->possible[a * known->model->labels + label])
            continue;
        labels[a] = (uint16_t)label;
        changed++;
    }
    return changed;
}

static dcrf_status move(struct dcrf_groups *groups, const struct blobs *blobs, uint16_t *trial,
                        double *energy, bool *is_better, dcrf_error *error) {
    struct dcrf_knowledge *known = groups->known;
    const size_t bytes = known->model->variables * sizeof *trial;
    for (size_t k = 0; k < blobs->count; k++)
        for (size_t i = 0; i < known->model->labels; i++) {
            memcpy(trial, known->labels, bytes);
            if (paint(blobs, &blobs->largest[k], i, trial) == 0)
                continue;
            if (groups->is_over && groups->is_over(groups->is_over_user))
                return DCRF_OK;
            dcrf_energy found;
            TRY(dcrf_energy_of_labels(known->plan, known->workspace, trial, &found, NULL, 0,
                                      error));
            if (found.total < *energy) {
                *energy = found.total;
                *is_better = true;
                memcpy(known->labels, trial, bytes);
            }
        }
    return DCRF_OK;
}

dcrf_status dcrf_blobs_move(struct dcrf_groups *groups, double *energy, bool *is_better,
                            dcrf_error *error) {
    const size_t n = groups->known->model->variables;
    struct blobs blobs = {.known = groups->known};
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    uint16_t *trial = dcrf_own(&owned, n, sizeof *trial);
    blobs.members = dcrf_own(&owned, n, sizeof *blobs.members);
    blobs.seen = dcrf_own_zero(&owned, n, 1);
    *is_better = false;
    if (owned.is_short)
        return dcrf_fail_memory(error, "a proof");
    find(&blobs);
    return move(groups, &blobs, trial, energy, is_better, error);
}
