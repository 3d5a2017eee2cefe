/* Palettes: a file is refused with a message, or gives colours. */
#include "model/palette.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    palette first, again;
    cli_problem problem = {0, ""};
    memset(&first, 0, sizeof first);
    memset(&again, 0, sizeof again);
    class_names names = {0};
    const bool done = palette_parse(data, size, "file", &first, &names, &problem);
    for (size_t i = 0; i < names.count; i++)
        if (names.lines[i][0] == '\0')
            abort();
    lines_free(&names);
    if (done != palette_parse(data, size, "file", &again, NULL, &problem) ||
        (done && memcmp(&first, &again, sizeof first) != 0))
        abort();
    if (!done && (problem.exit_status == 0 || problem.text[0] == '\0'))
        abort();
    return 0;
}
