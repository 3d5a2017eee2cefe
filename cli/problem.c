#include "problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A file name may hold line breaks or escape codes; the message stays one harmless line. */
static void keep_to_one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static bool write_problem(cli_problem *problem, int exit_status, const char *subject,
                          const char *format, va_list arguments) {
    /* A very long file name must not push out what is wrong with it: its end is shown. */
    const size_t longest_subject = PROBLEM_BYTES / 2, length = strlen(subject);
    const bool shortened = length > longest_subject;
    int used = snprintf(problem->text, sizeof problem->text, "%s%s: ", shortened ? "..." : "",
                        shortened ? subject + (length - longest_subject) : subject);
    if (used < 0)
        used = 0;
    vsnprintf(problem->text + used, sizeof problem->text - (size_t)used, format, arguments);
    keep_to_one_line(problem->text);
    problem->exit_status = exit_status;
    return false;
}

bool bad_input(cli_problem *problem, const char *subject, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_problem(problem, EXIT_STATUS_BAD_INPUT, subject, format, arguments);
    va_end(arguments);
    return false;
}

bool failure(cli_problem *problem, const char *subject, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_problem(problem, EXIT_STATUS_FAILURE, subject, format, arguments);
    va_end(arguments);
    return false;
}

bool out_of_memory(cli_problem *problem, const char *subject) {
    return failure(problem, subject, "out of memory");
}

bool library_problem(cli_problem *problem, const char *subject, const dcrf_error *error) {
    if (error->status == DCRF_ERROR_MEMORY || error->status == DCRF_ERROR_THREAD)
        return failure(problem, subject, "%s", error->message);
    return bad_input(problem, subject, "%s", error->message);
}
