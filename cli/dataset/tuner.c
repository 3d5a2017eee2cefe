#include "dataset/tuner.h"

#include "clock.h"
#include "dataset/parameters.h"
#include "ranks/ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const tune_score_names[TUNE_SCORES] = {"accuracy", "mean_iou", "band_accuracy"};
const char *const tune_score_titles[TUNE_SCORES] = {"accuracy", "mean IoU", "band accuracy"};

/* ---- collective calls ----------------------------------------------------------------------- */

typedef struct order {
    size_t split;  /* TUNE_SPLITS: the end */
    bool is_unary; /* no method, only the unaries */
    double values[SEARCH_AXES_MAX];
} order;

/* What all ranks do for one evaluation. */
static bool obey(tuner *t, const order *given, double *scores, cli_problem *problem) {
    solve_choice choice = *t->start;
    score total;
    split_scorer *scorer = &t->scorers[given->split];
    const method_choice *method = scorer->method;
    parameters_apply(t->space, given->values, &choice.model);
    if (given->is_unary)
        scorer->method = &unary_method;
    const bool done = split_scorer_run(scorer, &choice, &total, problem);
    scorer->method = method;
    if (!done) {
        t->all_are_over = true;
        return false;
    }
    scores[TUNE_ACCURACY] = score_accuracy(&total);
    scores[TUNE_MEAN_IOU] = score_mean_iou(&total);
    scores[TUNE_BAND_ACCURACY] = score_band_accuracy(&total, choice.band_px);
    score_free(&total);
    return true;
}

static bool order_all(tuner *t, const order *given, double *scores, cli_problem *problem) {
    order sent = *given;
    ranks_broadcast(&sent, sizeof sent);
    return obey(t, &sent, scores, problem);
}

static order order_for(const tuner *t, size_t split, const double *values, bool is_unary) {
    order given = {.split = split, .is_unary = is_unary};
    memcpy(given.values, values, t->space->axis_count * sizeof *values);
    return given;
}

bool tuner_score(tuner *t, size_t split, const double *values, double *scores,
                 cli_problem *problem) {
    const order given = order_for(t, split, values, false);
    return order_all(t, &given, scores, problem);
}

bool tuner_score_unaries(tuner *t, size_t split, double *scores, cli_problem *problem) {
    /* Any parameters will do: the unary minimum does not depend on them. */
    const order given = order_for(t, split, t->log->entries[0].values, true);
    return order_all(t, &given, scores, problem);
}

bool tuner_follow(tuner *t, cli_problem *problem) {
    double scores[SEARCH_SCORES_MAX];
    order given;
    for (;;) {
        ranks_broadcast(&given, sizeof given);
        if (given.split == TUNE_SPLITS)
            return true;
        if (!obey(t, &given, scores, problem))
            return false;
    }
}

void tuner_end(tuner *t) {
    order given = {.split = TUNE_SPLITS};
    if (!t->all_are_over)
        ranks_broadcast(&given, sizeof given);
    t->all_are_over = true;
}

/* ---- progress ------------------------------------------------------------------------------- */

static void draw(tuner *t) {
    const search_log *log = t->log;
    const search_entry *best = search_log_best(log);
    const double elapsed_s = seconds_now() - t->line.began_s;
    char text[TERMINAL_LINE_BYTES];
    terminal_line_bar(text, fmin((double)log->count / (double)t->budget, 1));
    terminal_line_add(text, " evaluation %.0f", (double)(log->count + 1));
    terminal_line_add(text, " of %.0f", (double)t->budget);
    if (best) {
        terminal_line_add(text, "  start %.2f %%", 100 * search_score(log, &log->entries[0]));
        terminal_line_add(text, "  best %.2f %%", 100 * search_score(log, best));
    }
    if (t->fresh > 0)
        terminal_line_add(text, "  %.0f s left",
                          ceil(elapsed_s / (double)t->fresh * (double)(t->budget - log->count)));
    terminal_line_draw(&t->line, text);
}

static void say(const tuner *t, const double *values, const double *scores) {
    fprintf(stderr, "evaluation %zu: %s %.3f %%:", t->log->count + 1,
            tune_score_titles[t->space->objective], 100 * scores[t->space->objective]);
    for (size_t i = 0; i < t->space->axis_count; i++)
        fprintf(stderr, " %s %g", t->space->axes[i].name, values[i]);
    fputc('\n', stderr);
}

bool tuner_evaluate(void *user, const double *values, double *scores, cli_problem *problem) {
    tuner *t = user;
    if (terminal_line_due(&t->line))
        draw(t);
    if (!tuner_score(t, TUNE_SPLIT, values, scores, problem))
        return false;
    if (isnan(scores[t->space->objective]))
        return bad_input(problem, t->scorers[TUNE_SPLIT].data.folder,
                         "the truth has no pixel to score in the split %s",
                         t->scorers[TUNE_SPLIT].data.split);
    t->fresh++;
    if (t->talk == FEEDBACK_VERBOSE)
        say(t, values, scores);
    return true;
}
