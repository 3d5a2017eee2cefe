/* The files that solve writes. */
#ifndef DCRF_CLI_SOLVE_OUTPUTS_H
#define DCRF_CLI_SOLVE_OUTPUTS_H

#include "io/output.h"
#include "model/palette.h"
#include "report/sweep.h"
#include "solution.h"

typedef enum label_format { LABELS_INDEXED = 0, LABELS_GREY } label_format;

typedef struct solve_outputs {
    /* NULL: not requested */
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

/* Options that repeating a run does not need: where results go, and what is printed meanwhile. */
extern const cli_option *const no_part_of_settings[];

/* The inputs of the outputs. */
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

/* Can they be written? Call this before anything is read or computed. */
bool solve_outputs_check(const solve_outputs *outputs, cli_problem *problem);
bool solve_outputs_fit(const solve_outputs *outputs, const cli_image *image, cli_problem *problem);

/* The colours of the labels, and their names if the palette has them and no other source does. */
bool solve_outputs_colours(const solve_outputs *outputs, built_model *built, palette *colours,
                           cli_problem *problem);

/* Write the labels of one video frame as a picture in the labels' folder. */
bool solve_outputs_write_frame(const solve_outputs *outputs, const cli_image *video,
                               const palette *colours, size_t frame, const uint16_t *labels,
                               cli_problem *problem);

/* Does anything need the colours of the image once there is a model? */
bool solve_outputs_need_image(const solve_outputs *outputs);

/* Does one of them go to standard output? */
bool solve_outputs_take_stdout(const solve_outputs *outputs);

/* Print the summary and write all files, or none. */
bool solve_outputs_write(const solve_outputs *outputs, const solve_results *results,
                         cli_problem *problem);

/* The same if the per-pixel outputs are already in `files`, and only the JSON result and the
 * summary are missing. */
bool solve_outputs_finish(const solve_outputs *outputs, const solve_results *results,
                          cli_outputs *files, cli_problem *problem);

#endif
