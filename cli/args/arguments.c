/* From arguments to settings.
 *
 * The arguments are first split into options with their texts; then the defaults, the config
 * file, the preset and the arguments are applied in that order, each through the option's
 * parser. */
#include "args/config.h"
#include "args/nearest.h"
#include "args/options.h"
#include "args/presets.h"

#include <stdlib.h>
#include <string.h>

typedef struct parsing {
    const option_set *set;
    char **arguments;
    int count;
    int next;
    const cli_option *next_operand; /* NULL: any number of them, without options */
    option_value *given;            /* the arguments, in order */
    size_t given_count;
    char *settings;
    option_record *record;
    cli_problem *problem;
} parsing;

/* ---- options by name ------------------------------------------------------------------------ */

static const cli_option *find_option(const option_set *set, const char *name, size_t name_length,
                                     char letter, const option_group **group) {
    for (const option_group *g = set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (name ? strlen(o->name) == name_length && memcmp(o->name, name, name_length) == 0
                     : letter && o->letter == letter) {
                *group = g;
                return o;
            }
        }
    return NULL;
}

static bool same_in_small_letters(const char *capitals, const char *name) {
    while (*capitals &&
           *name == (*capitals >= 'A' && *capitals <= 'Z' ? *capitals + 'a' - 'A' : *capitals)) {
        capitals++;
        name++;
    }
    return *capitals == '\0' && *name == '\0';
}

const cli_option *find_option_named(const option_set *set, const char *name,
                                    const option_group **group) {
    *group = NULL;
    for (const cli_option *o = set->operands; o->name; o++)
        if (same_in_small_letters(o->name, name))
            return o;
    return find_option(set, name, strlen(name), 0, group);
}

/* ---- splitting the arguments ---------------------------------------------------------------- */

static bool unknown_option(const parsing *p, const char *argument) {
    char name[64] = "";
    if (argument[1] == '-')
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    nearest_name nearest = nearest_start(name);
    for (const option_group *g = p->set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++)
            nearest_offer(&nearest, o->name);
    char subject[80];
    snprintf(subject, sizeof subject, "%.*s", (int)strcspn(argument, "="), argument);
    if (nearest.best)
        return bad_input(p->problem, subject, "unknown option; did you mean --%s?", nearest.best);
    return bad_input(p->problem, subject, "unknown option; 'dcrf help %s' lists the options",
                     p->set->command);
}

static bool take_option(parsing *p, const char *argument) {
    const option_group *group = NULL;
    const cli_option *option;
    const char *value = NULL;
    if (argument[1] == '-') {
        const size_t length = strcspn(argument + 2, "=");
        option = find_option(p->set, argument + 2, length, 0, &group);
        value = argument[2 + length] == '=' ? argument + 3 + length : NULL;
    } else {
        option = find_option(p->set, NULL, 0, argument[1], &group);
        value = argument[2] ? argument + 2 : NULL;
    }
    if (!option)
        return unknown_option(p, argument);

    char subject[64];
    snprintf(subject, sizeof subject, "--%s", option->name);
    if (!option->form && value)
        return bad_input(p->problem, subject, "takes no value; leave out '%s'", value);
    if (option->form && !value) {
        const char *next = p->next < p->count ? p->arguments[p->next] : NULL;
        if (!next || (next[0] == '-' && next[1] == '-'))
            return bad_input(p->problem, subject, "its value is missing; write --%s %s",
                             option->name, option->form);
        value = next;
        p->next++;
    }
    p->given[p->given_count++] = (option_value){option, group, value ? value : ""};
    return true;
}

/* The option that a file was probably meant for; NULL: unknown. */
static const char *option_for_file(const parsing *p, const char *file) {
    static const struct {
        const char *ending, *option;
    } usual[] = {
        {".npy", "unary"}, {".npz", "unary"}, {".png", "labels-prior"}, {".cert", "certificate"}};
    const option_group *group;
    const char *ending = strrchr(file, '.');
    for (size_t k = 0; ending && k < sizeof usual / sizeof *usual; k++)
        if (strcmp(ending, usual[k].ending) == 0 &&
            find_option(p->set, usual[k].option, strlen(usual[k].option), 0, &group))
            return usual[k].option;
    return NULL;
}

/* With an argument too many: it, or a certificate before it, which is no picture. */
static const char *misplaced(const parsing *p, const char *argument) {
    for (size_t k = 0; k < p->given_count; k++) {
        const char *ending = p->given[k].group ? NULL : strrchr(p->given[k].text, '.');
        if (ending && strcmp(ending, ".cert") == 0)
            return p->given[k].text;
    }
    return argument;
}

static bool take_operand(parsing *p, const char *argument) {
    if (!p->next_operand) {
        p->given[p->given_count++] = (option_value){NULL, NULL, argument};
        return true;
    }
    if (!p->next_operand->name) {
        const char *file = misplaced(p, argument), *option = option_for_file(p, file);
        return option ? bad_input(p->problem, file, "unexpected argument; did you mean --%s %s?",
                                  option, file)
                      : bad_input(p->problem, argument,
                                  "unexpected argument; 'dcrf help %s' shows the usage",
                                  p->set->command);
    }
    p->given[p->given_count++] = (option_value){p->next_operand++, NULL, argument};
    return true;
}

