#include "args/file_options.h"

#include "io/output.h"

#include <string.h>

/* Is the value a word of a form such as "none|slic|FILE" rather than a file? */
static bool is_word(const option_value *value) {
    const size_t length = strlen(value->text);
    for (const char *word = value->option->form; word && strchr(word, '|');
         word = strchr(word, '|') + 1)
        if (strcspn(word, "|") == length && memcmp(word, value->text, length) == 0)
            return true;
    return false;
}

static bool is_input(const option_value *value) {
    return value->option->parse == parse_config ||
           (value->option->parse == parse_input && !is_word(value));
}

/* The file of an input: without the prefix in forms such as "tree:FILE". */
static const char *input_path(const option_value *value) {
    static const char file[] = ":FILE";
    for (const char *word = value->option->form, *end; word; word = *end ? end + 1 : NULL) {
        end = word + strcspn(word, "|");
        const size_t length = (size_t)(end - word), prefix = length - (sizeof file - 2);
        if (length > sizeof file - 1 && memcmp(word + prefix - 1, file, sizeof file - 1) == 0 &&
            strncmp(word, value->text, prefix) == 0)
            return value->text + prefix;
    }
    return value->text;
}

static bool is_output(const option_value *value) {
    return value->option->parse == parse_output;
}

static bool is_folder(const option_value *value) {
    return value->option->parse == parse_folder;
}

static bool check_input(const option_value *output, const option_value *input,
                        cli_problem *problem) {
    char subject[OPTION_SUBJECT_BYTES], other[OPTION_SUBJECT_BYTES];
    option_subject(output->option, subject);
    option_subject(input->option, other);
    const char *path = input_path(input);
    if (is_output(output) && output_is_same_file(output->text, path, false))
        bad_input(problem, output->text,
                  "is the same file as %s %s, which would be replaced; give another name", other,
                  input->text);
    else if (is_folder(output) && output_folder_holds(output->text, path))
        bad_input(problem, output->text,
                  "holds %s %s, which could be replaced; choose another folder", other,
                  input->text);
    else
        return true;
    return problem_of_option(problem, subject);
}

static bool check_other_output(const option_value *output, const option_value *earlier,
                               cli_problem *problem) {
    char subject[OPTION_SUBJECT_BYTES], other[OPTION_SUBJECT_BYTES];
    if (!is_output(output) || !output_is_same_file(output->text, earlier->text, true))
        return true;
    bad_input(problem, output->text,
              "is named for two outputs: it is the same file as %s %s; give each its own",
              option_subject(earlier->option, other), earlier->text);
    return problem_of_option(problem, option_subject(output->option, subject));
}

static bool check_one(const option_record *record, size_t place, cli_problem *problem) {
    const option_value *output = &record->values[place];
    bool done = true;
    for (size_t i = 0; done && i < record->count; i++) {
        const option_value *other = &record->values[i];
        if (is_input(other))
            done = check_input(output, other, problem);
        else if (is_output(other) && i < place)
            done = check_other_output(output, other, problem);
    }
    return done;
}

bool file_options_check(const option_record *record, cli_problem *problem) {
    bool done = true;
    for (size_t i = 0; done && i < record->count; i++)
        if (is_output(&record->values[i]) || is_folder(&record->values[i]))
            done = check_one(record, i, problem);
    return done;
}
