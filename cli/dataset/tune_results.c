#include "dataset/tune_results.h"

#include "dataset/parameters.h"
#include "dataset/search_plot.h"
#include "dataset/tuner.h"
#include "io/json.h"
#include "io/output.h"
#include "report/number_text.h"

#include <math.h>
#include <stdlib.h>

#define PATH_BYTES 4096

static const search_space *space_of(const tune_results *r) {
    return r->log->space;
}

/* Is the best setting better than the start on this split, by the tuned score? */
static bool is_better(const tune_results *r, const tune_scores *scores) {
    const size_t objective = space_of(r)->objective;
    return scores->best[objective] > scores->start[objective];
}

/* ---- tables --------------------------------------------------------------------------------- */

static void print_row(FILE *stream, const tune_results *r, const char *form, const char *split,
                      const char *setting, const double *scores) {
    fprintf(stream, form, split, setting);
    for (size_t i = 0; i < space_of(r)->score_count; i++)
        fprintf(stream, "%14.3f %%", 100 * scores[i]);
    fputc('\n', stream);
}

/* The best setting compared with the unaries alone, on held-out images if there are any. */
static void print_gain(FILE *stream, const tune_results *r) {
    const size_t objective = space_of(r)->objective;
    const tune_scores *scores = r->held_out.split ? &r->held_out : &r->tuned;
    const double points = 100 * (scores->best[objective] - scores->unary[objective]);
    if (points >= 0)
        fprintf(stream, "On %s the best setting has %.2f points more %s than the unaries alone.\n",
                scores->split, points, tune_score_titles[objective]);
    else
        fprintf(stream,
                "On %s even the best setting is worse than the unaries alone: by %.2f points of "
                "%s.\n",
                scores->split, -points, tune_score_titles[objective]);
}

static void print_verdict(FILE *stream, const tune_results *r) {
    const search_space *space = space_of(r);
    const char *objective = tune_score_titles[space->objective];
    print_gain(stream, r);
    if (!is_better(r, &r->tuned))
        fprintf(stream, "No setting that was tried has more %s on %s than the start.\n", objective,
                r->tuned.split);
    else if (r->held_out.split && !is_better(r, &r->held_out))
        fprintf(stream,
                "On %s the best setting does not have more %s than the start: what was gained "
                "belongs to the images of %s.\n",
                r->held_out.split, objective, r->tuned.split);
}

/* "--spatial 3,1.5 --bilateral 80,13,5", and the other options of the best setting. */
static void print_arguments(FILE *stream, json_t *settings) {
    const char *name;
    json_t *value;
    json_object_foreach(settings, name, value) {
        if (json_is_string(value))
            fprintf(stream, " --%s %s", name, json_string_value(value));
        else
            fprintf(stream, " --%s %" JSON_INTEGER_FORMAT, name, json_integer_value(value));
    }
}

static void print_setting(FILE *stream, const tune_results *r, const model_options *model) {
    json_t *settings = parameters_to_json(model, r->method->cliques);
    print_arguments(stream, settings);
    json_decref(settings);
}

void tune_results_print(FILE *stream, const tune_results *r) {
    const search_space *space = space_of(r);
    const tune_scores *const splits[] = {&r->tuned, &r->held_out};
    fprintf(stream, "%-12s%-8s", "split", "setting");
    for (size_t i = 0; i < space->score_count; i++)
        fprintf(stream, "%16s", tune_score_titles[i]);
    fputc('\n', stream);
    for (size_t k = 0; k < 2; k++)
        if (splits[k]->split) {
            print_row(stream, r, "%-12s%-8s", splits[k]->split, "unary", splits[k]->unary);
            print_row(stream, r, "%-12s%-8s", "", "start", splits[k]->start);
            print_row(stream, r, "%-12s%-8s", "", "best", splits[k]->best);
        }
    print_verdict(stream, r);
    fputs("best:", stream);
    print_setting(stream, r, &r->best);
    fprintf(stream, "\n%s/best.json is for --config of solve and batch\n", r->folder);
}

/* ---- tune.md -------------------------------------------------------------------------------- */

static void write_score_rows(FILE *stream, const tune_results *r, const tune_scores *scores) {
    if (!scores->split)
        return;
    const double *const rows[] = {scores->unary, scores->start, scores->best};
    static const char *const names[] = {"unary", "start", "best"};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        fprintf(stream, "| %s | %s |", scores->split, names[k]);
        for (size_t i = 0; i < space_of(r)->score_count; i++)
            fprintf(stream, " %.3f |", 100 * rows[k][i]);
        fputc('\n', stream);
    }
}

static void write_parameter_rows(FILE *stream, const tune_results *r) {
    const search_space *space = space_of(r);
    const search_entry *start = &r->log->entries[0], *best = search_log_best(r->log);
    fputs("\n| parameter | low | high | scale | start | best |\n|---|---:|---:|---|---:|---:|\n",
          stream);
    for (size_t i = 0; i < space->axis_count; i++) {
        const search_axis *axis = &space->axes[i];
        char text[4][NUMBER_TEXT_BYTES];
        fprintf(stream, "| %s | %s | %s | %s | %s | %s |\n", axis->name,
                number_text(axis->low, text[0]), number_text(axis->high, text[1]),
                axis->logarithmic ? "log" : "linear", number_text(start->values[i], text[2]),
                number_text(best->values[i], text[3]));
    }
}

