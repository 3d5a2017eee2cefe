/* The image and the unary energies of a problem that is solved in tiles: read by windows, so
 * that neither is ever in memory as a whole. */
#ifndef DCRF_CLI_LARGE_INPUTS_H
#define DCRF_CLI_LARGE_INPUTS_H

#include "io/raster.h"
#include "model/model_options.h"

typedef struct large_inputs {
    const model_options *options;
    const char *image_file;
    cli_image image; /* sizes and geometry; its colours are below */
    raster colours;
    raster numbers;      /* the array, or the label map */
    void *own_numbers;   /* of a NIfTI array or map, which is read whole */
    bool are_energies;   /* the numbers are already energies, whatever their source */
    bool holds_integers; /* the array holds integers */
    bool is_map_rounded; /* its format rounds numbers */
    size_t labels;
    unary_facts facts; /* for an array, known after large_sample_take */
    dcrf_unary_kind kind;
} large_inputs;

/* Can tiles handle these options? If not, the error names the option. */
bool large_inputs_check(const model_options *options, cli_problem *problem);

/* Open the files. Compressed pictures are decoded into a temporary file beside the output
 * `folder_of` (NULL: in the default place). */
bool large_inputs_open(const model_options *options, const char *image_file, const char *folder_of,
                       large_inputs *inputs, cli_problem *problem);
void large_inputs_close(large_inputs *inputs);

/* The colours of a window, the channels of a pixel next to each other. */
bool large_inputs_colours(const large_inputs *inputs, const raster_window *window, float *colours,
                          cli_problem *problem);

/* The numbers of an array in a window, unconverted, the labels of a pixel next to each other. */
bool large_inputs_numbers(const large_inputs *inputs, const raster_window *window, float *numbers,
                          cli_problem *problem);

/* The energies of a window; the kind of an array must be known. */
bool large_inputs_energies(const large_inputs *inputs, const raster_window *window, float *energies,
                           cli_problem *problem);

/* A library error about a window, whose positions are relative to the window's origin. Returns
 * false. */
bool large_window_problem(cli_problem *problem, const char *file, const raster_window *window,
                          const dcrf_error *error);

#endif
