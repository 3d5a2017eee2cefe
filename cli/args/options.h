/* Options, declared once.
 *
 * An option is a row of a table: its name, the form of its argument, its default, a line of help
 * and the place of its value. Parsing, defaults, help texts, shell completions and the check for
 * missing options all come from that row, for every subcommand. The default is written as the user
 * would write it and goes through the same parser, so the help always states the value in force.
 *
 * Values come from four places, later ones winning: the defaults, a file (--config), a preset
 * (--preset) and the command line. A record keeps the text of every value in force, so that a
 * run can store its settings and be repeated. */
#ifndef DCRF_CLI_ARGS_OPTIONS_H
#define DCRF_CLI_ARGS_OPTIONS_H

#include "problem.h"

#include <jansson.h>
#include <stddef.h>

typedef struct cli_option cli_option;

/* Parse `text` into *value, whose type depends on the parser. */
typedef bool option_parser(const cli_option *option, const char *text, void *value,
                           cli_problem *problem);

struct cli_option {
    const char *name;     /* without dashes; an operand (IMAGE) is named in capitals */
    char letter;          /* of the short form, or 0 */
    const char *form;     /* "FILE", "SIGMA,W", "none|symmetric"; NULL: a switch without argument */
    const char *fallback; /* the default; NULL: the value stays zero */
    bool required;
    option_parser *parse;
    size_t offset; /* of the value in the group's settings */
    const char *help;
};

/* Related options; their settings are at `offset` in those of the command. */
typedef struct option_group {
    const char *title;
    const cli_option *options; /* ends with one without a name */
    size_t offset;
} option_group;

/* The options and operands of a command. */
typedef struct option_set {
    const char *command;
    const cli_option *operands; /* ends with one without a name */
    const option_group *groups; /* ends with one without a title */
} option_set;

/* ---- values in force ------------------------------------------------------------------------ */

typedef struct option_value {
    const cli_option *option;
    const option_group *group; /* NULL: an operand */
    const char *text;
} option_value;

typedef struct option_record {
    option_value *values; /* unordered, one per option that has a value */
    size_t count;
    json_t *config; /* holds the texts that came from a file; may be NULL */
} option_record;

void option_record_free(option_record *record);

/* If the problem is about an option whose value came from the config file, name that file. */
void problem_of_config(const option_record *record, cli_problem *problem);

/* The text in force of an option, NULL if it has no value. */
const char *option_text(const option_record *record, const char *name);
/* Is its value other than from the default? */
bool option_was_given(const option_record *record, const char *name);

/* Settings as a config file holds them, except for the options of the tables `left_out` (a list
 * that ends with NULL) and those that only name a source of settings. NULL if out of memory. */
json_t *settings_to_json(const option_record *record, const cli_option *const *left_out);

/* The arguments that reproduce these settings, each preceded by a space; the caller frees them. */
char *settings_to_arguments(const option_record *record, const cli_option *const *left_out);

/* ---- parsing -------------------------------------------------------------------------------- */

/* Set all defaults, then read the files and arguments; the last of a repeated option wins.
 * `*help` is set if --help is among them, and then nothing else is checked. The record must be
 * freed, even on failure, and must outlive the settings. */
bool parse_arguments(const option_set *set, int count, char **arguments, void *settings,
                     option_record *record, bool *help, cli_problem *problem);

/* Split arguments without parsing their values, any number of operands among them, which have no
 * option here; `values` has room for `count`. False if they ask for help or cannot be split:
 * parse_arguments reports why. */
bool arguments_split(const option_set *set, int count, char **arguments, option_value *values,
                     size_t *value_count);

/* The option of this name, or the operand of this name in lower case; NULL: none. */
const cli_option *find_option_named(const option_set *set, const char *name,
                                    const option_group **group);

/* ---- parsers -------------------------------------------------------------------------------- */

option_parser parse_text;            /* const char * */
option_parser parse_input;           /* the same: an input file or folder (file_options.h) */
option_parser parse_output;          /* an output file */
option_parser parse_folder;          /* an output folder */
option_parser parse_switch;          /* bool */
option_parser parse_number;          /* double, finite */
option_parser parse_positive_number; /* double, finite, above zero */
option_parser parse_fraction;        /* the same, or a percentage: 0.1% is 0.001 */
option_parser parse_number_or_auto;  /* double, finite, not below zero; NaN: the word auto */
option_parser parse_count;           /* size_t */
option_parser parse_positive_count;  /* size_t, above zero */
option_parser parse_bytes;           /* size_t, above zero: "4G", "512M", "100000" */
option_parser parse_choice;          /* int: the index among the words of a form such as "a|b|c" */
option_parser parse_config;          /* const option_record *: all settings, from every source */
option_parser parse_preset;          /* const char *: its name */

/* An option's name in messages: --name, or the name of an operand. */
#define OPTION_SUBJECT_BYTES 64
const char *option_subject(const cli_option *option, char subject[OPTION_SUBJECT_BYTES]);

/* The value of a numeric macro of the library, as text. */
#define NUMBER_TEXT(macro) NUMBER_TEXT_OF(macro)
#define NUMBER_TEXT_OF(number) #number

/* `count` finite numbers separated by commas; false if `text` is anything else. */
bool parse_number_list(const char *text, double *numbers, size_t count);

/* The options --config and --preset, for commands that have a model. */
typedef struct source_options {
    const option_record *record;
    const char *preset;
} source_options;

extern const cli_option source_option_table[];

#endif
