/* How far a labelling has moved from a map: the mean, over the variables at the borders of the
 * labelling, of the distance to the nearest variable at a border of the map. */
#include "core/error.h"
#include "core/owned.h"
#include "core/workspace.h"
#include "model/view.h"
#include "scribble/distance.h"
#include "scribble/mask_border.h"

#include <math.h>
#include <stdbool.h>

struct comparison {
    int32_t *map, *labels, *is_border;
    float *distances;
    const struct dcrf_distance_lines *lines;
};

static bool take_memory(struct comparison *c, struct dcrf_owned *owned, size_t variables) {
    c->map = dcrf_own(owned, variables, sizeof *c->map);
    c->labels = dcrf_own(owned, variables, sizeof *c->labels);
    c->is_border = dcrf_own(owned, variables, sizeof *c->is_border);
    c->distances = dcrf_own(owned, variables, sizeof *c->distances);
    return !owned->is_short;
}

static void measure(struct comparison *c, const dcrf_grid *grid, size_t variables, dcrf_pool *pool,
                    dcrf_mask_moves *moves) {
    double sum = 0;
    for (size_t a = 0; a < variables; a++) {
        c->is_border[a] = dcrf_mask_is_at_border(grid, c->map, a);
        moves->changed += c->map[a] >= 0 && c->map[a] != c->labels[a];
    }
    dcrf_distances_to(grid, c->is_border, 1, c->lines, pool, c->distances);
    for (size_t a = 0; a < variables; a++)
        if (isfinite(c->distances[a]) && dcrf_mask_is_at_border(grid, c->labels, a)) {
            sum += (double)c->distances[a];
            moves->border++;
        }
    moves->mean_offset = moves->border > 0 ? sum / (double)moves->border : 0;
}

dcrf_status dcrf_mask_compare(const dcrf_grid *grid, const dcrf_view *map,
                              const uint16_t *labelling, dcrf_workspace *workspace,
                              dcrf_mask_moves *moves, dcrf_error *error) {
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    DCRF_AT_END(dcrf_distance_lines_clear) struct dcrf_distance_lines lines = {0};
    struct comparison c = {.lines = &lines};
    size_t variables;
    if (!grid || !map || !labelling || !workspace || !moves)
        return dcrf_fail_null(error, "the map, the labelling or the place for the comparison");
    TRY(dcrf_grid_check(grid, &variables, error));
    DCRF_ENTER(workspace, error);
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    if (!take_memory(&c, &owned, variables) || !dcrf_distance_lines_init(&lines, grid, pool))
        return dcrf_fail_memory(error, "the comparison of masks");
    TRY(dcrf_view_copy_integers(map, grid, "the mask", c.map, error));
    *moves = (dcrf_mask_moves){0};
    for (size_t a = 0; a < variables; a++)
        c.labels[a] = labelling[a];
    measure(&c, grid, variables, pool, moves);
    return DCRF_OK;
}
