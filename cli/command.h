/* Subcommands.
 *
 * A subcommand is one file that defines a `command` and one row of the table in commands.c. */
#ifndef DCRF_CLI_COMMAND_H
#define DCRF_CLI_COMMAND_H

#include "args/options.h"

#include <stdio.h>

typedef struct cli_command {
    option_set arguments;
    const char *summary;   /* one line, for the list of commands */
    const char *details;   /* paragraphs, each on one line; wrapped when printed */
    size_t settings_bytes; /* of the struct that `arguments` fills and `run` reads */
    bool (*run)(const void *settings, cli_problem *problem);
} cli_command;

extern const cli_command *const commands[];
extern const size_t command_count;
extern const cli_command solve_command;

/* NULL if there is no command of that name. */
const cli_command *find_command(const char *name);

/* Parse the arguments and run; on --help print the help text instead. */
bool run_command(const cli_command *command, int count, char **arguments, cli_problem *problem);

/* The texts of `dcrf --help` and `dcrf help SUBCOMMAND`, generated from the tables. */
void print_program_help(FILE *stream);
void print_command_help(FILE *stream, const cli_command *command);

#endif
