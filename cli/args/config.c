#include "args/config.h"

#include "args/nearest.h"
#include "command.h"
#include "io/file.h"
#include "io/json.h"
#include "report/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading -------------------------------------------------------------------------------- */

#define TEXT_BYTES 512

/* Append one number or word of a value to `text`. */
static bool append_scalar(const json_t *value, char text[TEXT_BYTES]) {
    const size_t used = strlen(text), left = TEXT_BYTES - used;
    int length = -1;
    if (json_is_string(value))
        length = snprintf(text + used, left, "%s", json_string_value(value));
    else if (json_is_integer(value))
        length = snprintf(text + used, left, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        length = snprintf(text + used, left, "%.17g", json_real_value(value));
    return length >= 0 && (size_t)length < left;
}

/* The text that the command line would have; an array becomes a comma-separated list. */
static bool value_text(const json_t *value, char text[TEXT_BYTES]) {
    text[0] = '\0';
    if (!json_is_array(value))
        return append_scalar(value, text);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const size_t used = strlen(text);
        if (i > 0 && used + 1 < TEXT_BYTES)
            memcpy(text + used, ",", 2);
        if (!append_scalar(json_array_get(value, i), text))
            return false;
    }
    return json_array_size(value) > 0;
}

static bool unknown_name(const char *path, const char *name, const option_set *set,
                         cli_problem *problem) {
    nearest_name nearest = nearest_start(name);
    for (const option_group *g = set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++)
            nearest_offer(&nearest, o->name);
    return nearest.best
               ? bad_input(problem, path, "'%s' is not an option of %s; did you mean '%s'?", name,
                           set->command, nearest.best)
               : bad_input(problem, path,
                           "'%s' is not an option of %s; 'dcrf help %s' lists the options", name,
                           set->command, set->command);
}

/* Settings of one command can be used for another: options that it lacks are ignored. */
static bool some_command_has(const char *name) {
    const option_group *group;
    for (size_t i = 0; i < command_count; i++)
        if (find_option_named(&commands[i]->arguments, name, &group))
            return true;
    return false;
}

static bool take_entry(const char *path, const option_set *set, const char *name,
                       const json_t *value, json_t *texts, cli_problem *problem) {
    const option_group *group;
    const cli_option *option = find_option_named(set, name, &group);
    char text[TEXT_BYTES] = "";
    if (!option)
        return some_command_has(name) || unknown_name(path, name, set, problem);
    if (option->parse == parse_config)
        return bad_input(problem, path, "'config' names another file; one is enough");
    if (json_is_null(value) || (!option->form && group && json_is_false(value)))
        return true;
    const bool is_switch = !option->form && group;
    if (is_switch && !json_is_true(value))
        return bad_input(problem, path, "'%s' is a switch; give true or false", name);
    if (!is_switch && !value_text(value, text))
        return bad_input(problem, path,
                         "the value of '%s' is not a text, a number or a list of numbers", name);
    return json_object_set_new(texts, name, json_string(text)) == 0 || out_of_memory(problem, path);
}

static bool take_settings(const char *path, const option_set *set, json_t *root, json_t *texts,
                          cli_problem *problem) {
    json_t *settings = json_object_get(root, "settings"), *value;
    const char *name;
    if (!settings)
        settings = root;
    if (!json_is_object(settings))
        return bad_input(problem, path,
                         "is not an object with names of options, such as {\"spatial\": \"3,1\"}");
    json_object_foreach(settings, name, value) {
        if (!take_entry(path, set, name, value, texts, problem))
            return false;
    }
    return true;
}

bool config_parse(const uint8_t *data, size_t size, const char *path, const option_set *set,
                  json_t **texts, cli_problem *problem) {
    json_error_t error;
    *texts = NULL;
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return bad_input(problem, path, "is not JSON: line %d: %s", error.line, error.text);
    *texts = json_object();
    const bool done =
        *texts ? take_settings(path, set, root, *texts, problem) : out_of_memory(problem, path);
    json_decref(root);
    if (!done) {
        json_decref(*texts);
        *texts = NULL;
    }
    return done;
}

bool config_read(const char *path, const option_set *set, json_t **texts, cli_problem *problem) {
    file_bytes bytes;
    if (!file_read(path, &bytes, problem))
        return false;
    const bool done = config_parse(bytes.data, bytes.size, path, set, texts, problem);
    file_free(&bytes);
    return done;
}

