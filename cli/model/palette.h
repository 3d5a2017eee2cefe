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

/* The default: label i has colour i; the colours repeat if there are more labels. */
bool palette_default(palette *colours, cli_problem *problem);

/* Replace the first colours by those of a text file, one per line: "#rrggbb" or "R G B" from 0
 * to 255, optionally followed by a name, as in GIMP palettes. A line may also be "LABEL NAME R G
 * B". Settings saved by the web page are accepted too: their "labels" have colours and names. If
 * every colour has a name, `names` (which may be NULL) receives the names; the caller frees
 * them. */
bool palette_read(const char *path, palette *colours, class_names *names, cli_problem *problem);

/* The same from memory; `file` is for messages. */
bool palette_parse(const uint8_t *data, size_t size, const char *file, palette *colours,
                   class_names *names, cli_problem *problem);

#endif
