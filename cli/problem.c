#include "problem.h"

#include "printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void write_problem(cli_problem *problem, int exit_status, const char *subject,
                          const char *format, va_list arguments) {
    /* A very long file name must not crowd out the message: only its end is shown. */
    const size_t longest_subject = PROBLEM_BYTES / 2, length = strlen(subject);
    const bool shortened = length > longest_subject;
    char text[PROBLEM_BYTES];
    int used = snprintf(text, sizeof text, "%s%s: ", shortened ? "..." : "",
                        shortened ? subject + (length - longest_subject) : subject);
    if (used < 0)
        used = 0;
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    /* A file name may contain line breaks or escape codes; the message stays one harmless line. */
    printable(text, problem->text, sizeof problem->text);
    problem->exit_status = exit_status;
}

#define PROBLEM(name, exit_status)                                                                 \
    bool name(cli_problem *problem, const char *subject, const char *format, ...) {                \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        write_problem(problem, exit_status, subject, format, arguments);                           \
        va_end(arguments);                                                                         \
        return false;                                                                              \
    }

PROBLEM(bad_input, EXIT_STATUS_BAD_INPUT)
PROBLEM(failure, EXIT_STATUS_FAILURE)
PROBLEM(partial, EXIT_STATUS_PARTIAL)

bool out_of_memory(cli_problem *problem, const char *subject) {
    return failure(problem, subject, "out of memory");
}

bool problem_of_option(cli_problem *problem, const char *option) {
    const size_t length = strlen(option), room = sizeof problem->text - length - 2;
    /* Some problems already name an option. */
    if (strncmp(problem->text, "--", 2) != 0) {
        memmove(problem->text + length + 1, problem->text, room);
        memcpy(problem->text, option, length);
        problem->text[length] = ' ';
        problem->text[sizeof problem->text - 1] = '\0';
    }
    return false;
}

bool library_problem(cli_problem *problem, const char *subject, const dcrf_error *error) {
    if (error->status == DCRF_ERROR_INTERRUPTED)
        return failure(problem, subject, "%s; there is no result yet that could be written",
                       error->message);
    if (error->status == DCRF_ERROR_MEMORY || error->status == DCRF_ERROR_THREAD ||
        error->status == DCRF_ERROR_DEVICE)
        return failure(problem, subject, "%s", error->message);
    return bad_input(problem, subject, "%s", error->message);
}
