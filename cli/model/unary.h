/* Unary energies, from one of three sources: an array, a label image with a confidence, or
 * scribbles. */
#ifndef DCRF_CLI_MODEL_UNARY_H
#define DCRF_CLI_MODEL_UNARY_H

#include "args/options.h"
#include "io/picture_palette.h"
#include "model/pixel_array.h"

#include <dcrf/masks.h>
#include <dcrf/solver.h>
#include <dcrf/unary.h>
#include <stdint.h>
#include <stdio.h>

/* Which number of a map means unknown. */
typedef struct unknown_value {
    enum { UNKNOWN_AUTO, UNKNOWN_NONE, UNKNOWN_NUMBER, UNKNOWN_COLOUR } kind;
    int32_t value; /* or a colour: red * 65536 + green * 256 + blue */
} unknown_value;
option_parser parse_unknown; /* unknown_value */

typedef struct unary_options {
    const char *array_file;
    double scale; /* 0: not given */
    int kind;     /* dcrf_unary_kind */
    int layout;   /* array_layout */
    const char *prior_file;
    double confidence;  /* 0: energies from borders and colours */
    size_t label_count; /* of the prior; 0: as many as it holds */
    unknown_value prior_unknown;
    const char *prior_confidence_file; /* the map's confidence per pixel */
    const char *prior_sure_file;       /* where the map's labels are kept */
    const char *scribbles_file;
    unknown_value scribble_unknown;
    const char *classes_file;
    bool in_dataset; /* kind and scale come from a data set's description, not from options */
} unary_options;

/* For pictures solved tile by tile, for which the whole map is never in memory at once. */
#define USUAL_CONFIDENCE 0.7

/* What an array or a map was found to be, for reports. */
typedef struct unary_facts {
    dcrf_unary_kind kind; /* DCRF_UNARY_AUTO: it was not an array */
    bool is_recognized;   /* the kind was not given */
    char reason[DCRF_UNARY_REASON_BYTES];
    bool is_foreground;      /* an array of one label, treated as two */
    dcrf_mask_kind map_kind; /* of a label map */
    bool is_left_rough;      /* a label map with USUAL_CONFIDENCE, whose borders are not refined */
    uint8_t palette[PICTURE_PALETTE_MAX][3]; /* of a label map that has one */
    size_t palette_count;                    /* 0: no palette */
    bool is_enlarged;
    size_t size[DCRF_MAX_AXES]; /* before it was enlarged */
} unary_facts;

extern const cli_option unary_option_table[];

/* Exactly one source must be given. For use before any file is read. */
bool unary_check_options(const unary_options *options, cli_problem *problem);

/* The option and the file that the energies come from, for messages. */
const char *unary_option(const unary_options *options);
const char *unary_file(const unary_options *options);

/* Does the source fit the photograph in this file? Uses headers only, before anything is
 * decoded. */
bool unary_check_size(const unary_options *options, const char *image_file, cli_problem *problem);

/* Energies over the image, one channel per label; for scribbles see scribbles.h. NaN and
 * infinity among energies are accepted. `facts` may be NULL. */
bool unary_read(const unary_options *options, const cli_image *image, pixel_array *unary,
                unary_facts *facts, cli_problem *problem);

/* The energies of one video frame, from the array of the same name in a folder; the caller frees
 * *energies. *labels is 0 before the first frame; the kind found for the first array holds for
 * all. */
bool unary_read_frame(const unary_options *options, const cli_image *video, size_t index,
                      const cli_image *frame, size_t *labels, unary_facts *facts, float **energies,
                      cli_problem *problem);

/* The steps of reading an array: check that it has a label axis, and determine the kind of its
 * numbers, for which any sample of its pixels will do. */
bool unary_check_array(const unary_options *options, const pixel_array *unary,
                       cli_problem *problem);
bool unary_resolve_kind(const unary_options *options, const pixel_array *unary,
                        dcrf_unary_kind *kind, unary_facts *facts, cli_problem *problem);

/* Lattice vertices per pixel of photographs with grain. */
#define USUAL_VERTICES 2.0

/* Approximate memory for solving a whole image, without the program itself. */
double bytes_of_whole(dcrf_method method, double pixels, size_t labels, size_t channels,
                      double vertices);

/* Is there enough memory for a model with this many labels? For use before any is allocated. */
bool unary_check_room(const cli_image *image, size_t labels, const char *file,
                      cli_problem *problem);

/* One line for people, if there is something to say; JSON for programs (NULL: out of memory). */
void unary_facts_print(FILE *stream, const unary_facts *facts);
json_t *unary_facts_to_json(const unary_facts *facts);

/* Energies from a label map (prior/map.c). */
bool unary_from_prior(const unary_options *options, const cli_image *image, pixel_array *unary,
                      unary_facts *facts, cli_problem *problem);

#endif
