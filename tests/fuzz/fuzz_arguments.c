/* Arguments of a command, one per line: refused with a message, or settings within their bounds
 * whose text form parses to the same settings. */
#include "check.h"
#include "command.h"
#include "target.h"

#include <math.h>

#define ARGUMENTS_MAX 64

typedef struct fuzzed_settings {
    const char *image;
    const char *unary;
    double gap;
    double weight;
    size_t seed;
    size_t iterations;
    int normalize;
    bool no_polish;
} fuzzed_settings;

#define PLACE(member) offsetof(fuzzed_settings, member)
static const cli_option operands[] = {
    {"IMAGE", 0, NULL, NULL, true, parse_text, PLACE(image), ""},
    {0},
};
static const cli_option options[] = {
    {"unary", 'u', "FILE", NULL, false, parse_text, PLACE(unary), ""},
    {"gap", 0, "G", "0.5", false, parse_number, PLACE(gap), ""},
    {"weight", 0, "W", "1", false, parse_positive_number, PLACE(weight), ""},
    {"seed", 0, "N", "7", false, parse_count, PLACE(seed), ""},
    {"iterations", 'n', "N", "3", false, parse_positive_count, PLACE(iterations), ""},
    {"normalize", 0, "none|symmetric", "none", false, parse_choice, PLACE(normalize), ""},
    {"no-polish", 0, NULL, NULL, false, parse_switch, PLACE(no_polish), ""},
    {0},
};
static const option_group groups[] = {{"Options", options, 0}, {0}};
static const cli_command solve = {.arguments = {"solve", operands, groups}};
const cli_command *const commands[] = {&solve};
const size_t command_count = 1;

static void check_settings(const fuzzed_settings *found) {
    fuzz_check(found->image && isfinite(found->gap) && isfinite(found->weight));
    fuzz_check(found->weight > 0 && found->iterations > 0);
    fuzz_check(found->normalize == 0 || found->normalize == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 1, 1), *arguments[ARGUMENTS_MAX];
    int count = 0;
    fuzzed_settings found = {0};
    option_record record = {0};
    cli_problem problem = {0, ""};
    bool help = false;
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    for (char *line = text; line && count < ARGUMENTS_MAX; count++) {
        char *end = strchr(line, '\n');
        arguments[count] = line;
        if (end)
            *end = '\0';
        line = end ? end + 1 : NULL;
    }
    if (!parse_arguments(&solve.arguments, count, arguments, &found, &record, &help, &problem)) {
        fuzz_check_refused(&problem);
    } else if (!help) {
        static const cli_option *const nothing_left_out[] = {NULL};
        check_settings(&found);
        char *again = settings_to_arguments(&record, nothing_left_out);
        fuzz_check(again != NULL);
        free(again);
    }
    option_record_free(&record);
    free(text);
    return 0;
}
