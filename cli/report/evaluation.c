#include "report/evaluation.h"

#include "io/json.h"
#include "io/output.h"

#include <stdlib.h>

static bool parse_void(const cli_option *option, const char *text, void *value,
                       cli_problem *problem) {
    unknown_value *number = value;
    return parse_unknown(option, text, value, problem) &&
           (number->kind == UNKNOWN_NONE || number->kind == UNKNOWN_NUMBER ||
            bad_input(problem, "--void", "'%s' is not one of %s", text, option->form));
}

const cli_option evaluation_operand_table[] = {
    {.name = "IMAGE",
     .parse = parse_input,
     .offset = offsetof(evaluation_settings, image_file),
     .help = IMAGE_OPERAND_HELP},
    {0},
};

#define LABELS_OPTION(is_required)                                                                 \
    {                                                                                              \
        "labels", 0, "FILE", NULL, is_required, parse_input,                                       \
            offsetof(evaluation_settings, labels_file),                                            \
            "the labelling, from any program: a grey or indexed picture, an integer .npy of the "  \
            "shape (H, W), or a NIfTI volume"                                                      \
    }
#define VOID_OPTION                                                                                \
    {                                                                                              \
        "void", 0, "none|VALUE", "none", false, parse_void,                                        \
            offsetof(evaluation_settings, void_number),                                            \
            "the number that marks pixels without a label; they get the label of their smallest "  \
            "unary"                                                                                \
    }

const cli_option evaluation_labels_table[] = {LABELS_OPTION(true), VOID_OPTION, {0}};
const cli_option evaluation_optional_labels_table[] = {LABELS_OPTION(false), VOID_OPTION, {0}};

const cli_option evaluation_result_table[] = {
    {"json", 0, "FILE|-", NULL, false, parse_output, offsetof(evaluation_settings, json_file),
     "the result as JSON; - writes it to the standard output, instead of the summary"},
    {0},
};

bool evaluate_labelling(const evaluation_settings *settings, double time_limit_s,
                        evaluator *evaluate, cli_problem *problem) {
    const time_frame time = time_frame_begin(time_limit_s);
    built_model built;
    uint16_t *labels = NULL;
    if (settings->json_file && !output_check(settings->json_file, problem))
        return false;
    if (!model_build(&settings->model, settings->image_file, time, &built, problem))
        return false;
    const bool done = (!settings->labels_file ||
                       model_read_labels(&built, settings->labels_file, &settings->void_number,
                                         &labels, problem) ||
                       problem_of_option(problem, "--labels")) &&
                      evaluate(settings, &built, labels, problem);
    free(labels);
    model_free(&built);
    return done;
}

bool evaluation_say(const evaluation_settings *settings, const built_model *built,
                    const evaluation_report *report, const void *found, cli_problem *problem) {
    const bool quiet = feedback_wanted(&settings->feedback) == FEEDBACK_QUIET;
    if (!quiet && !(settings->json_file && output_is_standard(settings->json_file)))
        report->print(settings, built, found);
    /* If printing fails, no file is written either. */
    return output_flush_standard(problem) &&
           (!settings->json_file ||
            json_save_and_free(settings->json_file, OUTPUT_OF_USER,
                               report->to_json(settings, built, found), problem));
}
