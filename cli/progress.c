#include "progress.h"

#include "solution.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_DRAWN_AFTER_S 1.0
#define DRAWN_EVERY_S 0.1
#define BAR_CELLS 20
#define LINE_BYTES 256

const cli_option feedback_option_table[] = {
    {"verbose", 'v', NULL, NULL, false, parse_switch, offsetof(feedback_options, verbose),
     "say on the standard error what every iteration does"},
    {"quiet", 'q', NULL, NULL, false, parse_switch, offsetof(feedback_options, quiet),
     "no summary and no progress; problems are still reported"},
    {0},
};

feedback feedback_wanted(const feedback_options *options) {
    return options->quiet ? FEEDBACK_QUIET : options->verbose ? FEEDBACK_VERBOSE : FEEDBACK_NORMAL;
}

/* ---- Ctrl-C --------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;
static struct sigaction usual_action;

static void note_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static void catch_interrupt(void) {
    struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    sigaction(SIGINT, &action, &usual_action);
}

/* ---- the line ------------------------------------------------------------------------------- */

/* How much of the run is behind, from 0 to 1, by the limit that comes first. */
static double fraction_done(const progress *p, const dcrf_moment *moment) {
    double done = p->iterations > 0 ? (double)moment->iteration / (double)p->iterations : 0;
    if (p->time_limit_s > 0)
        done = fmax(done, moment->time_s / p->time_limit_s);
    return fmin(done, 1);
}

static size_t terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void append(char line[LINE_BYTES], const char *format, double value) {
    const size_t used = strlen(line);
    snprintf(line + used, LINE_BYTES - used, format, value);
}

static void draw(const progress *p, const dcrf_moment *moment) {
    char line[LINE_BYTES], bar[BAR_CELLS + 1];
    const double done = fraction_done(p, moment);
    const double gap = (moment->best_energy - moment->lower_bound) / fabs(moment->best_energy);
    const size_t full = (size_t)(done * BAR_CELLS);
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', full);
    bar[BAR_CELLS] = '\0';
    if (p->iterations > 0)
        snprintf(line, sizeof line, "[%s] %zu/%zu", bar, moment->iteration, p->iterations);
    else
        snprintf(line, sizeof line, "[%s] %zu", bar, moment->iteration);
    append(line, "  energy %.8g", moment->best_energy);
    if (!isnan(moment->lower_bound))
        append(line, "  bound %.8g", moment->lower_bound);
    if (!isnan(gap))
        append(line, "  gap %.3g %%", 100 * gap);
    if (done > 0)
        append(line, "  at most %.0f s left", ceil(moment->time_s * (1 - done) / done));
    const size_t columns = terminal_columns();
    fprintf(stderr, "\r%.*s\033[K", (int)(columns - 1), line);
    fflush(stderr);
}

int progress_moment(void *user, const dcrf_moment *moment) {
    progress *p = user;
    const double now_s = seconds_now();
    if (p->on_terminal && now_s - p->began_s >= FIRST_DRAWN_AFTER_S &&
        (!p->drawn || now_s - p->drawn_s >= DRAWN_EVERY_S)) {
        draw(p, moment);
        p->drawn = true;
        p->drawn_s = now_s;
    }
    return interrupted;
}

void progress_log(void *user, const char *line) {
    const progress *p = user;
    if (p->talk == FEEDBACK_VERBOSE)
        fprintf(stderr, "%s\n", line);
}

/* ---- a run ---------------------------------------------------------------------------------- */

void progress_begin(progress *p, feedback talk, size_t iterations, double time_limit_s) {
    /* Lines that are logged would tear the redrawn one apart. */
    const bool drawing = talk == FEEDBACK_NORMAL && isatty(STDERR_FILENO);
    *p = (progress){
        .talk = talk,
        .on_terminal = drawing,
        .began_s = seconds_now(),
        .iterations = iterations,
        .time_limit_s = time_limit_s,
    };
    catch_interrupt();
}

void progress_end(progress *p) {
    sigaction(SIGINT, &usual_action, NULL);
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->drawn = false;
}
