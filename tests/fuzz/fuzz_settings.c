/* Settings: a file is refused with a message, or yields text for options of the command only, whose
 * parsers accept the text or refuse it with a message. The two small commands here have every kind
 * of option. */
#include "args/config.h"
#include "check.h"
#include "command.h"
#include "target.h"

#include <math.h>

/* All options store their value here. */
typedef union fuzzed_value {
    const char *text;
    double number;
    size_t count;
    int choice;
    bool is_set;
} fuzzed_value;

static const cli_option operands[] = {
    {"IMAGE", 0, NULL, NULL, true, parse_text, 0, ""},
    {0},
};
static const cli_option options[] = {
    {"unary", 'u', "FILE", NULL, false, parse_text, 0, ""},
    {"spatial", 0, "SIGMA,W", NULL, false, parse_text, 0, ""},
    {"gap", 0, "G", NULL, false, parse_number, 0, ""},
    {"weight", 0, "W", NULL, false, parse_positive_number, 0, ""},
    {"seed", 0, "N", NULL, false, parse_count, 0, ""},
    {"iterations", 'n', "N", NULL, false, parse_positive_count, 0, ""},
    {"normalize", 0, "none|symmetric", NULL, false, parse_choice, 0, ""},
    {"no-polish", 0, NULL, NULL, false, parse_switch, 0, ""},
    {0},
};
static const cli_option other_options[] = {
    {"labels", 0, "FILE", NULL, false, parse_text, 0, ""},
    {"quiet", 'q', NULL, NULL, false, parse_switch, 0, ""},
    {0},
};
static const option_group groups[] = {
    {"Options", options, 0}, {"Sources", source_option_table, 0}, {0}};
static const option_group other_groups[] = {{"Options", other_options, 0}, {0}};
static const cli_command solve = {.arguments = {"solve", operands, groups}};
static const cli_command energy = {.arguments = {"energy", operands, other_groups}};

const cli_command *const commands[] = {&energy, &solve};
const size_t command_count = 2;

static void check_value(const char *name, const char *text) {
    const option_group *group;
    const cli_option *option = find_option_named(&solve.arguments, name, &group);
    fuzzed_value value = {0};
    cli_problem problem = {0, ""};
    fuzz_check(option && text && option->parse != parse_config);
    if (!option->parse(option, text, &value, &problem))
        fuzz_check_refused(&problem);
    else if (option->parse == parse_number)
        fuzz_check(isfinite(value.number));
    else if (option->parse == parse_positive_number)
        fuzz_check(isfinite(value.number) && value.number > 0);
    else if (option->parse == parse_positive_count)
        fuzz_check(value.count > 0);
    else if (option->parse == parse_choice)
        fuzz_check(value.choice == 0 || value.choice == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *texts, *again, *text;
    const char *name;
    cli_problem problem = {0, ""};
    const bool done = config_parse(data, size, "file", &solve.arguments, &texts, &problem);
    if (!done) {
        fuzz_check_refused(&problem);
        fuzz_check(!texts);
        return 0;
    }
    json_object_foreach(texts, name, text) {
        check_value(name, json_string_value(text));
    }
    fuzz_check(config_parse(data, size, "file", &solve.arguments, &again, &problem));
    fuzz_check(json_equal(texts, again));
    json_decref(texts);
    json_decref(again);
    return 0;
}
