#include "dataset/summary_files.h"

#include "dataset/batch_report.h"
#include "dataset/curves.h"
#include "dataset/picture_grid.h"
#include "io/json.h"
#include "io/output.h"

#include <stdlib.h>

typedef struct summary_sources {
    const store *results;
    const method_list *methods;
    const summary *found;
    const curve_sheet *curves;
    size_t pictures;
} summary_sources;

typedef bool summary_writer(FILE *stream, const char *file, const summary_sources *from,
                            cli_problem *problem);

/* ---- one writer per file -------------------------------------------------------------------- */

static bool write_csv(FILE *stream, const char *file, const summary_sources *from,
                      cli_problem *problem) {
    (void)file, (void)problem;
    summary_write_csv(stream, from->found);
    return true;
}

static bool write_json(FILE *stream, const char *file, const summary_sources *from,
                       cli_problem *problem) {
    return json_write_and_free(stream, file, summary_to_json(from->found), problem);
}

static bool write_markdown(FILE *stream, const char *file, const summary_sources *from,
                           cli_problem *problem) {
    (void)file, (void)problem;
    summary_write_markdown(stream, from->found);
    return true;
}

static bool write_times(FILE *stream, const char *file, const summary_sources *from,
                        cli_problem *problem) {
    (void)file, (void)problem;
    summary_write_times(stream, from->found);
    return true;
}

static bool write_curves(FILE *stream, const char *file, const summary_sources *from,
                         cli_problem *problem) {
    (void)file, (void)problem;
    curves_write(stream, from->curves, true);
    return true;
}

static bool write_pictures(FILE *stream, const char *file, const summary_sources *from,
                           cli_problem *problem) {
    return picture_grid_write(stream, file, from->found, from->results, from->methods,
                              from->pictures, true, problem);
}

static bool write_report(FILE *stream, const char *file, const summary_sources *from,
                         cli_problem *problem) {
    return batch_report_write(stream, file, from->found, from->results, from->methods, from->curves,
                              from->pictures, problem);
}

static const struct {
    const char *name;
    summary_writer *write;
} summary_files[] = {
    {"summary.csv", write_csv},    {"summary.json", write_json}, {"summary.md", write_markdown},
    {"times.csv", write_times},    {"curves.svg", write_curves}, {"pictures.svg", write_pictures},
    {"report.html", write_report},
};
#define SUMMARY_FILES (sizeof summary_files / sizeof summary_files[0])

/* ---- all of them ---------------------------------------------------------------------------- */

static bool write_files(char *const *paths, const summary_sources *from, cli_problem *problem) {
    cli_outputs outputs = {.place = OUTPUT_IN_STORE};
    bool done = true;
    for (size_t i = 0; done && i < SUMMARY_FILES; i++) {
        FILE *stream;
        done = output_begin(&outputs, paths[i], &stream, problem) &&
               summary_files[i].write(stream, paths[i], from, problem);
    }
    done = done && outputs_commit(&outputs, problem);
    outputs_discard(&outputs);
    return done;
}

bool summary_write_all(const store *results, const method_list *methods, const summary *found,
                       size_t pictures, size_t curves, cli_problem *problem) {
    curve_sheet sheet = {0};
    const summary_sources from = {results, methods, found, &sheet, pictures};
    char *paths[SUMMARY_FILES] = {NULL};
    bool done = curves_read(&sheet, found, results, methods, curves);
    for (size_t i = 0; done && i < SUMMARY_FILES; i++) {
        paths[i] = store_file(results, summary_files[i].name);
        done = paths[i] != NULL;
    }
    done = done ? write_files(paths, &from, problem) : out_of_memory(problem, found->data->folder);
    for (size_t i = 0; i < SUMMARY_FILES; i++)
        free(paths[i]);
    curves_free(&sheet);
    return done;
}
