/* The description of a search: search.json.
 *
 * An object with everything that the search depends on, and "budgets": the requested numbers of
 * evaluations, in increasing order. A folder holds one search: another one is refused. */
#ifndef DCRF_CLI_DATASET_SEARCH_RECORD_H
#define DCRF_CLI_DATASET_SEARCH_RECORD_H

#include "problem.h"

#include <jansson.h>
#include <stddef.h>

/* Write the file, or continue from one that describes the same search; `anew`: overwrite it,
 * whatever it describes. `subject` is released; NULL: out of memory. *budgets, which the caller
 * frees, then ends with `budget`. */
bool search_record_claim(const char *path, json_t *subject, bool anew, size_t budget,
                         size_t **budgets, size_t *budget_count, cli_problem *problem);

#endif
