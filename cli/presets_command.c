/* dcrf presets: the settings available through --preset. */
#include "args/presets.h"
#include "command.h"

typedef struct presets_settings {
    bool unused; /* C does not allow an empty struct */
} presets_settings;

static bool run_presets(const void *settings, cli_problem *problem) {
    (void)settings, (void)problem;
    for (size_t i = 0; i < preset_count; i++) {
        preset_value values[PRESET_VALUES_MAX];
        const size_t count = preset_values(&presets[i], values);
        printf("%s\n  %s; published with %s\n ", presets[i].name, presets[i].origin,
               presets[i].published);
        for (size_t k = 0; k < count; k++)
            printf(" --%s %s", values[k].name, values[k].text);
        printf("\n");
    }
    return true;
}

static const cli_option operands[] = {{0}};
static const option_group groups[] = {{0}};

const cli_command presets_command = {
    {"presets", operands, groups},
    "list the presets",
    "Lists the presets: kernels and cliques that others published, with their weights converted to "
    "the energy used here, which counts a pair of pixels in both orders. The method is up to you; "
    "the output says which one each was published with.",
    sizeof(presets_settings),
    run_presets,
};
