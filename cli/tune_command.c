/* dcrf tune: the parameters with the best score on a split of a data set. */
#include "command.h"
#include "dataset/parameters.h"
#include "dataset/search_record.h"
#include "dataset/store.h"
#include "dataset/tune_results.h"
#include "dataset/tuner.h"
#include "interrupt.h"
#include "io/json.h"
#include "model/compatibility.h"
#include "ranks/ranks.h"
#include "report/number_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELD_OUT_USUALLY "test"
#define NO_HELD_OUT "none"

typedef struct tune_options {
    method_choice method;
    int objective; /* TUNE_ACCURACY etc. */
    size_t budget;
    const char *split;
    const char *held_out; /* NULL: the default one, if it exists */
    parameter_list parameters;
    size_t band_px;
    bool rounded;
    const char *out;
} tune_options;

typedef struct tune_settings {
    const char *folder;
    tune_options tune;
    workers_options workers;
    source_options sources;
    feedback_options feedback;
    solver_options solver;
    model_options model;
} tune_settings;

_Static_assert(TUNE_ACCURACY == 0 && TUNE_MEAN_IOU == 1 && TUNE_BAND_ACCURACY == 2,
               "accuracy|iou|band");

static const cli_option tune_option_table[] = {
    {"method", 'm', "METHOD", "qp", false, parse_method, offsetof(tune_options, method),
     "the method to tune: mf, qp or lp, optionally followed by a number of iterations, and "
     "+cliques for a model with cliques"},
    {"objective", 0, "accuracy|iou|band", "accuracy", false, parse_choice,
     offsetof(tune_options, objective),
     "the score to maximize: the fraction of correct pixels, the mean IoU of the classes, or the "
     "accuracy near true boundaries"},
    {"budget", 'b', "N", NULL, true, parse_positive_count, offsetof(tune_options, budget),
     "number of evaluations; each solves all images of the split"},
    {"split", 0, "NAME", "val", false, parse_text, offsetof(tune_options, split),
     "the images to tune on, listed in splits/NAME.txt"},
    {"held-out", 0, "NAME", NULL, false, parse_text, offsetof(tune_options, held_out),
     "the images on which start and best are compared afterwards; by default test, if there is "
     "such a split; none: no comparison"},
    {"parameters", 0, PARAMETERS_FORM, NULL, false, parse_parameters,
     offsetof(tune_options, parameters),
     "the parameters to change, and their bounds: strength-factor (or strength, if it is given), "
     "spatial-share, spatial-sigma, bilateral-sigma, bilateral-colour, the spatial-weight and "
     "bilateral-weight of kernels that have one of their own, and for a method with cliques "
     "min-region, gamma, eta; by default all that the model has"},
    {"band", 0, "PIXELS", "8", false, parse_band, offsetof(tune_options, band_px),
     "the distance up to which pixels count as near true boundaries"},
    {"rounded", 0, NULL, NULL, false, parse_switch, offsetof(tune_options, rounded),
     "score the largest marginals of a method's last iteration, as papers do, instead of the best "
     "labelling, polished"},
    {"out", 'o', "FOLDER", NULL, true, parse_folder, offsetof(tune_options, out),
     "the folder for the log and the results; a search begun there is continued"},
    {0},
};

/* ---- description of the search -------------------------------------------------------------- */

static const cli_option *const no_part_of_model[] = {tune_option_table, workers_option_table,
                                                     feedback_option_table, NULL};

static json_t *axes_to_json(const search_space *space, const double *start) {
    json_t *list = json_array();
    for (size_t i = 0; i < space->axis_count; i++) {
        const search_axis *axis = &space->axes[i];
        list =
            json_append(list, json_pack("{s:s, s:f, s:f, s:s, s:f}", "name", axis->name, "low",
                                        axis->low, "high", axis->high, "scale",
                                        axis->logarithmic ? "log" : "linear", "start", start[i]));
    }
    return list;
}

/* Everything that determines the course of the search. */
static json_t *describe_search(const tune_settings *settings, const search *task,
                               const content_hash *data) {
    const tune_options *tune = &settings->tune;
    json_t *model = solve_choice_to_json(settings->sources.record, no_part_of_model);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:I, s:o, s:o, s:s}", "version", DCRF_VERSION,
                     "split", tune->split, "method", tune->method.name, "objective",
                     tune_score_names[tune->objective], "band", (json_int_t)tune->band_px,
                     "rounded", tune->rounded, "seed", (json_int_t)task->seed, "parameters",
                     axes_to_json(task->space, task->start), "settings", model, "data", data->text);
}

/* ---- a run ---------------------------------------------------------------------------------- */

typedef struct tuning {
    const tune_settings *settings;
    const char *held_out; /* NULL: none */
    search_space space;
    solve_choice start;
    search task;
    tuner evaluations;
    store folder;
    search_log log;
} tuning;

