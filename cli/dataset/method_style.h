/* The style of methods in plots: a colour per solver, and shades of it for variants. It is the
 * same in all plots, and suitable for colour-blind readers. */
#ifndef DCRF_CLI_DATASET_METHOD_STYLE_H
#define DCRF_CLI_DATASET_METHOD_STYLE_H

#include "dataset/methods.h"

#include <stdio.h>

/* Rules for <style>: inside `.scope`, elements of class m0 have the style of the first method:
 * the stroke of a path, the fill of a dot (class end), the background of a bar. */
void method_write_styles(FILE *stream, const char *scope, const method_list *methods);

#endif
