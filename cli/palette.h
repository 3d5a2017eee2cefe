/* Colours for labels. */
#ifndef DCRF_CLI_PALETTE_H
#define DCRF_CLI_PALETTE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

#define PALETTE_COLOURS 256

typedef struct palette {
    uint8_t rgb[PALETTE_COLOURS][3];
} palette;

/* The default: label i has colour i, labels beyond begin again. */
void palette_default(palette *colours);

/* Replace the first colours by those of a text file, one a line, "#rrggbb" or "R G B" from 0 to 255
 * with or without a name after it; palettes of GIMP are such files. A line may also be "LABEL NAME
 * R G B". */
bool palette_read(const char *path, palette *colours, cli_problem *problem);

/* The same from memory; `file` is for messages. */
bool palette_parse(const uint8_t *data, size_t size, const char *file, palette *colours,
                   cli_problem *problem);

#endif
