/* What the commands share that judge a labelling of any origin: energy, certify and verify. */
#ifndef DCRF_CLI_REPORT_JUDGED_H
#define DCRF_CLI_REPORT_JUDGED_H

#include "model/model_options.h"
#include "progress.h"

typedef struct evaluation_settings {
    const char *image_file;
    const char *labels_file; /* NULL: none */
    unknown_value void_number;
    const char *json_file; /* NULL: none */
    source_options sources;
    feedback_options feedback;
    model_options model;
} evaluation_settings;

extern const cli_option evaluation_operand_table[];
extern const cli_option evaluation_labels_table[]; /* --labels, which is needed, and --void */
extern const cli_option evaluation_optional_labels_table[]; /* the same, but need not be there */
extern const cli_option evaluation_result_table[];

/* The groups behind those of the labelling, for a settings struct of type `settings` that begins
 * with evaluation_settings. */
#define EVALUATION_OPTION_GROUPS                                                                   \
    {"Results", evaluation_result_table, 0}, MODEL_OPTION_GROUPS(evaluation_settings, model), {    \
        "Settings from elsewhere", source_option_table, offsetof(evaluation_settings, sources)     \
    }

/* A command's own work; `labels` is NULL where none are given. */
typedef bool evaluator(const evaluation_settings *settings, const built_model *built,
                       const uint16_t *labels, cli_problem *problem);

/* Build the model, read the labels, and let `judge` do the rest; a limit of 0 is none. */
bool judge_labelling(const evaluation_settings *settings, double time_limit_s, evaluator *judge,
                     cli_problem *problem);

/* What was found, in words and as JSON (NULL when memory is out). */
typedef struct evaluation_report {
    void (*print)(const evaluation_settings *settings, const built_model *built, const void *found);
    json_t *(*to_json)(const evaluation_settings *settings, const built_model *built,
                       const void *found);
} evaluation_report;

/* Say it where and as the settings ask for. */
bool evaluation_say(const evaluation_settings *settings, const built_model *built,
                    const evaluation_report *report, const void *found, cli_problem *problem);

#endif
