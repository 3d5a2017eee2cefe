/* A solution in tiles in progress. */
#ifndef DCRF_CLI_LARGE_RUN_H
#define DCRF_CLI_LARGE_RUN_H

#include "large/exchange.h"
#include "large/inputs.h"
#include "large/large.h"

typedef struct large_run {
    const large_task *task;
    large_inputs inputs;
    built_model built;
    palette colours;
    double vertices;
    dcrf_tiling tiling;
    large_outputs *outputs;  /* on rank 0 */
    tile_exchange *exchange; /* NULL: there is only one rank */
    cli_outputs files;
    progress watch;
    solution found;
    dcrf_tiles_info known; /* of the tiles that rank 0 has collected from all ranks */
    bool is_stopped;       /* another rank has failed */
    double answered_s;     /* when rank 0 last served requests of others */
    bool has_problem;      /* a callback failed, and `problem` says why */
    cli_problem *problem;
} large_run;

/* Solve the tiles, and describe the result in the form of a solution of the whole. Everything
 * before `watch` must be set, and the solution must have room for the counts. Together; rank 0
 * has the description. */
bool large_run_tiles(large_run *run, cli_problem *problem);

#endif
