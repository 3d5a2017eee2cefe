/* Tiles of an image solved by several ranks (ranks/ranks.h), on their way to the outputs, which
 * rank 0 writes.
 *
 * The ranks take tiles from a shared counter, and put what the outputs need of each into one
 * temporary file that rank 0 has created beside the outputs. Every tile has its place in it, so
 * tiles can be written in any order. Rank 0 reads them in order of their index, as soon as they are
 * complete, and sums their statistics in that order: the outputs are the same as those of one
 * process, whichever rank solved a tile.
 *
 * Only the main thread may call these; calls marked "together" must be made by all ranks. */
#ifndef DCRF_CLI_LARGE_EXCHANGE_H
#define DCRF_CLI_LARGE_EXCHANGE_H

#include "large/outputs.h"

typedef struct tile_exchange tile_exchange;

/* Together; all ranks have the same tiling. The arguments must outlive the exchange. */
bool tile_exchange_new(tile_exchange **made, const solve_outputs *options,
                       const dcrf_tiling *tiling, size_t labels, cli_problem *problem);
void tile_exchange_free(tile_exchange **exchange); /* together; the file is removed */

/* The tile that this rank solves next; the number of tiles if none is left or a rank has failed. */
size_t tile_exchange_next(tile_exchange *exchange);
bool tile_exchange_put(tile_exchange *exchange, const dcrf_tile_result *result,
                       cli_problem *problem);

/* On rank 0: pass on the next tiles in order, as far as they are complete, and add them to the
 * statistics. */
bool tile_exchange_take(tile_exchange *exchange, large_outputs *outputs, dcrf_tiles_info *info,
                        cli_problem *problem);
size_t tile_exchange_taken(const tile_exchange *exchange);

/* Tell all ranks that this one has failed, so that none starts another tile. */
void tile_exchange_fail(tile_exchange *exchange);
bool tile_exchange_has_failed(tile_exchange *exchange);

#endif
