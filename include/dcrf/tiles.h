/* Grids that are too large to be solved at once: in tiles that overlap.
 *
 * A tile is solved in a window that is wider than itself by the overlap, and only its inner region
 * is kept; the inner regions cover the grid, each variable once. What a variable feels of others
 * falls off with the kernels, so that the overlap is a multiple of the widest sigma. One tile is in
 * memory at a time, the threads work inside it; the result depends neither on their number nor on
 * anything but the tiling.
 *
 *   dcrf_tiling tiling;
 *   dcrf_tiles_info info;
 *   size_t overlap[DCRF_MAX_AXES];
 *   const size_t window[DCRF_MAX_AXES] = {2048, 2048};
 *   dcrf_tiling_overlap(&grid, kernels, 2, DCRF_TILE_OVERLAP_SIGMAS, overlap);
 *   dcrf_tiling_make(&tiling, &grid, window, overlap, &error);
 *   dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &tile_settings, &info,
 *                    &error);
 *
 * The callbacks make the model of a window, and take what was found in it: neither the picture nor
 * the labelling has to be in memory as a whole. Tiles come in the order of their index, x fastest,
 * unless a callback chooses them.
 * Weights have to be the same in all windows: measure the strength once, for all of them.
 *
 * There is no lower bound for the whole: each window is a model of its own, with row sums and
 * operators that differ from those of the whole, so that bounds of windows do not add up to one.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_TILES_H
#define DCRF_TILES_H

#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the cut -------------------------------------------------------------------------------- */

/* How many sigmas of the widest kernel windows overlap beyond a tile on each side: docs/
 * large-images.md has what was measured. */
#define DCRF_TILE_OVERLAP_SIGMAS 2

typedef struct dcrf_tiling {
    dcrf_grid grid;
    size_t count[DCRF_MAX_AXES];   /* of tiles along each axis */
    size_t overlap[DCRF_MAX_AXES]; /* of a window beyond its tile, on each side */
    unsigned char reserved[64];
} dcrf_tiling;

typedef struct dcrf_tile {
    size_t index;
    size_t first[DCRF_MAX_AXES];       /* variable of the grid that the window begins with */
    size_t size[DCRF_MAX_AXES];        /* of the window */
    size_t inner_first[DCRF_MAX_AXES]; /* in the window */
    size_t inner_size[DCRF_MAX_AXES];
} dcrf_tile;

/* The overlap along each axis: `sigmas` times the widest sigma of the spatial and bilateral kernels
 * among `count`, in variables, rounded up. */
DCRF_API void dcrf_tiling_overlap(const dcrf_grid *grid, const dcrf_kernel *kernels, size_t count,
                                  double sigmas, size_t overlap[DCRF_MAX_AXES]);

/* Cut a grid into as few tiles of nearly equal size as there can be with windows of at most
 * `window` variables along each axis (0: the whole axis). An axis that fits one window is not cut.
 * Fails where the window is not larger than twice the overlap. */
DCRF_API dcrf_status dcrf_tiling_make(dcrf_tiling *tiling, const dcrf_grid *grid,
                                      const size_t window[DCRF_MAX_AXES],
                                      const size_t overlap[DCRF_MAX_AXES], dcrf_error *error);

DCRF_API size_t dcrf_tiling_count(const dcrf_tiling *tiling);

/* The tile of an index below the count; a grid of its window, for the model. */
DCRF_API dcrf_tile dcrf_tiling_tile(const dcrf_tiling *tiling, size_t index);
DCRF_API dcrf_grid dcrf_tiling_window(const dcrf_tiling *tiling, const dcrf_tile *tile);

/* Variables of the largest window. */
DCRF_API size_t dcrf_tiling_largest(const dcrf_tiling *tiling);

/* ---- memory --------------------------------------------------------------------------------- */

/* About how many bytes a model of so many labels with a bilateral kernel over `channels` channels,
 * its plan and a solver of the method take per variable. `vertices` is how many lattice vertices
 * there are per variable, which depends on the picture: dcrf_operator_vertices of a sample tells.
 */
