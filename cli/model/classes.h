/* Names of the labels. */
#ifndef DCRF_CLI_MODEL_CLASSES_H
#define DCRF_CLI_MODEL_CLASSES_H

#include "io/lines.h"

#include <jansson.h>

/* The name of label i is line i; labels without a name go by their number. */
typedef line_list class_names;

/* "sky", or "label 3" if it has no name; safe to print. */
#define CLASS_TEXT_BYTES 128
const char *class_text(const class_names *names, size_t label, char text[CLASS_TEXT_BYTES]);

/* "label 3 (sky)", or "label 3". */
const char *class_text_with_number(const class_names *names, size_t label,
                                   char text[CLASS_TEXT_BYTES]);

/* The names as an array; NULL: out of memory. */
json_t *class_names_to_json(const class_names *names);

/* Are there as many names as labels, or none? `file` is where they came from. */
bool classes_check(const class_names *names, const char *file, size_t labels, cli_problem *problem);

#endif
