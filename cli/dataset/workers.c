/* The main thread only hands out images to free worker threads, so that it can always answer
 * other ranks, and draw. */
#include "dataset/workers.h"

#include "clock.h"
#include "interrupt.h"
#include "model/device.h"
#include "ranks/ranks.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REDRAW_EVERY_NS 20000000

/* ---- options -------------------------------------------------------------------------------- */

const cli_option workers_option_table[] = {
    {"jobs", 'j', "J", "0", false, parse_count, offsetof(workers_options, jobs),
     "images to solve at a time; 0: one per core; --threads counts threads per image, 0: the "
     "remaining cores"},
    {"memory", 0, "BYTES", NULL, false, parse_bytes, offsetof(workers_options, memory_bytes),
     "approximate memory limit of all images in work together, such as 4G; an image that needs "
     "more by itself is skipped"},
    {0},
};

/* ---- problems ------------------------------------------------------------------------------- */

bool workers_image_too_large(cli_problem *problem, const char *image, size_t bytes) {
    return failure(problem, image, "needs about %zu MiB; --memory allows less", (bytes >> 20) + 1);
}

workers_verdict workers_failed(workers_verdict verdict) {
    return interrupt_came() ? WORKERS_GIVEN_UP : verdict;
}

bool workers_was_interrupted(cli_problem *problem, const char *subject) {
    failure(problem, subject, "interrupted; what is done is kept, and the same command continues");
    problem->exit_status = EXIT_STATUS_INTERRUPTED;
    return false;
}

/* ---- the workers -------------------------------------------------------------------------------
 */

typedef struct workers {
    const workers_task *task;
    size_t threads;      /* per workspace */
    size_t jobs;         /* the most workers */
    size_t memory_bytes; /* 0: no limit */
    pthread_t *workers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* All below is guarded by the mutex. */
    bool dealt; /* the next image waits for a worker */
    size_t image;
    size_t image_bytes;
    size_t started; /* workers, each started when there is an image for it */
    size_t placed;  /* workers that have chosen their device */
    size_t idle;    /* waiting for an image */
    size_t alive;   /* not ended yet */
    bool no_more;   /* workers may end */
    size_t bytes_in_flight;
    size_t done;
    size_t skipped;
    bool stopped;
    cli_problem problem; /* why it stopped */
} workers;

static void stop(workers *c, const cli_problem *problem) {
    if (!c->stopped)
        c->problem = *problem;
    c->stopped = true;
}

static void take_verdict(workers *c, workers_verdict verdict, const cli_problem *problem) {
    c->done += verdict == WORKERS_DONE;
    c->skipped += verdict == WORKERS_SKIPPED;
    if (verdict == WORKERS_STOP)
        stop(c, problem);
}

/* ---- a worker ------------------------------------------------------------------------------- */

/* Release the bytes of the previous image, and wait for another one; false: there are no more.
 * Both in one step: a dealer that saw room but no idle worker would start one more, with its own
 * workspace. */
static bool take_image(workers *c, size_t *image, size_t *bytes) {
    pthread_mutex_lock(&c->mutex);
    c->bytes_in_flight -= *bytes;
    c->idle++;
    pthread_cond_broadcast(&c->changed);
    while (!c->dealt && !c->no_more)
        pthread_cond_wait(&c->changed, &c->mutex);
    const bool taken = c->dealt;
    *image = c->image;
    *bytes = c->image_bytes;
    c->dealt = false;
    c->idle--;
    pthread_mutex_unlock(&c->mutex);
    return taken;
}

