#include "io/json.h"

bool json_write_and_free(FILE *stream, const char *file, json_t *root, cli_problem *problem) {
    if (!root)
        return out_of_memory(problem, file);
    const bool written = json_dumpf(root, stream, JSON_INDENT(2)) == 0;
    json_decref(root);
    /* If the stream failed, closing it gives a better message. */
    if (!written && !ferror(stream))
        return out_of_memory(problem, file);
    fputc('\n', stream);
    return true;
}

bool json_save_and_free(const char *file, output_place place, json_t *root, cli_problem *problem) {
    cli_outputs outputs = {.place = place};
    FILE *stream;
    if (!output_begin(&outputs, file, &stream, problem)) {
        json_decref(root);
        outputs_discard(&outputs);
        return false;
    }
    const bool done =
        json_write_and_free(stream, file, root, problem) && outputs_commit(&outputs, problem);
    outputs_discard(&outputs);
    return done;
}
