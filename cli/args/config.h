/* Settings in JSON files. */
#ifndef DCRF_CLI_ARGS_CONFIG_H
#define DCRF_CLI_ARGS_CONFIG_H

#include "args/options.h"

#include <stdint.h>

/* Read a file that is an object with option names as keys, or that has such an object under
 * "settings", as the results of a run do. Every name must be an option or operand of some
 * command; those of other commands are ignored. *texts becomes an object with each value as the
 * text that the command line would have; NULL on failure. */
bool config_read(const char *path, const option_set *set, json_t **texts, cli_problem *problem);

/* The same from memory; `path` is for messages. */
bool config_parse(const uint8_t *data, size_t size, const char *path, const option_set *set,
                  json_t **texts, cli_problem *problem);

#endif