static void tell_verdict(workers *c, workers_verdict verdict, const cli_problem *problem) {
    pthread_mutex_lock(&c->mutex);
    take_verdict(c, verdict, problem);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

/* Images that stay with a rank keep their plans, which are on the device of the worker that made
 * them and may be used by another worker: so these workers all have the same device. */
static bool start_workspace(workers *c, dcrf_workspace **workspace, cli_problem *problem) {
    const workers_task *task = c->task;
    if (task->deal == WORKERS_DEAL_FIXED)
        return workspace_start(workspace, c->threads, task->device, problem);
    pthread_mutex_lock(&c->mutex);
    const size_t place = ranks_mine() + c->placed++;
    pthread_mutex_unlock(&c->mutex);
    return workspace_start_in_turn(workspace, c->threads, task->device, place, problem);
}

static void *work(void *given) {
    workers *c = given;
    dcrf_workspace *workspace = NULL;
    cli_problem problem = {0};
    size_t image, bytes = 0;
    if (!start_workspace(c, &workspace, &problem))
        tell_verdict(c, WORKERS_STOP, &problem);
    while (workspace && take_image(c, &image, &bytes)) {
        const workers_verdict verdict = c->task->work(c->task->user, image, workspace, &problem);
        tell_verdict(c, verdict, &problem);
    }
    dcrf_workspace_free(&workspace);
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* ---- handing out images --------------------------------------------------------------------- */

typedef struct dealer {
    workers *workers;
    ranks_counters *counter; /* NULL: a fixed deal */
    size_t next;             /* in a fixed deal */
    size_t position;         /* the progress of all ranks, as far as known */
    terminal_line line;
} dealer;

static void draw(dealer *d) {
    const workers *c = d->workers;
    const size_t count = c->task->count;
    const size_t finished = ranks_count() == 1 ? c->done + c->skipped : d->position;
    const double elapsed_s = seconds_now() - d->line.began_s;
    char text[TERMINAL_LINE_BYTES];
    terminal_line_bar(text, (double)finished / (double)count);
    terminal_line_add(text, " %.0f", (double)finished);
    terminal_line_add(text, "/%.0f images", (double)count);
    if (finished > 0) {
        const double rate = (double)finished / elapsed_s;
        terminal_line_add(text, rate < 10 ? "  %.2f images/s" : "  %.0f images/s", rate);
        terminal_line_add(text, "  %.0f s left", ceil((double)(count - finished) / rate));
    }
    if (c->skipped > 0)
        terminal_line_add(text, "  %.0f skipped", (double)c->skipped);
    if (interrupt_came())
        terminal_line_add(text, "  giving up %.0f images", (double)(c->alive - c->idle));
    terminal_line_draw(&d->line, text);
}

/* Wait until something changes; meanwhile draw, and serve other ranks. Called with the mutex
 * held. */
static void wait_for_change(dealer *d) {
    struct timespec until;
    if (terminal_line_due(&d->line))
        draw(d);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += REDRAW_EVERY_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&d->workers->changed, &d->workers->mutex, &until);
    ranks_progress();
}

static bool may_go_on(const workers *c) {
    return !c->stopped && !interrupt_came();
}

/* The next image of this rank; false: none. */
static bool next_image(dealer *d, size_t *image) {
    if (d->counter) {
        *image = (size_t)ranks_counters_add(d->counter, 0, 1);
    } else {
        *image = d->next;
        d->next += ranks_count();
    }
    d->position = *image < d->workers->task->count ? *image : d->workers->task->count;
    return *image < d->workers->task->count;
}

/* Wait until the image fits besides those in progress. */
static void make_room(dealer *d, size_t bytes) {
    const workers *c = d->workers;
    while (may_go_on(c) && c->memory_bytes > 0 && c->bytes_in_flight > 0 &&
           c->bytes_in_flight + bytes > c->memory_bytes)
        wait_for_change(d);
}

/* Workers are started when needed, because they keep their workspaces' memory: if memory allows
 * only one image at a time, one worker does them all. */
static void call_worker(workers *c) {
    if (c->idle > 0 || c->started == c->jobs)
        return;
    if (pthread_create(&c->workers[c->started], NULL, work, c) == 0) {
        c->started++;
        c->alive++;
    } else if (c->started > 0) {
        c->jobs = c->started; /* continue with fewer */
    } else {
        cli_problem problem;
        failure(&problem, "--jobs", "no thread can be started");
        stop(c, &problem);
    }
}

static void deal_one(dealer *d, size_t image) {
    workers *c = d->workers;
    const workers_task *task = c->task;
    cli_problem problem = {0};
    const size_t bytes = c->memory_bytes > 0 && task->bytes ? task->bytes(task->user, image) : 0;
    if (c->memory_bytes > 0 && bytes > c->memory_bytes) {
        take_verdict(c, task->too_large(task->user, image, bytes, &problem), &problem);
        return;
    }
    make_room(d, bytes);
    if (!may_go_on(c))
        return;
    c->dealt = true;
    c->image = image;
    c->image_bytes = bytes;
    c->bytes_in_flight += bytes;
    call_worker(c);
    pthread_cond_broadcast(&c->changed);
}

static void deal_all(dealer *d) {
    workers *c = d->workers;
    bool more = true;
    pthread_mutex_lock(&c->mutex);
    while (more || c->alive > 0) {
        size_t image;
        more = more && may_go_on(c);
        if (more && !c->dealt && (c->idle > 0 || c->started < c->jobs)) {
            more = next_image(d, &image);
            if (more)
                deal_one(d, image);
        } else if (!more && !c->dealt && !c->no_more) {
            c->no_more = true;
            pthread_cond_broadcast(&c->changed);
        } else if (more || c->alive > 0) {
            wait_for_change(d);
        }
    }
    pthread_mutex_unlock(&c->mutex);
}

/* ---- a run ---------------------------------------------------------------------------------- */

/* Cores that this process may use, counted once: tuning runs workers for every evaluation. */
static size_t cores(void) {
    static size_t count;
    dcrf_workspace *workspace = NULL;
    dcrf_error error;
    if (count > 0)
        return count;
    count = dcrf_workspace_new(&workspace, 0, &error) >= 0 ? dcrf_workspace_threads(workspace) : 1;
    dcrf_workspace_free(&workspace);
    return count;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static void run_workers(workers *c, dealer *d) {
    c->workers = calloc(c->jobs, sizeof *c->workers);
    if (c->workers) {
        deal_all(d);
    } else {
        cli_problem problem;
        out_of_memory(&problem, "--jobs");
        stop(c, &problem);
    }
    for (size_t i = 0; i < c->started; i++)
        pthread_join(c->workers[i], NULL);
    free(c->workers);
}

bool workers_run(const workers_options *options, const workers_task *task, workers_count *count,
                 cli_problem *problem) {
    workers c = {.task = task,
                 .memory_bytes = options->memory_bytes,
                 .mutex = PTHREAD_MUTEX_INITIALIZER,
                 .changed = PTHREAD_COND_INITIALIZER};
    dealer d = {.workers = &c, .next = ranks_mine()};
    const size_t available = cores();
    c.jobs = larger(1, smaller(options->jobs > 0 ? options->jobs : available, task->count));
    c.threads = task->threads > 0 ? task->threads : larger(1, available / c.jobs);
    if (task->deal == WORKERS_DEAL_FREE && !(d.counter = ranks_counters_new(1, problem)))
        return false;
    terminal_line_begin(&d.line, task->shown && task->talk == FEEDBACK_NORMAL && ranks_mine() == 0);
    run_workers(&c, &d);
    terminal_line_wipe(&d.line);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.mutex);
    /* From here on ranks wait for each other, even if all were told to stop: none cuts off what
     * others are finishing. If one is dead, the launcher that told the others to stop will kill
     * them. */
    if (d.counter)
        ranks_counters_free(d.counter);
    uint64_t sums[] = {c.done, c.skipped, interrupt_came()};
    ranks_sum(sums, sizeof sums / sizeof sums[0]);
    *count = (workers_count){(size_t)sums[0], (size_t)sums[1], sums[2] > 0};
    if (c.stopped)
        *problem = c.problem;
    return ranks_agree(!c.stopped, problem);
}
