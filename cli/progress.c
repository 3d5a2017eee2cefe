#include "progress.h"

#include "interrupt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const cli_option feedback_option_table[] = {
    {"verbose", 'v', NULL, NULL, false, parse_switch, offsetof(feedback_options, verbose),
     "print every iteration to the standard error"},
    {"quiet", 'q', NULL, NULL, false, parse_switch, offsetof(feedback_options, quiet),
     "no summary or progress; errors are still reported"},
    {0},
};

#define QUIET_S 2.0
#define LEAST_PERCENT_SHOWN 1e-4 /* of a gap: smaller values are not worth digits */

feedback feedback_wanted(const feedback_options *options) {
    return options->quiet ? FEEDBACK_QUIET : options->verbose ? FEEDBACK_VERBOSE : FEEDBACK_NORMAL;
}

/* ---- the line ------------------------------------------------------------------------------- */

/* The fraction of the run that is done, from 0 to 1, by the limit that will be reached first. */
static double fraction_done(const progress *p, const dcrf_moment *moment) {
    double done = p->iterations > 0 ? (double)moment->iteration / (double)p->iterations : 0;
    if (p->time->limit_s > 0)
        done = fmax(done, moment->time_s / p->time->limit_s);
    return fmin(done, 1);
}

static void draw(progress *p, const dcrf_moment *moment) {
    char text[TERMINAL_LINE_BYTES];
    const double done = fraction_done(p, moment);
    const double gap = moment->relative_gap;
    terminal_line_bar(text, done);
    terminal_line_add(text, " %.0f", (double)moment->iteration);
    if (p->iterations > 0)
        terminal_line_add(text, "/%.0f", (double)p->iterations);
    terminal_line_add(text, "  energy %.8g", moment->best_energy);
    if (!isnan(moment->lower_bound))
        terminal_line_add(text, "  bound %.8g", moment->lower_bound);
    if (100 * gap < LEAST_PERCENT_SHOWN)
        terminal_line_add(text, "  gap below %g %%", LEAST_PERCENT_SHOWN);
    else if (!isnan(gap))
        terminal_line_add(text, "  gap %.3g %%", 100 * gap);
    if (done > 0)
        terminal_line_add(text, "  at most %.0f s left", ceil(moment->time_s * (1 - done) / done));
    terminal_line_draw(&p->line, text);
}

int progress_moment(void *user, const dcrf_moment *moment) {
    progress *p = user;
    p->done = moment->iteration;
    p->moment_s = terminal_line_seconds(&p->line);
    if (terminal_line_due(&p->line))
        draw(p, moment);
    return interrupt_came();
}

/* Polled in every stage: also where no iteration ends for a while, because first labellings are
 * sought, the best one is improved, or an iteration takes long. */
int progress_cancel(void *user) {
    progress *p = user;
    const double seconds = terminal_line_seconds(&p->line);
    char what[64];
    if (terminal_line_due(&p->line) && seconds - p->moment_s > QUIET_S) {
        snprintf(what, sizeof what, "%zu iterations done", p->done);
        progress_stage(p, p->done > 0 ? what : p->first);
    }
    return interrupt_came();
}

void progress_stage(progress *p, const char *what) {
    char text[TERMINAL_LINE_BYTES];
    if (!terminal_line_due(&p->line))
        return;
    snprintf(text, sizeof text, "%s, %.0f s", what, terminal_line_seconds(&p->line));
    terminal_line_draw(&p->line, text);
}

/* Leave out the comma-separated parts of a line whose value is unknown. */
static void print_known(FILE *stream, const char *line) {
    bool first = true;
    while (*line) {
        const size_t length = strcspn(line, ",");
        char part[128];
        snprintf(part, sizeof part, "%.*s", (int)length, line);
        if (!strstr(part, " nan") && !strstr(part, " -nan")) {
            fprintf(stream, "%s%s", first ? "" : ",", part);
            first = false;
        }
        line += length + (line[length] == ',');
    }
    fputc('\n', stream);
}

void progress_log(void *user, const char *line) {
    const progress *p = user;
    if (p->talk == FEEDBACK_VERBOSE)
        print_known(stderr, line);
}

/* ---- a run ---------------------------------------------------------------------------------- */

void progress_begin(progress *p, feedback talk, size_t iterations, const time_frame *time) {
    *p = (progress){.talk = talk,
                    .iterations = iterations,
                    .time = time,
                    .first = "looking for first labellings"};
    /* Log lines would break up the redrawn one. */
    terminal_line_begin(&p->line, talk == FEEDBACK_NORMAL);
    p->line.began_s = time->began_s;
    interrupt_catch();
}

void progress_limit(progress *p, dcrf_workspace *workspace) {
    dcrf_workspace_set_limit(workspace, time_left_s(p->time), progress_cancel, p);
}

void progress_end(progress *p) {
    interrupt_release();
    terminal_line_wipe(&p->line);
}
