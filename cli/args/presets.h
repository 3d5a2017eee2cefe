/* Published settings, by name. */
#ifndef DCRF_CLI_ARGS_PRESETS_H
#define DCRF_CLI_ARGS_PRESETS_H

#include "problem.h"

#include <stddef.h>

typedef struct cli_preset {
    const char *name;
    const char *origin;    /* who uses it, and with what */
    const char *published; /* the method that it was published with */
    /* Values of options, as on the command line. */
    const char *normalize;
    const char *spatial;
    const char *bilateral;
    const char *min_region; /* NULL: no cliques */
    const char *gamma;
    const char *eta;
    const char *compatibility; /* NULL: Potts */
} cli_preset;

extern const cli_preset presets[];
extern const size_t preset_count;

typedef struct preset_value {
    const char *name; /* of an option */
    const char *text;
} preset_value;

#define PRESET_VALUES_MAX 8

/* The options that a preset sets. */
size_t preset_values(const cli_preset *preset, preset_value values[PRESET_VALUES_MAX]);

/* NULL and a problem if there is no preset of that name. */
const cli_preset *find_preset(const char *name, cli_problem *problem);

#endif