/* Unaries, start and best on both splits. What is in the log is not evaluated again. */
static bool compare(tuning *t, tune_results *results, cli_problem *problem) {
    const search_entry *start = &t->log.entries[0], *best = search_log_best(&t->log);
    results->tuned.split = t->settings->tune.split;
    memcpy(results->tuned.start, start->scores, sizeof start->scores);
    memcpy(results->tuned.best, best->scores, sizeof best->scores);
    results->held_out.split = t->held_out;
    if (!tuner_score_unaries(&t->evaluations, TUNE_SPLIT, results->tuned.unary, problem))
        return false;
    if (!t->held_out)
        return true;
    if (!tuner_score_unaries(&t->evaluations, TUNE_HELD_OUT, results->held_out.unary, problem) ||
        !tuner_score(&t->evaluations, TUNE_HELD_OUT, start->values, results->held_out.start,
                     problem))
        return false;
    memcpy(results->held_out.best, results->held_out.start, sizeof results->held_out.best);
    return best == start || tuner_score(&t->evaluations, TUNE_HELD_OUT, best->values,
                                        results->held_out.best, problem);
}

static bool finish(tuning *t, const json_t *subject, cli_problem *problem) {
    const tune_settings *settings = t->settings;
    tune_results results = {
        .folder = settings->tune.out,
        .method = &settings->tune.method,
        .log = &t->log,
        .start = t->start.model,
        .best = t->start.model,
        .band_px = settings->tune.band_px,
    };
    parameters_apply(&t->space, t->task.start, &results.start);
    parameters_apply(&t->space, search_log_best(&t->log)->values, &results.best);
    const bool done =
        compare(t, &results, problem) && tune_results_write(&results, subject, problem);
    terminal_line_wipe(&t->evaluations.line);
    if (done && feedback_wanted(&settings->feedback) != FEEDBACK_QUIET)
        tune_results_print(stdout, &results);
    return done;
}

/* Claim the folder for this search, or continue the search in it. A folder without evaluations
 * is free for any search. */
static bool claim(tuning *t, json_t *subject, size_t **budgets, cli_problem *problem) {
    char *record = store_file(&t->folder, "search.json"), *log = store_file(&t->folder, "log.csv");
    const bool anew = log && search_log_is_empty(log);
    bool done = (record && log) || out_of_memory(problem, t->folder.folder);
    if (done && anew && unlink(log) != 0 && errno != ENOENT)
        done = failure(problem, log, "cannot be removed: %s", strerror(errno));
    done = done &&
           search_record_claim(record, json_incref(subject), anew, t->settings->tune.budget,
                               budgets, &t->task.budget_count, problem) &&
           search_log_open(&t->log, log, &t->space, problem);
    free(record);
    free(log);
    t->task.budgets = *budgets;
    return done;
}

static void note_clamped(const tuning *t, const double *wanted) {
    for (size_t i = 0; i < t->space.axis_count; i++) {
        const search_axis *axis = &t->space.axes[i];
        if (wanted[i] != t->task.start[i])
            printf("%s: the start has %g, outside of %g to %g; beginning with %g\n", axis->name,
                   wanted[i], axis->low, axis->high, t->task.start[i]);
    }
}

/* What rank 0 does while the others follow. */
static bool search_and_finish(tuning *t, cli_problem *problem) {
    content_hash data;
    size_t *budgets = NULL;
    if (!split_hash(&t->evaluations.scorers[TUNE_SPLIT].data, &t->start.model, &data, problem))
        return false;
    json_t *subject = describe_search(t->settings, &t->task, &data);
    bool done = subject || out_of_memory(problem, t->settings->tune.out);
    done = done && claim(t, subject, &budgets, problem);
    if (done) {
        terminal_line_begin(&t->evaluations.line, t->evaluations.talk == FEEDBACK_NORMAL);
        done = search_run(&t->task, &t->log, problem) && finish(t, subject, problem);
        terminal_line_wipe(&t->evaluations.line);
    }
    search_log_close(&t->log);
    free(budgets);
    json_decref(subject);
    return done;
}

static bool run_together(tuning *t, cli_problem *problem) {
    bool done = true;
    interrupt_catch();
    if (ranks_mine() == 0) {
        done = search_and_finish(t, problem);
        tuner_end(&t->evaluations);
    } else {
        done = tuner_follow(&t->evaluations, problem);
    }
    interrupt_release();
    return ranks_agree(done, problem);
}

/* ---- preparation ---------------------------------------------------------------------------- */

static bool check_options(const tune_settings *settings, cli_problem *problem) {
    const tune_options *tune = &settings->tune;
    if (tune->method.unary)
        return bad_input(problem, "--method", "'%s' has nothing to tune", tune->method.name);
    if (tune->held_out && strcmp(tune->held_out, tune->split) == 0)
        return bad_input(problem, "--held-out", "'%s' is the split that is tuned on",
                         tune->held_out);
    return true;
}

