/* Options, declared once.
 *
 * An option is a row of a table: its name, the form of its argument, its default, a line of help
 * and the place its value goes to. Parsing, defaults, the help texts, the completions of the shells
 * and the check that nothing needed is missing all come from that row, for every subcommand. The
 * default is written as the user would write it and goes through the same parser, so the help
 * cannot promise another value than the one in force.
 *
 * Values come from four places, later ones winning: the defaults, a file (--config), a preset
 * (--preset) and the command line. A record keeps the text of every value in force, so that a run
 * can write down its settings and be repeated. */
#ifndef DCRF_CLI_ARGS_OPTIONS_H
#define DCRF_CLI_ARGS_OPTIONS_H

#include "problem.h"

#include <jansson.h>
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

/* ---- what is in force ----------------------------------------------------------------------- */

typedef struct option_value {
    const cli_option *option;
    const option_group *group; /* NULL: an operand */
    const char *text;
} option_value;

typedef struct option_record {
    option_value *values; /* in no particular order, one for each option that has a value */
    size_t count;
    json_t *config; /* holds the texts that came from a file; may be NULL */
} option_record;

void option_record_free(option_record *record);

/* Where the problem is an option's whose value came from the config file, say which file that was.
 */
void problem_of_config(const option_record *record, cli_problem *problem);

/* The text in force of an option, NULL where it has no value. */
const char *option_text(const option_record *record, const char *name);
/* Does it come from anywhere but the default? */
bool option_was_given(const option_record *record, const char *name);

/* Settings as a config file holds them, options of the tables `left_out` (a list that ends with
 * NULL) and those that only say where settings come from left out. NULL when memory is out. */
json_t *settings_to_json(const option_record *record, const cli_option *const *left_out);

/* The arguments that give these settings again, each led by a blank; to be freed. */
char *settings_to_arguments(const option_record *record, const cli_option *const *left_out);

/* ---- parsing -------------------------------------------------------------------------------- */

/* Set all defaults, then read the files and arguments; the last of a repeated option counts.
 * `*help` is set when --help was among them, and then nothing else is checked. The record is to be
 * freed, on failure too, and outlives the settings. */
bool parse_arguments(const option_set *set, int count, char **arguments, void *settings,
                     option_record *record, bool *help, cli_problem *problem);

/* An argument: an option with its text, "" for a switch, or an operand. */
typedef struct argument_part {
    const cli_option *option; /* NULL: an operand */
    const char *text;
} argument_part;

/* Take arguments apart without reading their values; `parts` has room for `count`. False where they
 * ask for help or cannot be taken apart: parse_arguments says why. */
bool arguments_split(const option_set *set, int count, char **arguments, argument_part *parts,
                     size_t *part_count);

/* The option of this name, or the operand of this name in small letters; NULL: there is none. */
const cli_option *find_option_named(const option_set *set, const char *name,
                                    const option_group **group);

/* ---- parsers -------------------------------------------------------------------------------- */

option_parser parse_text;   /* const char * */
option_parser parse_input;  /* the same: a file or a folder that is read (file_options.h) */
option_parser parse_output; /* a file that is written */
option_parser parse_folder; /* a folder whose files are written */
option_parser parse_switch; /* bool */
option_parser parse_number; /* double, finite */
option_parser parse_positive_number; /* double, finite, above zero */
option_parser parse_fraction;        /* the same, or a percentage: 0.1% is 0.001 */
option_parser parse_number_or_auto;  /* double, finite, not below zero; NaN: the word auto */
option_parser parse_count;           /* size_t */
option_parser parse_positive_count;  /* size_t, above zero */
option_parser parse_bytes;           /* size_t, above zero: "4G", "512M", "100000" */
option_parser parse_choice;          /* int: the place among the words of a form like "a|b|c" */
option_parser parse_config; /* const option_record *: all settings, whatever their origin */
option_parser parse_preset; /* const char *: its name */

/* How messages call an option: --name, or the name of an operand. */
#define OPTION_SUBJECT_BYTES 64
const char *option_subject(const cli_option *option, char subject[OPTION_SUBJECT_BYTES]);

/* The number that a macro of the library stands for, as text. */
#define NUMBER_TEXT(macro) NUMBER_TEXT_OF(macro)
#define NUMBER_TEXT_OF(number) #number

/* `count` finite numbers separated by commas; false where `text` is anything else. */
bool parse_number_list(const char *text, double *numbers, size_t count);

/* The options --config and --preset, for commands that have a model. */
typedef struct source_options {
    const option_record *record;
    const char *preset;
} source_options;

extern const cli_option source_option_table[];

#endif
