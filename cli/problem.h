/* Errors as values.
 *
 * Functions of the command that can fail return false and fill in a problem: one line that names
 * the file or option concerned and says what is wrong and what to do, and the exit status of the
 * program. Only main prints it. */
#ifndef DCRF_CLI_PROBLEM_H
#define DCRF_CLI_PROBLEM_H

#include <dcrf/status.h>
#include <stdbool.h>

enum {
    EXIT_STATUS_FAILURE = 1, /* the input may be fine: out of memory, no GPU, a write that failed */
    EXIT_STATUS_BAD_INPUT = 2,    /* a file, an option or an argument has to be changed */
    EXIT_STATUS_PARTIAL = 3,      /* done, except for some images or the certificate */
    EXIT_STATUS_INTERRUPTED = 130 /* by Ctrl-C or SIGTERM; finished results are kept */
};

#define PROBLEM_BYTES 1024

typedef struct cli_problem {
    int exit_status;
    char text[PROBLEM_BYTES];
} cli_problem;

#if defined(__GNUC__)
#define PROBLEM_FORMAT __attribute__((format(printf, 3, 4)))
#else
#define PROBLEM_FORMAT
#endif

/* Write "SUBJECT: message" into *problem and return false. */
PROBLEM_FORMAT bool bad_input(cli_problem *problem, const char *subject, const char *format, ...);
PROBLEM_FORMAT bool failure(cli_problem *problem, const char *subject, const char *format, ...);
PROBLEM_FORMAT bool partial(cli_problem *problem, const char *subject, const char *format, ...);
bool out_of_memory(cli_problem *problem, const char *subject);

/* Prefix the message with the option whose value is its subject: "--unary u.npy: ...". Returns
 * false. */
bool problem_of_option(cli_problem *problem, const char *option);

/* The same from an error of the library. */
bool library_problem(cli_problem *problem, const char *subject, const dcrf_error *error);

#endif
