/* The files of a solution in tiles: written one band of rows at a time, as soon as the last tile
 * of a row of tiles is solved, and for a video some frames at a time. Those of a volume are
 * written at the end. */
#ifndef DCRF_CLI_LARGE_OUTPUTS_H
#define DCRF_CLI_LARGE_OUTPUTS_H

#include "io/output.h"
#include "io/raster.h"
#include "solve_outputs.h"

typedef struct large_outputs large_outputs;

/* Can these be written in tiles? If not, the error names the option. */
bool large_outputs_check(const solve_outputs *options, cli_problem *problem);

/* Memory of the bands per row of tiles. */
double large_outputs_bytes(const solve_outputs *options, const dcrf_tiling *tiling,
                           const cli_image *image, size_t labels);

/* Begin all files in `files`. The arguments must outlive the outputs. */
bool large_outputs_new(large_outputs **outputs, const solve_outputs *options,
                       const dcrf_tiling *tiling, const cli_image *image, size_t labels,
                       const palette *label_colours, const raster *colours, cli_outputs *files,
                       cli_problem *problem);
/* Tiles must come in order of their index. */
bool large_outputs_take(large_outputs *outputs, const dcrf_tile_result *result,
                        cli_problem *problem);
void large_outputs_free(large_outputs **outputs);

/* The flicker of a video, by the unaries alone and of the labelling; zero if it is not a video. */
void large_outputs_flicker(const large_outputs *outputs, flicker *before, flicker *after);

/* The same through a file, for a tile that another process has solved: what the outputs need of
 * it, and its size in bytes. Write errors are left in the stream. */
size_t large_outputs_stored_bytes(const solve_outputs *options, const dcrf_tile *tile,
                                  size_t labels);
bool large_outputs_store(const solve_outputs *options, const dcrf_tile_result *result,
                         size_t labels, FILE *stream, cli_problem *problem);
bool large_outputs_load(large_outputs *outputs, const dcrf_tile *tile, FILE *stream,
                        cli_problem *problem);

#endif