DCRF_API double dcrf_bytes_per_variable(dcrf_method method, size_t labels, size_t channels,
                                        double vertices);

/* ---- solving -------------------------------------------------------------------------------- */

/* What is known of a tile when it is done. */
typedef struct dcrf_tile_facts {
    int is_solved;        /* 0: the run was stopped before; the labels are the unary minimum */
    dcrf_status stop;     /* DCRF_OK, or why the run was stopped by then */
    dcrf_status left_out; /* DCRF_OK, or the error of a stage that it could do without */
    dcrf_energy energy;   /* of the inner region, with the pairs that its window has; NaN where it
                           * was not solved, or stopped before it was known */
    double relative_gap;  /* of the window's own problem; NaN where the method has no bound */
    size_t iterations;
    size_t changed; /* variables of the inner region with another label than their unary minimum */
    size_t plan_bytes;
    unsigned char reserved[64];
} dcrf_tile_facts;

/* What was found in a window. Arrays are over the window, and valid during the call. */
typedef struct dcrf_tile_result {
    const dcrf_tile *tile;
    const dcrf_model *model;
    const uint16_t *labels;
    const uint16_t *unary_labels; /* the unary minimum */
    const float *marginals;       /* a block as in dcrf/experimental.h */
    size_t stride;
    int is_solved; /* as in the facts */
    const dcrf_tile_facts *facts;
    unsigned char reserved[64];
} dcrf_tile_result;

typedef struct dcrf_tile_callbacks {
    /* Make the model of a window; it is freed by the caller of this. */
    dcrf_status (*model)(void *user, const dcrf_tile *tile, dcrf_model **model, dcrf_error *error);
    dcrf_status (*result)(void *user, const dcrf_tile_result *result, dcrf_error *error);
    void *user;
    /* The index of the tile that comes next; the run ends where that is no tile's. NULL: all of
     * them in their order. For several processes that share the tiles. */
    size_t (*next)(void *user);
    unsigned char reserved[64];
} dcrf_tile_callbacks;

typedef struct dcrf_tiles_info {
    size_t tiles;       /* that came */
    size_t solved;      /* the others have the unary minimum: the run was stopped before */
    dcrf_status stop;   /* DCRF_OK, or why it was stopped */
    dcrf_energy energy; /* of all inner regions, each with the pairs that its window has; NaN where
                         * a tile was not solved */
    dcrf_status left_out; /* DCRF_OK, or the error of a stage that some tile could do without */
    double largest_gap;   /* of a window's own problem; NaN where the method has no bound */
    size_t iterations;    /* the most that a tile took */
    size_t changed;       /* variables with another label than their unary minimum */
    size_t plan_bytes;    /* the largest plan */
    double model_s;       /* seconds: the callbacks, */
    double plan_s;        /* the plans, */
    double solve_s;       /* the solvers and the energies */
    unsigned char reserved[64];
} dcrf_tiles_info;

/* Solve all tiles. The settings are those of each, but for the time limit, which is for all
 * together: a tile has its part of what is left. When the time is up, or a callback of the settings
 * stops a run, the tile in hand gives what it has and the tiles after it the unary minimum, so that
 * there is a labelling of the whole grid all the same. Cliques lie within windows. */
DCRF_API dcrf_status dcrf_tiles_solve(const dcrf_tiling *tiling,
                                      const dcrf_tile_callbacks *callbacks,
                                      dcrf_operator_kind operator_kind, dcrf_workspace *workspace,
                                      const dcrf_settings *settings, dcrf_tiles_info *info,
                                      dcrf_error *error);

/* Add what is known of a tile to what is known of those before it, of none in an info that is zero
 * throughout. dcrf_tiles_solve does so itself; processes that share the tiles do it for all of them
 * in their order, and have what one process has, but for the times. */
DCRF_API void dcrf_tiles_add(dcrf_tiles_info *info, const dcrf_tile_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
