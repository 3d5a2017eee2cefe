/* Grids too large to solve at once: overlapping tiles.
 *
 * A tile is solved in a window that extends beyond it by the overlap on each side, and only its
 * inner region is kept. The inner regions cover the grid, each variable once. The influence of
 * other variables decays with the kernels, so the overlap is a multiple of the widest sigma. One
 * tile is in memory at a time, and all threads work on it. The result depends on the tiling, but
 * not on the number of threads.
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
 * Callbacks create the model of a window and receive its result, so neither the image nor the
 * labelling has to be in memory as a whole. Tiles are solved in the order of their index, x
 * fastest, unless a callback chooses them. Weights must be the same in all windows: measure the
 * strength once for all.
 *
 * There is no lower bound for the whole grid. Each window is its own model, with its own row sums
 * and operators, so the bounds of windows do not add up to a bound.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_TILES_H
#define DCRF_TILES_H

#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the tiling ----------------------------------------------------------------------------- */

/* How far windows extend beyond a tile on each side, in sigmas of the widest kernel. See
 * docs/howto/large-images.md for measurements. */
#define DCRF_TILE_OVERLAP_SIGMAS 2

typedef struct dcrf_tiling {
    dcrf_grid grid;
    size_t count[DCRF_MAX_AXES];   /* tiles along each axis */
    size_t overlap[DCRF_MAX_AXES]; /* of a window beyond its tile, on each side, in variables */
    unsigned char reserved[64];
} dcrf_tiling;

typedef struct dcrf_tile {
    size_t index;
    size_t first[DCRF_MAX_AXES];       /* the window's first variable in the grid */
    size_t size[DCRF_MAX_AXES];        /* of the window */
    size_t inner_first[DCRF_MAX_AXES]; /* relative to the window */
    size_t inner_size[DCRF_MAX_AXES];
    unsigned char reserved[64];
} dcrf_tile;

/* The overlap along each axis in variables: `sigmas` times the widest sigma of the spatial and
 * bilateral kernels among `count`, rounded up. */
DCRF_API void dcrf_tiling_overlap(const dcrf_grid *grid, const dcrf_kernel *kernels, size_t count,
                                  double sigmas, size_t overlap[DCRF_MAX_AXES]);

/* Cut a grid into the fewest tiles of nearly equal size whose windows have at most `window`
 * variables along each axis (0: the whole axis). An axis that fits into one window is not cut.
 * Fails if the window is not larger than twice the overlap. */
DCRF_API dcrf_status dcrf_tiling_make(dcrf_tiling *tiling, const dcrf_grid *grid,
                                      const size_t window[DCRF_MAX_AXES],
                                      const size_t overlap[DCRF_MAX_AXES], dcrf_error *error);

DCRF_API size_t dcrf_tiling_count(const dcrf_tiling *tiling);

/* The tile with an index below the count, and the grid of its window, for the model. */
DCRF_API dcrf_tile dcrf_tiling_tile(const dcrf_tiling *tiling, size_t index);
DCRF_API dcrf_grid dcrf_tiling_window(const dcrf_tiling *tiling, const dcrf_tile *tile);

/* The number of variables of the largest window. */
DCRF_API size_t dcrf_tiling_largest(const dcrf_tiling *tiling);

/* ---- memory --------------------------------------------------------------------------------- */

/* Approximate bytes per variable of a model with `labels` labels and a bilateral kernel over
 * `channels` channels, its plan and a solver of the method. `vertices` is the number of lattice
 * vertices per variable. It depends on the image: measure it on a sample with
 * dcrf_operator_vertices. */
DCRF_API double dcrf_bytes_per_variable(dcrf_method method, size_t labels, size_t channels,
                                        double vertices);

/* ---- solving -------------------------------------------------------------------------------- */

/* Facts about a finished tile. */
typedef struct dcrf_tile_facts {
    int is_solved;        /* 0: the run was stopped first, and the labels are the unary minimum */
    dcrf_status stop;     /* DCRF_OK, or why the run had been stopped */
    dcrf_status left_out; /* DCRF_OK, or the error of an optional stage that was skipped */
    dcrf_energy energy;   /* of the inner region, with all pairs in its window; NaN if it was not
                           * solved, or stopped before it was known */
    double relative_gap;  /* of the window's own problem; NaN if the method has no bound */
    size_t iterations;
    size_t changed; /* variables of the inner region whose label differs from their unary minimum */
    size_t plan_bytes;
    dcrf_left_out bound_left_out; /* by the bound of the window's own problem */
    unsigned char reserved[32];
} dcrf_tile_facts;

/* The result of a window. Arrays are over the window and valid during the call. */
typedef struct dcrf_tile_result {
    const dcrf_tile *tile;
    const dcrf_model *model;
    const uint16_t *labels;
    const uint16_t *unary_labels; /* the unary minimum */
    const float *marginals;       /* a block as in dcrf/grid.h */
    size_t stride;
    int is_solved; /* as in `facts` */
    const dcrf_tile_facts *facts;
    unsigned char reserved[64];
} dcrf_tile_result;

/* Begin with zeros: `reserved` must be zero. */
typedef struct dcrf_tile_callbacks {
    /* Create the model of a window; dcrf_tiles_solve frees it. */
    dcrf_status (*model)(void *user, const dcrf_tile *tile, dcrf_model **model, dcrf_error *error);
    dcrf_status (*result)(void *user, const dcrf_tile_result *result, dcrf_error *error);
    void *user;
    /* Return the index of the next tile; the run ends if there is no such tile. NULL: all tiles in
     * order. For processes that share the tiles. */
    size_t (*next)(void *user);
    unsigned char reserved[64];
} dcrf_tile_callbacks;

typedef struct dcrf_tiles_info {
    size_t tiles;         /* tiles processed */
    size_t solved;        /* the others have the unary minimum: the run was stopped */
    dcrf_status stop;     /* DCRF_OK, or why it was stopped */
    dcrf_energy energy;   /* of all inner regions, each with all pairs in its window; NaN if a tile
                           * was not solved */
    dcrf_status left_out; /* DCRF_OK, or the error of an optional stage that a tile skipped */
    double largest_gap;   /* of a window's own problem; NaN if the method has no bound */
    size_t iterations;    /* the most of any tile */
    size_t changed;       /* variables whose label differs from their unary minimum */
    size_t plan_bytes;    /* of the largest plan */
    double model_s;       /* wall time in seconds: callbacks */
    double plan_s;        /* plans */
    double solve_s;       /* solvers and energies */
    dcrf_left_out bound_left_out; /* the most of any tile; of no labelling */
    unsigned char reserved[32];
} dcrf_tiles_info;

/* Solve all tiles. The settings apply to each tile, except that the time limit is for all together:
 * a tile gets its share of the time left. If time runs out or a callback in the settings stops a
 * run, the current tile gives its best labelling and later ones the unary minimum, so the whole
 * grid still gets a labelling. Cliques lie within windows. */
DCRF_API dcrf_status dcrf_tiles_solve(const dcrf_tiling *tiling,
                                      const dcrf_tile_callbacks *callbacks,
                                      dcrf_operator_kind operator_kind, dcrf_workspace *workspace,
                                      const dcrf_settings *settings, dcrf_tiles_info *info,
                                      dcrf_error *error);

/* Add the facts of a tile to `info`, which starts as all zeros. dcrf_tiles_solve does this itself.
 * Processes that share the tiles add all of them in order and get what one process would, except
 * for the times. */
DCRF_API void dcrf_tiles_add(dcrf_tiles_info *info, const dcrf_tile_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
