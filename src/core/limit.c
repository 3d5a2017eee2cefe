/* One caller at a time, and stopping early: the workspace's state for both. */
#include "core/error.h"
#include "core/timer.h"
#include "core/workspace.h"
#include "core/workspace_held.h"

#include <math.h>

/* ---- one caller at a time ------------------------------------------------------------------- */

/* Its address tells threads apart. In WebAssembly one thread makes all calls. */
#ifdef __wasm__
static char this_thread;
#else
static _Thread_local char this_thread;
#endif

dcrf_workspace *dcrf_workspace_enter(dcrf_workspace *workspace, dcrf_error *error) {
    if (!workspace) {
        dcrf_fail_null(error, "the workspace");
        return NULL;
    }
    struct dcrf_use *use = &workspace->use;
    uintptr_t owner = 0;
    if (atomic_compare_exchange_strong(&use->owner, &owner, (uintptr_t)&this_thread)) {
        use->depth = 0;
        use->limit.is_cancelled = false;
        use->asked_s = dcrf_time_s();
    } else if (owner != (uintptr_t)&this_thread) {
        dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                  "the workspace is in use by another thread: give each thread its own");
        return NULL;
    }
    use->depth++;
    return workspace;
}

void dcrf_workspace_leave(dcrf_workspace **entered) {
    if (*entered && --(*entered)->use.depth == 0)
        atomic_store(&(*entered)->use.owner, 0);
}

/* ---- ending early --------------------------------------------------------------------------- */

/* How often callbacks are polled during loops. */
#define ASK_EVERY_S 2e-3

void dcrf_workspace_set_limit(dcrf_workspace *workspace, double time_limit_s,
                              int (*cancel)(void *user), void *cancel_user) {
    if (!workspace)
        return;
    workspace->use.limit = (struct dcrf_limit){
        .time_limit_s = time_limit_s > 0 ? time_limit_s : 0,
        .deadline_s = time_limit_s > 0 ? dcrf_time_s() + time_limit_s : (double)INFINITY,
        .cancel = cancel,
        .cancel_user = cancel_user};
}

double dcrf_workspace_deadline_s(const dcrf_workspace *workspace) {
    const struct dcrf_limit *limit = &workspace->use.limit;
    return limit->time_limit_s > 0 ? limit->deadline_s : (double)INFINITY;
}

void dcrf_workspace_put_off(dcrf_workspace *workspace, double deadline_s) {
    workspace->use.limit.deadline_s = deadline_s;
}

dcrf_status dcrf_workspace_limit(dcrf_workspace *workspace) {
    struct dcrf_limit *limit = &workspace->use.limit;
    if (!limit->is_cancelled && limit->cancel)
        limit->is_cancelled = limit->cancel(limit->cancel_user) != 0;
    return limit->is_cancelled                                     ? DCRF_STOP_CANCELLED
           : dcrf_time_s() >= dcrf_workspace_deadline_s(workspace) ? DCRF_STOP_TIME
                                                                   : DCRF_OK;
}

struct dcrf_watch dcrf_watch_begin(dcrf_workspace *workspace,
                                   const struct dcrf_interrupt *interrupt) {
    const struct dcrf_watch watch = {workspace, workspace->use.interrupt};
    workspace->use.interrupt = interrupt;
    return watch;
}

void dcrf_watch_end(struct dcrf_watch *watch) {
    watch->workspace->use.interrupt = watch->before;
}

void dcrf_workspace_ask_always(dcrf_workspace *workspace) {
    workspace->use.asks_always = true;
}

bool dcrf_workspace_is_interrupted(dcrf_workspace *workspace) {
    struct dcrf_use *use = &workspace->use;
    const double now_s = dcrf_time_s();
    if (now_s - use->asked_s < ASK_EVERY_S && !use->asks_always)
        return false;
    use->asked_s = now_s;
    return dcrf_is_interrupted(use->interrupt) || dcrf_workspace_limit(workspace) != DCRF_OK;
}

dcrf_status dcrf_fail_interrupted(dcrf_workspace *workspace, const char *what, dcrf_error *error) {
    const struct dcrf_limit *limit = &workspace->use.limit;
    if (!limit->is_cancelled && dcrf_time_s() >= dcrf_workspace_deadline_s(workspace))
        return dcrf_fail(error, DCRF_ERROR_INTERRUPTED, "the time limit ended while %s", what);
    return dcrf_fail(error, DCRF_ERROR_INTERRUPTED, "interrupted while %s", what);
}

dcrf_status dcrf_go_on(dcrf_workspace *workspace, const char *what, dcrf_error *error) {
    return dcrf_workspace_is_interrupted(workspace) ? dcrf_fail_interrupted(workspace, what, error)
                                                    : DCRF_OK;
}

/* ---- loops ---------------------------------------------------------------------------------- */

struct watched {
    dcrf_workspace *workspace;
    dcrf_task task;
    void *context;
    atomic_bool is_over;
};

/* Worker 0 is the thread that made the call. */
static void run_watched(void *context, size_t begin, size_t end, size_t worker) {
    struct watched *loop = context;
    if (worker == 0 && begin > 0 && dcrf_workspace_is_interrupted(loop->workspace))
        atomic_store_explicit(&loop->is_over, true, memory_order_relaxed);
    if (!atomic_load_explicit(&loop->is_over, memory_order_relaxed))
        loop->task(loop->context, begin, end, worker);
}

bool dcrf_parallel_while(dcrf_workspace *workspace, size_t count, size_t grain, dcrf_task task,
                         void *context) {
    struct watched watched = {.workspace = workspace, .task = task, .context = context};
    dcrf_parallel_loop(dcrf_workspace_pool(workspace),
                       &(struct dcrf_loop){.task = run_watched,
                                           .context = &watched,
                                           .count = count,
                                           .grain = grain,
                                           .work = (dcrf_work)task});
    return !atomic_load_explicit(&watched.is_over, memory_order_relaxed);
}
