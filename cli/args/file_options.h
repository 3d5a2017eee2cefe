/* Files of a command: no output may replace an input or another output.
 *
 * The parsers (parse_input, parse_config, parse_output, parse_folder) tell which options name
 * files and whether these are read or written, so that no command has to check. */
#ifndef DCRF_CLI_ARGS_FILE_OPTIONS_H
#define DCRF_CLI_ARGS_FILE_OPTIONS_H

#include "args/options.h"

/* For use before anything is read or written. */
bool file_options_check(const option_record *record, cli_problem *problem);

#endif
