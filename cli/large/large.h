/* dcrf solve for images that do not fit into memory: in tiles, if --memory or --tile asks for
 * it. Ranks (ranks/ranks.h) share the tiles. */
#ifndef DCRF_CLI_LARGE_LARGE_H
#define DCRF_CLI_LARGE_LARGE_H

#include "solve_outputs.h"

typedef struct large_options {
    size_t memory_bytes; /* 0: no limit */
    size_t tile_px;      /* windows of this side; 0: as large as memory allows */
} large_options;

extern const cli_option large_option_table[];

/* What is to be solved, as given to the command. */
typedef struct large_task {
    const large_options *limits;
    const model_options *model;
    const solver_options *solver;
    const solve_outputs *outputs;
    const char *image_file;
    const option_record *record;
    feedback talk;
    time_frame time;
} large_task;

/* Solve in tiles if the whole does not fit; *was_solved says whether that was the case. If it is
 * false and nothing has failed, the image is to be solved as a whole. Together. */
bool large_solve(const large_task *task, bool *was_solved, cli_problem *problem);

#endif
