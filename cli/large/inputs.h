/* The image and the unary energies of a problem that is solved in tiles: read by windows, so that
 * neither is in memory as a whole. */
#ifndef DCRF_CLI_LARGE_INPUTS_H
#define DCRF_CLI_LARGE_INPUTS_H

#include "io/raster.h"
#include "model/model_options.h"

typedef struct large_inputs {
    const model_options *options;
    const char *image_file;
    cli_image image; /* sizes and geometry; its colours are those below */
    raster colours;
    raster numbers;      /* the array, or the label map */
    void *own_numbers;   /* of a NIfTI array or map, which is read whole */
    bool are_energies;   /* the numbers are what is to be minimized, whatever they come from */
    bool holds_integers; /* an array of them */
    bool is_map_rounded; /* by its format */
    size_t labels;
    unary_facts facts; /* of an array when large_sample_take has looked at it */
    dcrf_unary_kind kind;
} large_inputs;

/* Can tiles do what these options ask for? What they cannot is refused with the option's name. */
bool large_inputs_check(const model_options *options, cli_problem *problem);

/* Open the files. Compressed pictures are decoded into a temporary file beside the output
 * `folder_of` (NULL: in the usual place). */
bool large_inputs_open(const model_options *options, const char *image_file, const char *folder_of,
                       large_inputs *inputs, cli_problem *problem);
void large_inputs_close(large_inputs *inputs);

/* The colours of a window, the channels of a pixel next to each other. */
bool large_inputs_colours(const large_inputs *inputs, const raster_window *window, float *colours,
                          cli_problem *problem);

/* The numbers of an array in a window as they are, the labels of a pixel next to each other. */
bool large_inputs_numbers(const large_inputs *inputs, const raster_window *window, float *numbers,
                          cli_problem *problem);

/* Its energies; the kind of an array must be known. */
bool large_inputs_energies(const large_inputs *inputs, const raster_window *window, float *energies,
                           cli_problem *problem);

/* An error of the library about a window, whose places count from where it begins. Returns false.
 */
bool large_window_problem(cli_problem *problem, const char *file, const raster_window *window,
                          const dcrf_error *error);

#endif