static const char *find_held_out(const tune_settings *settings) {
    const char *given = settings->tune.held_out;
    if (given)
        return strcmp(given, NO_HELD_OUT) == 0 ? NULL : given;
    return strcmp(settings->tune.split, HELD_OUT_USUALLY) != 0 &&
                   dataset_has_split(settings->folder, HELD_OUT_USUALLY)
               ? HELD_OUT_USUALLY
               : NULL;
}

/* The axes, the start, and what the evaluations need besides the images. */
static bool plan_search(const tune_settings *settings, tuning *t, cli_problem *problem) {
    double wanted[SEARCH_AXES_MAX] = {0};
    *t = (tuning){
        .settings = settings,
        .held_out = find_held_out(settings),
        .start = {settings->model, settings->solver, settings->tune.rounded,
                  settings->tune.band_px},
        .folder = {NULL, -1},
    };
    if (!parameters_choose(&settings->tune.parameters, &settings->model,
                           settings->tune.method.cliques, &t->space, wanted, problem))
        return false;
    memcpy(t->space.score_names, tune_score_names, sizeof tune_score_names);
    t->space.score_count = TUNE_SCORES;
    t->space.objective = (size_t)settings->tune.objective;
    t->task = (search){.space = &t->space,
                       .seed = settings->solver.seed,
                       .evaluate = tuner_evaluate,
                       .user = &t->evaluations};
    for (size_t i = 0; i < t->space.axis_count; i++)
        t->task.start[i] = wanted[i] == SEARCH_AUTOMATIC
                               ? SEARCH_AUTOMATIC
                               : fmin(fmax(wanted[i], t->space.axes[i].low), t->space.axes[i].high);
    t->evaluations = (tuner){.space = &t->space,
                             .start = &t->start,
                             .talk = feedback_wanted(&settings->feedback),
                             .budget = settings->tune.budget,
                             .log = &t->log};
    if (ranks_mine() == 0 && t->evaluations.talk != FEEDBACK_QUIET)
        note_clamped(t, wanted);
    return true;
}

static bool open_split(tuning *t, size_t place, const char *split, cli_problem *problem) {
    const tune_settings *settings = t->settings;
    const dataset *data = &t->evaluations.scorers[place].data;
    return split_scorer_open(&t->evaluations.scorers[place], settings->folder, split,
                             &settings->workers, &settings->model.kernels, &settings->tune.method,
                             problem) &&
           compatibility_check(settings->model.compatibility, data->labels,
                               settings->tune.method.solver == DCRF_METHOD_LP, problem) &&
           dataset_check_apart(data, settings->tune.out, problem);
}

static bool run_tune(const void *given, cli_problem *problem) {
    const tune_settings *settings = given;
    tuning t;
    if (!check_options(settings, problem) || !model_check_kernels(&settings->model, problem) ||
        !plan_search(settings, &t, problem))
        return false;
    bool done =
        device_check(settings->model.kernels.device, problem) &&
        open_split(&t, TUNE_SPLIT, settings->tune.split, problem) &&
        (!t.held_out || open_split(&t, TUNE_HELD_OUT, t.held_out, problem)) &&
        store_open(&t.folder, settings->tune.out, ranks_mine() == 0 ? "dcrf tune" : NULL, problem);
    done = ranks_agree(done, problem) && run_together(&t, problem);
    store_close(&t.folder);
    for (size_t i = 0; i < TUNE_SPLITS; i++)
        split_scorer_close(&t.evaluations.scorers[i]);
    return done;
}

static const cli_option operands[] = {
    {.name = "DATASET",
     .parse = parse_input,
     .offset = offsetof(tune_settings, folder),
     .help = "a folder with images/ unaries/ gt/ splits/ dataset.json"},
    {0},
};

static const option_group groups[] = {
    {"Tuning", tune_option_table, offsetof(tune_settings, tune)},
    DATASET_OPTION_GROUPS(tune_settings),
    {0},
};

const cli_command tune_command = {
    {"tune", operands, groups},
    "find good parameters for a data set",
    "Searches for the kernels and cliques with the best score on a split of a data set, starting "
    "from those that the options describe: first over the whole box of bounds, then around the "
    "best point, by NLopt. --seed also seeds the search.\n\nlog.csv has every evaluation as soon "
    "as it is done. The same command continues a run that was stopped or killed, and a larger "
    "budget continues a finished one. best.json is a file for --config of solve and batch; tune.md "
    "compares start and best, also on held-out images; search.svg shows the search, and "
    "strength.svg the score against the strength, which is searched first. Ctrl-C abandons the "
    "images in work.",
    sizeof(tune_settings),
    run_tune,
};
