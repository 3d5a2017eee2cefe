/* Tiles of an image that several ranks solve (ranks/ranks.h), on their way to the outputs, which
 * rank 0 writes.
 *
 * The ranks take the tiles from a shared counter, and put what the outputs need of each into one
 * temporary file that rank 0 has made beside the outputs: every tile has its place in it, so that
 * they can come in any order. Rank 0 takes them from there in the order of their index, as soon as
 * they are complete, and adds up what is known of them in that order: the outputs are those of one
 * process, whichever rank solved a tile.
 *
 * Only the main thread may call these; calls marked "together" must be made by all ranks. */
#ifndef DCRF_CLI_LARGE_EXCHANGE_H
#define DCRF_CLI_LARGE_EXCHANGE_H

#include "large/outputs.h"

typedef struct tile_exchange tile_exchange;

/* Together; all ranks have the same tiling. All that is handed over must outlive the exchange. */
bool tile_exchange_new(tile_exchange **made, const solve_outputs *options,
                       const dcrf_tiling *tiling, size_t labels, cli_problem *problem);
void tile_exchange_free(tile_exchange **exchange); /* together; the file is removed */

/* The tile that this rank solves next; the number of tiles where none is left, or where a rank has
 * failed. */
size_t tile_exchange_next(tile_exchange *exchange);
bool tile_exchange_put(tile_exchange *exchange, const dcrf_tile_result *result,
                       cli_problem *problem);

/* At rank 0: hand over the tiles that are complete, as far as they come next, and add them to what
 * is known. */
bool tile_exchange_take(tile_exchange *exchange, large_outputs *outputs, dcrf_tiles_info *info,
                        cli_problem *problem);
size_t tile_exchange_taken(const tile_exchange *exchange);

/* Tell all ranks that this one has failed, so that none begins another tile. */
void tile_exchange_fail(tile_exchange *exchange);
bool tile_exchange_has_failed(tile_exchange *exchange);

#endif