static bool take_apart(parsing *p, bool *help) {
    bool only_operands = false;
    while (p->next < p->count) {
        const char *argument = p->arguments[p->next++];
        const bool dashed = argument[0] == '-' && argument[1] != '\0';
        if (only_operands || !dashed) {
            if (!take_operand(p, argument))
                return false;
        } else if (strcmp(argument, "--") == 0) {
            only_operands = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            *help = true;
            return true;
        } else if (!take_option(p, argument)) {
            return false;
        }
    }
    return true;
}

bool arguments_split(const option_set *set, int count, char **arguments, option_value *values,
                     size_t *value_count) {
    cli_problem ignored;
    bool help = false;
    parsing p = {
        .set = set, .arguments = arguments, .count = count, .given = values, .problem = &ignored};
    const bool done = take_apart(&p, &help) && !help;
    *value_count = p.given_count;
    return done;
}

/* ---- applying values ------------------------------------------------------------------------ */

static void *value_place(const parsing *p, const option_value *value) {
    return p->settings + (value->group ? value->group->offset : 0) + value->option->offset;
}

static bool put(parsing *p, const option_value *value) {
    option_record *record = p->record;
    size_t place = 0;
    while (place < record->count && record->values[place].option != value->option)
        place++;
    record->values[place] = *value;
    record->count += place == record->count;
    return value->option->parse(value->option, value->text, value_place(p, value), p->problem);
}

static bool put_defaults(parsing *p) {
    for (const option_group *g = p->set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            const option_value value = {o, g, o->fallback};
            if (o->parse == parse_config)
                *(const option_record **)value_place(p, &value) = p->record;
            if (o->fallback && !put(p, &value))
                return false;
        }
    return true;
}

static bool is_given(const parsing *p, const char *name) {
    for (size_t i = 0; i < p->given_count; i++)
        if (strcmp(p->given[i].option->name, name) == 0)
            return true;
    return false;
}

/* Presets contain options of several commands; those that this one lacks are skipped. */
static bool put_preset(parsing *p, const char *name) {
    const cli_preset *preset = find_preset(name, p->problem);
    if (!preset)
        return false;
    preset_value values[PRESET_VALUES_MAX];
    const size_t count = preset_values(preset, values);
    for (size_t i = 0; i < count; i++) {
        option_value value = {NULL, NULL, values[i].text};
        value.option = find_option_named(p->set, values[i].name, &value.group);
        /* The superpixel size does not apply to regions from another source. */
        if (strcmp(values[i].name, "min-region") == 0 && is_given(p, "cliques"))
            continue;
        if (value.option && !put(p, &value))
            return false;
    }
    return true;
}

/* Name the file that contains the bad value. */
static bool in_file(const parsing *p, const char *path) {
    cli_problem inner = *p->problem;
    return bad_input(p->problem, path, "%s", inner.text);
}

static bool put_config(parsing *p, const char *path) {
    if (!config_read(path, p->set, &p->record->config, p->problem))
        return false;
    const char *name;
    json_t *text, *preset = json_object_get(p->record->config, "preset");
    if (preset && !put_preset(p, json_string_value(preset)))
        return in_file(p, path);
    json_object_foreach(p->record->config, name, text) {
        option_value value = {NULL, NULL, json_string_value(text)};
        value.option = find_option_named(p->set, name, &value.group);
        if (!put(p, &value))
            return in_file(p, path);
    }
    return true;
}

/* The text of the last given option that has this parser. */
static const char *given_text(const parsing *p, option_parser *parser) {
    const char *text = NULL;
    for (size_t i = 0; i < p->given_count; i++)
        if (p->given[i].option->parse == parser)
            text = p->given[i].text;
    return text;
}

static bool put_all(parsing *p) {
    const char *config = given_text(p, parse_config), *preset = given_text(p, parse_preset);
    if (!put_defaults(p) || (config && !put_config(p, config)) ||
        (preset && !put_preset(p, preset)))
        return false;
    for (size_t i = 0; i < p->given_count; i++)
        if (!put(p, &p->given[i]))
            return false;
    return true;
}

/* Operands and required options take a file or other text. */
static bool check_required(const parsing *p) {
    for (const cli_option *o = p->set->operands; o->name; o++)
        if (!option_text(p->record, o->name))
            return bad_input(p->problem, p->set->command,
                             "%s is missing; 'dcrf help %s' shows the usage", o->name,
                             p->set->command);
    for (const option_group *g = p->set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (o->required && !option_text(p->record, o->name))
                return bad_input(p->problem, p->set->command,
                                 "the option --%s %s is missing; 'dcrf help %s' shows the usage",
                                 o->name, o->form, p->set->command);
        }
    return true;
}

static size_t count_options(const option_set *set) {
    size_t count = 0;
    for (const cli_option *o = set->operands; o->name; o++)
        count++;
    for (const option_group *g = set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++)
            count++;
    return count;
}

bool parse_arguments(const option_set *set, int count, char **arguments, void *settings,
                     option_record *record, bool *help, cli_problem *problem) {
    parsing p = {set, arguments, count, 0, set->operands, NULL, 0, settings, record, problem};
    *help = false;
    *record = (option_record){0};
    record->values = calloc(count_options(set) + 1, sizeof *record->values);
    p.given = calloc((size_t)count + 1, sizeof *p.given);
    bool done =
        record->values && p.given ? take_apart(&p, help) : out_of_memory(problem, set->command);
    if (done && !*help)
        done = put_all(&p) && check_required(&p);
    free(p.given);
    return done;
}
