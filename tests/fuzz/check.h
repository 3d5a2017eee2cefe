/* Properties that must hold for every input. */
#ifndef DCRF_TESTS_FUZZ_CHECK_H
#define DCRF_TESTS_FUZZ_CHECK_H

#include "problem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline void fuzz_check(bool holds) {
    if (!holds)
        abort();
}

/* A refusal has a status and a one-line message. */
static inline void fuzz_check_refused(const cli_problem *problem) {
    fuzz_check(problem->exit_status != 0);
    fuzz_check(problem->text[0] != '\0' && !strchr(problem->text, '\n'));
}

#endif
