/* JSON results, through jansson. */
#ifndef DCRF_CLI_IO_JSON_H
#define DCRF_CLI_IO_JSON_H

#include "io/output.h"

#include <jansson.h>
#include <stdio.h>

/* A number, or null if it is NaN or infinite, which JSON cannot represent. */
json_t *number_or_null(double value);

/* Merge `added` into `root`. If either is NULL, or merging fails, both are released and the
 * result is NULL. */
json_t *json_merge(json_t *root, json_t *added);

/* Add a value to an object or at the end of a list, in the same way. */
json_t *json_with(json_t *object, const char *key, json_t *value);
json_t *json_append(json_t *list, json_t *value);

/* Write `root` and release the reference to it. `root` may be NULL, as jansson's constructors
 * return if out of memory. Errors of the stream show up when it is closed. */
bool json_write_and_free(FILE *stream, const char *file, json_t *root, cli_problem *problem);

/* The same into a file that only appears when it is complete. */
bool json_save_and_free(const char *file, output_place place, json_t *root, cli_problem *problem);

#endif
