/* The files that solve writes. */
#ifndef DCRF_CLI_SOLVE_OUTPUTS_H
#define DCRF_CLI_SOLVE_OUTPUTS_H

#include "io/output.h"
#include "model/palette.h"
#include "report/sweep.h"
#include "solution.h"

typedef enum label_format { LABELS_INDEXED = 0, LABELS_GREY } label_format;

typedef struct solve_outputs {
    /* NULL: not wanted */
    const char *labels_file;
    const char *marginals_file;
    const char *overlay_file;
    const char *boundaries_file;
    const char *confidence_file;
    const char *proof_file;
    const char *certificate_file;
    const char *palette_file;
    int label_format; /* label_format */
    const char *trace_file;
    const char *json_file;
    const char *report_file;
    bool explain; /* in the summary */
} solve_outputs;

extern const cli_option solve_output_table[];

/* Options that a repetition need not have: where results go, and what is said meanwhile. */
extern const cli_option *const no_part_of_settings[];

/* What the outputs are made of. */
typedef struct solve_results {
    const model_options *model;
    const built_model *built;
    const solution *found;
    const option_record *record;
    const char *explanation;     /* for the report */
    const strength_sweep *sweep; /* labellings at other strengths, for the report */
    const palette *colours;
    bool is_summary_wanted; /* on the standard output */
} solve_results;

/* Can they be written? For use before anything is read, and before the work. */
bool solve_outputs_check(const solve_outputs *outputs, cli_problem *problem);
bool solve_outputs_fit(const solve_outputs *outputs, const cli_image *image, cli_problem *problem);

/* The colours of the labels, and their names where the palette has them and nothing else named
 * them.
 */
bool solve_outputs_colours(const solve_outputs *outputs, built_model *built, palette *colours,
                           cli_problem *problem);

/* The labels of one frame of a video, a picture in the folder of the labels. */
bool solve_outputs_write_frame(const solve_outputs *outputs, const cli_image *video,
                               const palette *colours, size_t frame, const uint16_t *labels,
                               cli_problem *problem);

/* Does one of them go to the standard output? */
bool solve_outputs_take_stdout(const solve_outputs *outputs);

/* Print the summary and write all of them, or none. */
bool solve_outputs_write(const solve_outputs *outputs, const solve_results *results,
                         cli_problem *problem);

/* The same where what belongs to pixels is already written into `files`, and only the JSON result
 * and the summary are missing. */
bool solve_outputs_finish(const solve_outputs *outputs, const solve_results *results,
                          cli_outputs *files, cli_problem *problem);

#endif