static void write_markdown(FILE *stream, const tune_results *r) {
    const search_space *space = space_of(r);
    fprintf(stream, "# %s, tuned\n\n", r->method->name);
    fprintf(stream, "%zu evaluations on %s, for the largest %s. Scores in percent.\n\n",
            r->log->count, r->tuned.split, tune_score_titles[space->objective]);
    fputs("| split | setting |", stream);
    for (size_t i = 0; i < space->score_count; i++)
        fprintf(stream, " %s |", tune_score_titles[i]);
    fputs("\n|---|---|", stream);
    for (size_t i = 0; i < space->score_count; i++)
        fputs("---:|", stream);
    fputc('\n', stream);
    write_score_rows(stream, r, &r->tuned);
    write_score_rows(stream, r, &r->held_out);
    fputc('\n', stream);
    fprintf(stream, "The band is the pixels within %zu pixels of a true boundary.\n", r->band_px);
    print_verdict(stream, r);
    write_parameter_rows(stream, r);
    fputs("\n![the search](search.svg)\n", stream);
    if (search_has_curve(r->log))
        fputs("\n![the strength](strength.svg)\n", stream);
    fputs("\n    start:", stream);
    print_setting(stream, r, &r->start);
    fputs("\n    best: ", stream);
    print_setting(stream, r, &r->best);
    fputc('\n', stream);
}

/* ---- best.json ------------------------------------------------------------------------------ */

static json_t *numbers_to_json(const char *const *names, const double *numbers, size_t count) {
    json_t *root = json_object();
    for (size_t i = 0; i < count; i++)
        root = json_with(root, names[i], number_or_null(numbers[i]));
    return root;
}

static json_t *scores_to_json(const tune_results *r, const tune_scores *scores) {
    const search_space *space = space_of(r);
    return json_pack("{s:s, s:o, s:o, s:o}", "split", scores->split, "unary",
                     numbers_to_json(space->score_names, scores->unary, space->score_count),
                     "start",
                     numbers_to_json(space->score_names, scores->start, space->score_count), "best",
                     numbers_to_json(space->score_names, scores->best, space->score_count));
}

static json_t *best_to_json(const tune_results *r, const json_t *subject) {
    json_t *tuned =
        json_pack("{s:s, s:I, s:o, s:o, s:O}", "method", r->method->name, "evaluations",
                  (json_int_t)r->log->count, "scores", scores_to_json(r, &r->tuned), "start",
                  parameters_to_json(&r->start, r->method->cliques), "search", subject);
    if (r->held_out.split)
        tuned = json_merge(tuned, json_pack("{s:o}", "held_out", scores_to_json(r, &r->held_out)));
    return json_pack("{s:o, s:o}", "settings", parameters_to_json(&r->best, r->method->cliques),
                     "tuned", tuned);
}

/* ---- files ---------------------------------------------------------------------------------- */

typedef struct result_file {
    char path[PATH_BYTES];
    FILE *stream;
} result_file;

static bool begin(cli_outputs *outputs, const tune_results *r, const char *name, result_file *file,
                  cli_problem *problem) {
    const int length = snprintf(file->path, sizeof file->path, "%s/%s", r->folder, name);
    return length > 0 && length < PATH_BYTES
               ? output_begin(outputs, file->path, &file->stream, problem)
               : bad_input(problem, r->folder, "is too long");
}

bool tune_results_write(const tune_results *r, const json_t *subject, cli_problem *problem) {
    cli_outputs outputs = {.place = OUTPUT_IN_STORE};
    result_file best, text, plot, swept = {.stream = NULL};
    const search_space *space = space_of(r);
    bool done =
        begin(&outputs, r, "best.json", &best, problem) &&
        begin(&outputs, r, "tune.md", &text, problem) &&
        begin(&outputs, r, "search.svg", &plot, problem) &&
        (!search_has_curve(r->log) || begin(&outputs, r, "strength.svg", &swept, problem)) &&
        json_write_and_free(best.stream, best.path, best_to_json(r, subject), problem);
    if (done) {
        char title[128];
        snprintf(title, sizeof title, "evaluation; upwards %s in percent",
                 tune_score_titles[space->objective]);
        write_markdown(text.stream, r);
        search_plot_write(plot.stream, r->log, r->tuned.unary[space->objective], title);
        if (swept.stream) {
            snprintf(title, sizeof title, "%s, all else as at the start; upwards %s in percent",
                     space->axes[0].name, tune_score_titles[space->objective]);
            search_curve_write(swept.stream, r->log, r->tuned.unary[space->objective], title);
        }
        done = outputs_commit(&outputs, problem);
    }
    outputs_discard(&outputs);
    return done;
}
