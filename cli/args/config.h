/* Settings in JSON files. */
#ifndef DCRF_CLI_ARGS_CONFIG_H
#define DCRF_CLI_ARGS_CONFIG_H

#include "args/options.h"

#include <stdint.h>

/* Read a file that is an object with names of options as keys, or that has such an object under
 * "settings", as the results of a run have. Every name must be an option or operand of a
 * command; those of other commands are passed over. *texts becomes an object with the value of each
 * as the text that the command line would have; on failure it is NULL. */
bool config_read(const char *path, const option_set *set, json_t **texts, cli_problem *problem);

/* The same from memory; `path` is for messages. */
bool config_parse(const uint8_t *data, size_t size, const char *path, const option_set *set,
                  json_t **texts, cli_problem *problem);

#endif
