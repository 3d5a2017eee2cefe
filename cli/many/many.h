/* Several pictures in one command: `dcrf solve *.jpg --labels-prior-dir masks/ -o out/` runs
 * once per picture, with the files of the same name in the folders. */
#ifndef DCRF_CLI_MANY_MANY_H
#define DCRF_CLI_MANY_MANY_H

#include "command.h"

/* Folders with one file per picture; NULL: not given. They are in the table for help and
 * parsing: a single run gets the files instead. */
typedef struct many_options {
    const char *unary_folder;
    const char *prior_folder;
    const char *scribbles_folder;
} many_options;

extern const cli_option many_option_table[];

/* Run the command for every picture if the arguments ask for that; *was_run says whether they
 * do. Arguments that cannot be parsed are left to the regular parser. */
bool run_many(const cli_command *command, int count, char **arguments, bool *was_run,
              cli_problem *problem);

#endif
