/* Unary energies, from one of three sources: an array, a label image with a confidence, or
 * scribbles. */
#ifndef DCRF_CLI_UNARY_H
#define DCRF_CLI_UNARY_H

#include "options.h"
#include "pixel_array.h"

#include <stdint.h>

/* Which number of a map means that nothing is known there. */
typedef struct unknown_value {
    enum { UNKNOWN_AUTO, UNKNOWN_NONE, UNKNOWN_NUMBER, UNKNOWN_COLOUR } kind;
    int32_t value; /* a colour: red * 65536 + green * 256 + blue */
} unknown_value;

typedef struct unary_options {
    const char *array_file;
    double scale; /* 0: not given */
    int kind;     /* unary_kind */
    int layout;   /* array_layout */
    const char *prior_file;
    double confidence;
    size_t label_count; /* of the prior; 0: as many as it has */
    unknown_value prior_unknown;
    const char *scribbles_file;
    unknown_value scribble_unknown;
} unary_options;

typedef enum unary_kind { UNARY_ENERGIES = 0, UNARY_PROBABILITIES, UNARY_LOGITS } unary_kind;

extern const cli_option unary_option_table[];

/* Exactly one source must be given; for use before any file is read. */
bool unary_check_options(const unary_options *options, cli_problem *problem);

/* The file that the energies come from, for messages. */
const char *unary_file(const unary_options *options);

/* Energies over the image, one channel a label. NaN and infinity of the file pass. */
bool unary_read(const unary_options *options, const cli_image *image, pixel_array *unary,
                cli_problem *problem);

/* The two sources that are maps (unary_maps.c). */
bool unary_from_prior(const unary_options *options, const cli_image *image, pixel_array *unary,
                      cli_problem *problem);
bool unary_from_scribbles(const unary_options *options, const cli_image *image, pixel_array *unary,
                          cli_problem *problem);

#endif
