/* Several pictures in one command: `dcrf solve *.jpg --labels-prior-dir masks/ -o out/` runs once
 * for each picture, with the files of its name in the folders. */
#ifndef DCRF_CLI_MANY_MANY_H
#define DCRF_CLI_MANY_MANY_H

#include "command.h"

/* Folders with a file for every picture; NULL: not given. They stand in the table for help and
 * parsing: a single run has the files instead. */
typedef struct many_options {
    const char *unary_folder;
    const char *prior_folder;
    const char *scribbles_folder;
} many_options;

extern const cli_option many_option_table[];

/* Run the command for every picture, where the arguments are of that kind; *was_run says whether
 * they are. Arguments that cannot be parsed are left to the next reader. */
bool run_many(const cli_command *command, int count, char **arguments, bool *was_run,
              cli_problem *problem);

#endif
