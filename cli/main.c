/* The command dcrf: find the subcommand, run it, say what went wrong.
 *
 * SPDX-License-Identifier: MIT */
#include "args/nearest.h"
#include "command.h"
#include "io/file.h"
#include "io/output.h"
#include "io/temporary.h"
#include "many/many.h"
#include "ranks/ranks.h"

#include <dcrf/dcrf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool unknown_command(const char *name, cli_problem *problem) {
    nearest_name nearest = nearest_start(name);
    for (size_t i = 0; i < command_count; i++)
        nearest_offer(&nearest, commands[i]->arguments.command);
    if (nearest.best)
        return bad_input(problem, name, "unknown command; did you mean '%s'?", nearest.best);
    return bad_input(problem, name, "unknown command; 'dcrf --help' lists the commands");
}

static bool run_help(int count, char **arguments, cli_problem *problem) {
    if (count == 0) {
        print_program_help(stdout);
        return true;
    }
    if (count > 1)
        return bad_input(problem, arguments[1], "unexpected argument; write dcrf help COMMAND");
    const cli_command *command = find_command(arguments[0]);
    if (!command)
        return unknown_command(arguments[0], problem);
    print_command_help(stdout, command);
    return true;
}

static bool run(int count, char **arguments, cli_problem *problem) {
    if (count == 0)
        return bad_input(problem, "usage", "no command given; 'dcrf --help' lists the commands");
    const char *name = arguments[0];
    if (strcmp(name, "--version") == 0) {
        printf("dcrf %s\n", dcrf_version());
        return true;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return run_help(count - 1, arguments + 1, problem);
    if (name[0] == '-')
        return bad_input(problem, name, "unknown option; 'dcrf --help' shows the usage");
    const cli_command *command = find_command(name);
    if (!command)
        return unknown_command(name, problem);
    bool was_run = false;
    if (command == &solve_command && ranks_count() == 1 &&
        !run_many(command, count - 1, arguments + 1, &was_run, problem))
        return false;
    return was_run || run_command(command, count - 1, arguments + 1, problem);
}

/* Only rank 0 prints. */
static bool silence_other_ranks(cli_problem *problem) {
    return ranks_mine() == 0 || freopen("/dev/null", "w", stdout) ||
           failure(problem, "/dev/null", "cannot open: %s", strerror(errno));
}

/* All ranks enter and leave this together. */
static bool run_and_agree(int count, char **arguments, cli_problem *problem) {
    bool done =
        silence_other_ranks(problem) && run(count > 0 ? count - 1 : 0, arguments + 1, problem);
    done = done && output_flush_standard(problem);
    return ranks_agree(done, problem);
}

/* If a standard descriptor were closed, the next file opened would get its number, and output
 * would go into that file. */
static bool open_standard_descriptors(cli_problem *problem) {
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY) != descriptor)
            return failure(problem, "/dev/null", "cannot open: %s", strerror(errno));
    return true;
}

int main(int count, char **arguments) {
    cli_problem problem = {0, ""};
    /* A closed pipe or a full quota then makes the write fail, which is reported and cleaned up. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    temporary_guard_signals();
    file_explain_cut();
    const bool done = open_standard_descriptors(&problem) &&
                      ranks_begin(&count, &arguments, &problem) &&
                      run_and_agree(count, arguments, &problem);
    /* All ranks have the same problem; one reports it. */
    if (!done && ranks_mine() == 0)
        fprintf(stderr, "dcrf: %s\n", problem.text);
    ranks_end();
    return done ? 0 : problem.exit_status;
}
