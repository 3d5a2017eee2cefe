#include "options.h"

#include "nearest.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsers -------------------------------------------------------------------------------- */

/* How messages call an option: --name, or the name of an operand. */
static const char *subject_of(const cli_option *option, char *buffer, size_t bytes) {
    const bool operand = option->name[0] >= 'A' && option->name[0] <= 'Z';
    snprintf(buffer, bytes, "%s%s", operand ? "" : "--", option->name);
    return buffer;
}

static bool bad_value(const cli_option *option, const char *text, const char *wanted,
                      cli_problem *problem) {
    char subject[64];
    return bad_input(problem, subject_of(option, subject, sizeof subject), "'%s' is not %s", text,
                     wanted);
}

bool parse_number_list(const char *text, double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *end;
        /* strtod also skips blanks and reads hexadecimal, nan and inf: none of them is meant. */
        if (!strchr("+-.0123456789", *text) || *text == '\0' || strpbrk(text, "xX"))
            return false;
        numbers[i] = strtod(text, &end);
        if (end == text || !isfinite(numbers[i]) || *end != (i + 1 < count ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

bool parse_text(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    if (*text == '\0')
        return bad_value(option, text, "a name: it is empty", problem);
    *(const char **)value = text;
    return true;
}

bool parse_switch(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    (void)option, (void)text, (void)problem;
    *(bool *)value = true;
    return true;
}

bool parse_number(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    return parse_number_list(text, value, 1) || bad_value(option, text, "a number", problem);
}

bool parse_positive_number(const cli_option *option, const char *text, void *value,
                           cli_problem *problem) {
    double number;
    if (!parse_number_list(text, &number, 1) || !(number > 0))
        return bad_value(option, text, "a number above zero", problem);
    *(double *)value = number;
    return true;
}

bool parse_count(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0')
        return bad_value(option, text, "a whole number", problem);
    if (errno == ERANGE || number > SIZE_MAX)
        return bad_value(option, text, "a number of this size: it is too large", problem);
    *(size_t *)value = (size_t)number;
    return true;
}

bool parse_choice(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    const size_t length = strlen(text);
    int place = 0;
    for (const char *word = option->form; word; place++) {
        const char *bar = strchr(word, '|');
        const size_t word_length = bar ? (size_t)(bar - word) : strlen(word);
        if (word_length == length && memcmp(word, text, length) == 0) {
            *(int *)value = place;
            return true;
        }
        word = bar ? bar + 1 : NULL;
    }
    char wanted[128];
    snprintf(wanted, sizeof wanted, "one of %s", option->form);
    return bad_value(option, text, wanted, problem);
}

/* ---- arguments ------------------------------------------------------------------------------ */

typedef struct parsing {
    const option_set *set;
    char **arguments;
    int count;
    int next;
    char *settings;
    const cli_option *next_operand;
    cli_problem *problem;
} parsing;

static void *value_place(const parsing *p, const option_group *group, const cli_option *option) {
    return p->settings + (group ? group->offset : 0) + option->offset;
}

/* The option with this name (NULL: with this letter), and its group. */
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
    subject_of(option, subject, sizeof subject);
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
    return option->parse(option, value ? value : "", value_place(p, group, option), p->problem);
}

static bool take_operand(parsing *p, const char *argument) {
    if (!p->next_operand->name)
        return bad_input(p->problem, argument,
                         "unexpected argument; 'dcrf help %s' shows the usage", p->set->command);
    const cli_option *operand = p->next_operand++;
    return operand->parse(operand, argument, value_place(p, NULL, operand), p->problem);
}

static bool set_defaults(const parsing *p) {
    for (const option_group *g = p->set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (o->fallback && !o->parse(o, o->fallback, value_place(p, g, o), p->problem))
                return false;
        }
    return true;
}

/* A required option takes a file or another text, so one not given is a null pointer. */
static bool check_required(const parsing *p) {
    if (p->next_operand->name)
        return bad_input(p->problem, p->set->command,
                         "%s is missing; 'dcrf help %s' shows the usage", p->next_operand->name,
                         p->set->command);
    for (const option_group *g = p->set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (o->required && !*(const char **)value_place(p, g, o))
                return bad_input(p->problem, p->set->command,
                                 "the option --%s %s is missing; 'dcrf help %s' shows the usage",
                                 o->name, o->form, p->set->command);
        }
    return true;
}

bool parse_arguments(const option_set *set, int count, char **arguments, void *settings, bool *help,
                     cli_problem *problem) {
    parsing p = {set, arguments, count, 0, settings, set->operands, problem};
    bool only_operands = false;
    *help = false;
    if (!set_defaults(&p))
        return false;
    while (p.next < count) {
        const char *argument = arguments[p.next++];
        const bool dashed = argument[0] == '-' && argument[1] != '\0';
        if (only_operands || !dashed) {
            if (!take_operand(&p, argument))
                return false;
        } else if (strcmp(argument, "--") == 0) {
            only_operands = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            *help = true;
            return true;
        } else if (!take_option(&p, argument)) {
            return false;
        }
    }
    return check_required(&p);
}
