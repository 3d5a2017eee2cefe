/* Colours for labels. */
#ifndef DCRF_CLI_MODEL_PALETTE_H
#define DCRF_CLI_MODEL_PALETTE_H

#include "model/classes.h"

#include <stddef.h>
#include <stdint.h>

#define PALETTE_COLOURS 256

typedef struct palette {
    uint8_t rgb[PALETTE_COLOURS][3];
} palette;

/* The default: label i has colour i, labels beyond begin again. */
bool palette_default(palette *colours, cli_problem *problem);

/* Replace the first colours by those of a text file, one per line, "#rrggbb" or "R G B" from 0 to
 * 255 with or without a name after it; palettes of GIMP are such files. A line may also be "LABEL
 * NAME R G B". Settings that the page saved are a palette, too: their "labels" have colours and
 * names. Where every colour has a name, `names` (which may be NULL) is filled with them, to
 * be freed. */
bool palette_read(const char *path, palette *colours, class_names *names, cli_problem *problem);

/* The same from memory; `file` is for messages. */
bool palette_parse(const uint8_t *data, size_t size, const char *file, palette *colours,
                   class_names *names, cli_problem *problem);

#endif
