#include "large/exchange.h"

#include "io/temporary.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Places in the file begin at multiples of this: whole pages on any machine, so that no page is
 * written by two ranks, which network file systems handle badly. */
#define PLACE_BYTES 65536

/* The shared counters: these, and one per tile that becomes 1 when it is complete. */
enum { COUNTER_NEXT, COUNTER_FAILED, COUNTER_FIRST_TILE };

struct tile_exchange {
    const solve_outputs *options;
    const dcrf_tiling *tiling;
    size_t labels;
    size_t count;     /* of tiles */
    uint64_t *places; /* of the tiles in the file */
    char *file;       /* the temporary file */
    bool is_mine;     /* this rank removes it */
    size_t taken;     /* tiles that rank 0 has passed on */
    ranks_counters *counters;
};

/* ---- start and end -------------------------------------------------------------------------- */

static bool find_places(tile_exchange *x, cli_problem *problem) {
    uint64_t end = 0;
    x->places = calloc(x->count, sizeof *x->places);
    for (size_t i = 0; x->places && i < x->count; i++) {
        const dcrf_tile tile = dcrf_tiling_tile(x->tiling, i);
        const uint64_t bytes =
            sizeof(dcrf_tile_facts) + large_outputs_stored_bytes(x->options, &tile, x->labels);
        x->places[i] = end;
        end += (bytes + PLACE_BYTES - 1) / PLACE_BYTES * PLACE_BYTES;
    }
    return x->places || out_of_memory(problem, "tiles");
}

/* The output beside which the file is created; NULL: there is none. */
static const char *neighbour(const solve_outputs *options) {
    return options->labels_file       ? options->labels_file
           : options->confidence_file ? options->confidence_file
           : options->marginals_file  ? options->marginals_file
                                      : options->json_file;
}

static bool make_file(tile_exchange *x, cli_problem *problem) {
    const char *beside = neighbour(x->options);
    const int descriptor = output_create_beside(beside, &x->file);
    if (descriptor < 0)
        return failure(problem, beside ? beside : "tiles",
                       "no temporary file can be made for tiles: %s", strerror(errno));
    close(descriptor);
    x->is_mine = true;
    return true;
}

static FILE *open_at(const tile_exchange *x, size_t tile, const char *mode, cli_problem *problem) {
    FILE *stream = fopen(x->file, mode);
    if (stream && fseeko(stream, (off_t)x->places[tile], SEEK_SET) == 0)
        return stream;
    failure(problem, x->file, "cannot be opened: %s; all ranks must see the folder of the outputs",
            strerror(errno));
    if (stream)
        fclose(stream);
    return NULL;
}

/* Rank 0 creates the file; the others are told its name and check that they can see it.
 * Together. */
static bool share_file(tile_exchange *x, cli_problem *problem) {
    const bool is_made = ranks_mine() != 0 || make_file(x, problem);
    if (!ranks_agree(is_made, problem))
        return false;
    uint64_t bytes = x->file ? strlen(x->file) + 1 : 0;
    ranks_broadcast(&bytes, sizeof bytes);
    if (!x->file)
        x->file = malloc(bytes);
    if (!ranks_agree(x->file || out_of_memory(problem, "tiles"), problem))
        return false;
    ranks_broadcast(x->file, bytes);
    FILE *stream = open_at(x, 0, "r+b", problem);
    if (stream)
        fclose(stream);
    return ranks_agree(stream != NULL, problem);
}

bool tile_exchange_new(tile_exchange **made, const solve_outputs *options,
                       const dcrf_tiling *tiling, size_t labels, cli_problem *problem) {
    tile_exchange *x = calloc(1, sizeof *x);
    bool done = x || out_of_memory(problem, "tiles");
    if (done) {
        *x = (tile_exchange){.options = options,
                             .tiling = tiling,
                             .labels = labels,
                             .count = dcrf_tiling_count(tiling)};
        done = find_places(x, problem);
    }
    *made = x;
    done = ranks_agree(done, problem) && share_file(x, problem) &&
           (x->counters = ranks_counters_new(COUNTER_FIRST_TILE + x->count, problem)) != NULL;
    if (!done)
        tile_exchange_free(made);
    return done;
}

void tile_exchange_free(tile_exchange **exchange) {
    tile_exchange *x = *exchange;
    if (!x)
        return;
    ranks_counters_free(x->counters);
    if (x->is_mine)
        temporary_remove(x->file);
    free(x->file);
    free(x->places);
    free(x);
    *exchange = NULL;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

void tile_exchange_fail(tile_exchange *x) {
    ranks_counters_add(x->counters, COUNTER_FAILED, 1);
}

bool tile_exchange_has_failed(tile_exchange *x) {
    return ranks_counters_add(x->counters, COUNTER_FAILED, 0) > 0;
}

size_t tile_exchange_next(tile_exchange *x) {
    if (tile_exchange_has_failed(x))
        return x->count;
    const uint64_t next = ranks_counters_add(x->counters, COUNTER_NEXT, 1);
    return next < x->count ? (size_t)next : x->count;
}

/* The file is opened and closed for each tile: on a network file system, closing it makes the
 * data visible to others. */
bool tile_exchange_put(tile_exchange *x, const dcrf_tile_result *result, cli_problem *problem) {
    const size_t index = result->tile->index;
    FILE *stream = open_at(x, index, "r+b", problem);
    if (!stream)
        return false;
    fwrite(result->facts, sizeof *result->facts, 1, stream);
    bool done = large_outputs_store(x->options, result, x->labels, stream, problem);
    errno = 0;
    const bool is_written = fflush(stream) == 0 && !ferror(stream);
    const int cause = errno;
    const bool is_closed = fclose(stream) == 0;
    if (done && !(is_written && is_closed))
        done = failure(problem, x->file, "a tile cannot be stored in a temporary file: %s",
                       strerror(!is_written && cause ? cause
                                : errno              ? errno
                                                     : EIO));
    if (done)
        ranks_counters_add(x->counters, COUNTER_FIRST_TILE + index, 1);
    return done;
}

static bool take_one(tile_exchange *x, large_outputs *outputs, dcrf_tiles_info *info,
                     cli_problem *problem) {
    const dcrf_tile tile = dcrf_tiling_tile(x->tiling, x->taken);
    dcrf_tile_facts facts;
    FILE *stream = open_at(x, x->taken, "rb", problem);
    if (!stream)
        return false;
    const bool done = fread(&facts, sizeof facts, 1, stream) == 1
                          ? large_outputs_load(outputs, &tile, stream, problem)
                          : failure(problem, x->file, "a tile cannot be read back");
    fclose(stream);
    if (done) {
        dcrf_tiles_add(info, &facts);
        x->taken++;
    }
    return done;
}

bool tile_exchange_take(tile_exchange *x, large_outputs *outputs, dcrf_tiles_info *info,
                        cli_problem *problem) {
    bool done = true;
    while (done && x->taken < x->count &&
           ranks_counters_add(x->counters, COUNTER_FIRST_TILE + x->taken, 0) > 0)
        done = take_one(x, outputs, info, problem);
    return done;
}

size_t tile_exchange_taken(const tile_exchange *x) {
    return x->taken;
}
