#include "args/options.h"

#include "args/nearest.h"
#include "args/presets.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsers -------------------------------------------------------------------------------- */

const char *option_subject(const cli_option *option, char subject[OPTION_SUBJECT_BYTES]) {
    const bool operand = option->name[0] >= 'A' && option->name[0] <= 'Z';
    snprintf(subject, OPTION_SUBJECT_BYTES, "%s%s", operand ? "" : "--", option->name);
    return subject;
}

static bool bad_value(const cli_option *option, const char *text, const char *wanted,
                      cli_problem *problem) {
    char subject[OPTION_SUBJECT_BYTES];
    return bad_input(problem, option_subject(option, subject), "'%s' is not %s", text, wanted);
}

bool parse_number_list(const char *text, double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *end;
        /* strtod also skips spaces and accepts hexadecimal, nan and inf; none of them is wanted
         * here. */
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

bool parse_input(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    return parse_text(option, text, value, problem);
}

bool parse_output(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    return parse_text(option, text, value, problem);
}

bool parse_folder(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    return parse_text(option, text, value, problem);
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

bool parse_fraction(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    static const char what[] = "a fraction above zero, such as 0.001 or 0.1%";
    char plain[64];
    const size_t length = strlen(text);
    const bool is_percentage = length > 0 && text[length - 1] == '%';
    double number;
    if (length >= sizeof plain)
        return bad_value(option, text, what, problem);
    memcpy(plain, text, length + 1);
    if (is_percentage)
        plain[length - 1] = '\0';
    if (!parse_number_list(plain, &number, 1) || !(number > 0))
        return bad_value(option, text, what, problem);
    *(double *)value = is_percentage ? number / 100 : number;
    return true;
}

bool parse_number_or_auto(const cli_option *option, const char *text, void *value,
                          cli_problem *problem) {
    if (strcmp(text, "auto") == 0) {
        *(double *)value = NAN;
        return true;
    }
    double number;
    if (!parse_number_list(text, &number, 1) || number < 0)
        return bad_value(option, text, "auto, nor a number that is not below zero", problem);
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

bool parse_positive_count(const cli_option *option, const char *text, void *value,
                          cli_problem *problem) {
    size_t count = 0;
    if (!parse_count(option, text, &count, problem))
        return false;
    if (count == 0)
        return bad_value(option, text, "above zero", problem);
    *(size_t *)value = count;
    return true;
}

bool parse_bytes(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    static const char letters[] = "KMGT";
    char *end;
    const double number = strtod(text, &end);
    const char *letter = *end ? strchr(letters, *end) : NULL;
    const double unit = letter ? pow(1024, (double)(letter - letters) + 1) : 1;
    end += letter != NULL;
    if (end == text || *end || !(number > 0) || !(number * unit < (double)SIZE_MAX))
        return bad_value(option, text, "a number of bytes such as 512M or 4G", problem);
    *(size_t *)value = (size_t)(number * unit);
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

/* The value of this option is the record itself, which parse_arguments stores. */
bool parse_config(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    (void)value;
    return *text != '\0' || bad_value(option, text, "a name: it is empty", problem);
}

bool parse_preset(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    if (!find_preset(text, problem))
        return false;
    return parse_text(option, text, value, problem);
}

const cli_option source_option_table[] = {
    {"config", 0, "FILE", NULL, false, parse_config, offsetof(source_options, record),
     "read settings from a JSON file: one written by --json, or an object keyed by option names; "
     "options on the command line take precedence"},
    {"preset", 0, "NAME", NULL, false, parse_preset, offsetof(source_options, preset),
     "published kernels and cliques; 'dcrf presets' lists the names"},
    {0},
};
