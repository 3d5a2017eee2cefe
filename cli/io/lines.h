/* Text files as lists of lines. */
#ifndef DCRF_CLI_IO_LINES_H
#define DCRF_CLI_IO_LINES_H

#include "problem.h"

#include <stddef.h>

typedef struct line_list {
    char **lines;
    size_t count;
} line_list;

/* The non-empty lines, without surrounding spaces. */
bool lines_read(const char *path, line_list *list, cli_problem *problem);
/* All lines as they are, so that line k has the number k + 1. */
bool lines_read_all(const char *path, line_list *list, cli_problem *problem);

/* Add a copy of a text; false: out of memory. */
bool lines_add(line_list *list, const char *text, size_t length);
void lines_free(line_list *list);

#endif
