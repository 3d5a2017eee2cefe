/* JSON results, through jansson. */
#ifndef DCRF_CLI_IO_JSON_H
#define DCRF_CLI_IO_JSON_H

#include "problem.h"

#include <jansson.h>
#include <stdio.h>

/* Write `root` and drop the reference to it. `root` may be NULL, as the constructors of jansson
 * return it when memory is out. Errors of the stream show up when it is closed. */
bool json_write_and_free(FILE *stream, const char *file, json_t *root, cli_problem *problem);

/* The same into a file that appears when it is complete. */
bool json_save_and_free(const char *file, json_t *root, cli_problem *problem);

#endif
