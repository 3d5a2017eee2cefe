/* What the commands share that judge a labelling of any origin: energy, certify and verify. */
#ifndef DCRF_CLI_REPORT_JUDGED_H
#define DCRF_CLI_REPORT_JUDGED_H

#include "model/model_options.h"
#include "progress.h"

typedef struct judged_settings {
    const char *image_file;
    const char *labels_file; /* NULL: none */
    unknown_value void_number;
    const char *json_file; /* NULL: none */
    source_options sources;
    feedback_options feedback;
    model_options model;
} judged_settings;

extern const cli_option judged_operand_table[];
extern const cli_option judged_labels_table[];          /* --labels, which is needed, and --void */
extern const cli_option judged_optional_labels_table[]; /* the same, but need not be there */
extern const cli_option judged_result_table[];

/* The groups behind those of the labelling, for a settings struct of type `settings` that begins
 * with judged_settings. */
#define JUDGED_OPTION_GROUPS                                                                       \
    {"Results", judged_result_table, 0}, MODEL_OPTION_GROUPS(judged_settings, model), {            \
        "Settings from elsewhere", source_option_table, offsetof(judged_settings, sources)         \
    }

/* A command's own work; `labels` is NULL where none are given. */
typedef bool judging(const judged_settings *settings, const built_model *built,
                     const uint16_t *labels, cli_problem *problem);

/* Build the model, read the labels, and let `judge` do the rest; a limit of 0 is none. */
bool judge_labelling(const judged_settings *settings, double time_limit_s, judging *judge,
                     cli_problem *problem);

/* What was found, in words and as JSON (NULL when memory is out). */
typedef struct judged_report {
    void (*print)(const judged_settings *settings, const built_model *built, const void *found);
    json_t *(*to_json)(const judged_settings *settings, const built_model *built,
                       const void *found);
} judged_report;

/* Say it where and as the settings ask for. */
bool judged_say(const judged_settings *settings, const built_model *built,
                const judged_report *report, const void *found, cli_problem *problem);

#endif
