/* Options, declared once.
 *
 * An option is a row of a table: its name, the form of its argument, its default, a line of help
 * and the place its value goes to. Parsing, defaults, the help texts and the check that nothing
 * needed is missing all come from that row, for every subcommand. The default is written as the
 * user would write it and goes through the same parser, so the help cannot promise another value
 * than the one in force. */
#ifndef DCRF_CLI_OPTIONS_H
#define DCRF_CLI_OPTIONS_H

#include "problem.h"

#include <stddef.h>

typedef struct cli_option cli_option;

/* Parse `text` into *value, whose type belongs to the parser. */
typedef bool option_parser(const cli_option *option, const char *text, void *value,
                           cli_problem *problem);

struct cli_option {
    const char *name;     /* without dashes; an operand (IMAGE) is named in capitals */
    char letter;          /* of the short form, or 0 */
    const char *form;     /* "FILE", "SIGMA,W", "none|symmetric"; NULL: a switch without argument */
    const char *fallback; /* the default; NULL: the value stays zero */
    bool required;
    option_parser *parse;
    size_t offset; /* of the value in the settings of the group */
    const char *help;
};

/* Options that belong together; their settings lie at `offset` in those of the command. */
typedef struct option_group {
    const char *title;
    const cli_option *options; /* ends with one without a name */
    size_t offset;
} option_group;

/* The command whose arguments are parsed, as far as options are concerned. */
typedef struct option_set {
    const char *command;
    const cli_option *operands; /* ends with one without a name */
    const option_group *groups; /* ends with one without a title */
} option_set;

/* Set all defaults, then read the arguments; the last of a repeated option counts. `*help` is set
 * when --help was among them, and then nothing else is checked. */
bool parse_arguments(const option_set *set, int count, char **arguments, void *settings, bool *help,
                     cli_problem *problem);

/* ---- parsers -------------------------------------------------------------------------------- */

option_parser parse_text;            /* const char * */
option_parser parse_switch;          /* bool */
option_parser parse_number;          /* double, finite */
option_parser parse_positive_number; /* double, finite, above zero */
option_parser parse_count;           /* size_t */
option_parser parse_choice;          /* int: the place among the words of a form like "a|b|c" */

/* `count` finite numbers separated by commas; false where `text` is anything else. */
bool parse_number_list(const char *text, double *numbers, size_t count);

#endif
