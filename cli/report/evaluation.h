/* Shared by the commands that evaluate a given labelling: energy, certify and verify. */
#ifndef DCRF_CLI_REPORT_EVALUATION_H
#define DCRF_CLI_REPORT_EVALUATION_H

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
extern const cli_option evaluation_labels_table[]; /* --labels, which is required, and --void */
extern const cli_option evaluation_optional_labels_table[]; /* the same, but --labels is optional */
extern const cli_option evaluation_result_table[];

/* The groups after those of the labelling, for a settings struct of type `settings` that begins
 * with evaluation_settings. */
#define EVALUATION_OPTION_GROUPS                                                                   \
    {"Results", evaluation_result_table, 0}, MODEL_OPTION_GROUPS(evaluation_settings, model), {    \
        "Settings from elsewhere", source_option_table, offsetof(evaluation_settings, sources)     \
    }

/* A command's own work; `labels` is NULL if none are given. */
typedef bool evaluator(const evaluation_settings *settings, const built_model *built,
                       const uint16_t *labels, cli_problem *problem);

/* Build the model, read the labels, and call `evaluate`; a limit of 0 means none. */
bool evaluate_labelling(const evaluation_settings *settings, double time_limit_s,
                        evaluator *evaluate, cli_problem *problem);

/* The findings, as text and as JSON (NULL if out of memory). */
typedef struct evaluation_report {
    void (*print)(const evaluation_settings *settings, const built_model *built, const void *found);
    json_t *(*to_json)(const evaluation_settings *settings, const built_model *built,
                       const void *found);
} evaluation_report;

/* Report them as the settings ask. */
bool evaluation_say(const evaluation_settings *settings, const built_model *built,
                    const evaluation_report *report, const void *found, cli_problem *problem);

#endif
