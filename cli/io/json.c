#include "io/json.h"

bool json_write_and_free(FILE *stream, const char *file, json_t *root, cli_problem *problem) {
    if (!root)
        return out_of_memory(problem, file);
    const bool written = json_dumpf(root, stream, JSON_INDENT(2)) == 0;
    json_decref(root);
    /* A stream that failed tells more when it is closed. */
    if (!written && !ferror(stream))
        return out_of_memory(problem, file);
    fputc('\n', stream);
    return true;
}
