#include "dataset/summary_files.h"

#include "io/json.h"
#include "io/output.h"

#include <stdlib.h>

static bool begin(const store *s, cli_outputs *files, const char *name, char **path, FILE **stream,
                  cli_problem *problem) {
    *path = store_file(s, name);
    return *path ? output_begin(files, *path, stream, problem) : out_of_memory(problem, name);
}

bool summary_write_all(const store *s, const dataset *data, const method_list *methods,
                       const summary *found, size_t picture_rows, size_t curve_rows,
                       cli_problem *problem) {
    (void)data, (void)methods, (void)picture_rows, (void)curve_rows;
    cli_outputs files = {.count = 0};
    char *paths[4] = {NULL};
    FILE *stream;
    bool done = begin(s, &files, "summary.csv", &paths[0], &stream, problem);
    if (done)
        summary_write_csv(stream, found);
    done = done && begin(s, &files, "summary.md", &paths[1], &stream, problem);
    if (done)
        summary_write_markdown(stream, found);
    done = done && begin(s, &files, "times.csv", &paths[2], &stream, problem);
    if (done)
        summary_write_times(stream, found);
    done = done && begin(s, &files, "summary.json", &paths[3], &stream, problem) &&
           json_write_and_free(stream, paths[3], summary_to_json(found), problem) &&
           outputs_commit(&files, problem);
    outputs_discard(&files);
    for (size_t i = 0; i < 4; i++)
        free(paths[i]);
    return done;
}