/* ---- the record ----------------------------------------------------------------------------- */

void option_record_free(option_record *record) {
    free(record->values);
    json_decref(record->config);
    *record = (option_record){0};
}

void problem_of_config(const option_record *record, cli_problem *problem) {
    char name[64] = "";
    const char *path = option_text(record, "config");
    if (!path || strncmp(problem->text, "--", 2) != 0)
        return;
    snprintf(name, sizeof name, "%.*s",
             (int)strspn(problem->text + 2, "abcdefghijklmnopqrstuvwxyz-"), problem->text + 2);
    /* A value that comes from the file is the same string, not a copy. */
    const char *text = json_string_value(json_object_get(record->config, name));
    if (text && option_text(record, name) == text) {
        const cli_problem inner = *problem;
        bad_input(problem, path, "%s", inner.text);
        problem->exit_status = inner.exit_status;
    }
}

const char *option_text(const option_record *record, const char *name) {
    for (size_t i = 0; i < record->count; i++)
        if (strcmp(record->values[i].option->name, name) == 0)
            return record->values[i].text;
    return NULL;
}

bool option_was_given(const option_record *record, const char *name) {
    for (size_t i = 0; i < record->count; i++)
        if (strcmp(record->values[i].option->name, name) == 0)
            return record->values[i].text != record->values[i].option->fallback;
    return false;
}

/* Is this value needed to repeat the run? */
static bool is_setting(const option_value *value, const cli_option *const *left_out) {
    for (; *left_out; left_out++)
        if (value->group && value->group->options == *left_out)
            return false;
    return value->option->parse != parse_config && value->option->parse != parse_preset;
}

static json_t *value_to_json(const option_value *value) {
    const cli_option *option = value->option;
    double number;
    if (value->group && !option->form)
        return json_true();
    if (option->parse == parse_count || option->parse == parse_positive_count)
        return json_integer((json_int_t)strtoull(value->text, NULL, 10));
    if ((option->parse == parse_number || option->parse == parse_positive_number ||
         option->parse == parse_number_or_auto) &&
        parse_number_list(value->text, &number, 1))
        return json_real(number);
    cli_problem unread;
    if (option->parse == parse_fraction && parse_fraction(option, value->text, &number, &unread))
        return json_real(number);
    return json_text(value->text);
}

static void key_of(const cli_option *option, char *key, size_t bytes) {
    snprintf(key, bytes, "%s", option->name);
    for (; *key; key++)
        if (*key >= 'A' && *key <= 'Z')
            *key = (char)(*key + 'a' - 'A');
}

json_t *settings_to_json(const option_record *record, const cli_option *const *left_out) {
    json_t *root = json_object();
    for (size_t i = 0; i < record->count; i++) {
        char key[64];
        if (!is_setting(&record->values[i], left_out))
            continue;
        key_of(record->values[i].option, key, sizeof key);
        root = json_with(root, key, value_to_json(&record->values[i]));
    }
    return root;
}

/* A text quoted as one word of the shell. */
static void print_word(FILE *stream, const char *text) {
    const char *harmless =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    if (*text && strspn(text, harmless) == strlen(text)) {
        fputs(text, stream);
        return;
    }
    fputc('\'', stream);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stream);
        else
            fputc(*text, stream);
    fputc('\'', stream);
}

static void print_argument(FILE *stream, const option_value *value) {
    fputc(' ', stream);
    if (value->group)
        fprintf(stream, "--%s%s", value->option->name, value->option->form ? " " : "");
    if (!value->group || value->option->form)
        print_word(stream, value->text);
}

char *settings_to_arguments(const option_record *record, const cli_option *const *left_out) {
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    for (size_t i = 0; i < record->count; i++)
        if (!record->values[i].group)
            print_argument(stream, &record->values[i]);
    for (size_t i = 0; i < record->count; i++) {
        const option_value *value = &record->values[i];
        const char *fallback = value->option->fallback;
        const bool is_default = fallback && strcmp(fallback, value->text) == 0;
        if (value->group && is_setting(value, left_out) && !is_default)
            print_argument(stream, value);
    }
    if (fclose(stream) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}
