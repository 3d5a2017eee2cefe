/* The workspace: a pool of threads and scratch memory that grows to what is needed and is then
 * kept, so that a loop allocates nothing after its first turn. */
#ifndef DCRF_CORE_WORKSPACE_H
#define DCRF_CORE_WORKSPACE_H

#include "core/interrupt.h"
#include "core/threads.h"

#include <dcrf/workspace.h>
#include <stdbool.h>

/* What a piece of scratch memory is for. Each user that can be active together with another has a
 * slot of its own, a constant where it is used, which is known by its address. */
struct dcrf_slot {
    const char *purpose;
};

/* A workspace has room for this many. */
#define DCRF_MOST_SLOTS 32

/* At least count * bytes bytes in a slot, contents undefined; NULL when memory is out. The pointer
 * is valid until the next call for the same slot. */
void *dcrf_workspace_slot(dcrf_workspace *workspace, const struct dcrf_slot *slot, size_t count,
                          size_t bytes);

/* Give a workspace an object that lives as long as it does, or until another one takes its slot;
 * NULL takes it away. False where there is no room. */
bool dcrf_workspace_attach(dcrf_workspace *workspace, const struct dcrf_slot *slot, void *object,
                           void (*free_object)(void *object));
void *dcrf_workspace_attached(const dcrf_workspace *workspace, const struct dcrf_slot *slot);

/* The pool of a workspace. */
dcrf_pool *dcrf_workspace_pool(dcrf_workspace *workspace);

/* ---- one caller at a time ------------------------------------------------------------------- */

/* Every public call that works with a workspace begins with
 *
 *     DCRF_ENTER(workspace, error);
 *
 * which fails where another thread is inside, and leaves by itself at the end of the block. Calls
 * within calls of the same thread are fine. */
dcrf_workspace *dcrf_workspace_enter(dcrf_workspace *workspace, dcrf_error *error);
void dcrf_workspace_leave(dcrf_workspace **workspace);

#define DCRF_ENTER(workspace, error)                                                               \
    __attribute__((cleanup(dcrf_workspace_leave))) dcrf_workspace *entered =                       \
        dcrf_workspace_enter(workspace, error);                                                    \
    if (!entered)                                                                                  \
    return DCRF_ERROR_ARGUMENT

/* ---- ending early --------------------------------------------------------------------------- */

/* To the end of the block, a run's own limit is asked besides that of the workspace, and no longer
 * that of a run around it; NULL: none is. */
#define DCRF_WATCH(workspace, interrupt)                                                           \
    __attribute__((cleanup(dcrf_watch_end), unused)) struct dcrf_watch watch =                     \
        dcrf_watch_begin(workspace, interrupt)

struct dcrf_watch {
    dcrf_workspace *workspace;
    const struct dcrf_interrupt *before;
};

struct dcrf_watch dcrf_watch_begin(dcrf_workspace *workspace,
                                   const struct dcrf_interrupt *interrupt);
void dcrf_watch_end(struct dcrf_watch *watch);

/* DCRF_STOP_TIME or DCRF_STOP_CANCELLED where the workspace's own limit has been reached, else
 * DCRF_OK; and the time at which it will be, in dcrf_time_s(), or infinity. */
dcrf_status dcrf_workspace_limit(dcrf_workspace *workspace);
double dcrf_workspace_deadline_s(const dcrf_workspace *workspace);

/* Put off the end of the time limit, for what is said of it; callbacks are still asked. */
void dcrf_workspace_put_off(dcrf_workspace *workspace, double deadline_s);

/* Should what is being done end now? Cheap enough for every chunk of a loop: the question goes on
 * to callbacks every few milliseconds only. To be asked by the thread that made the call. */
bool dcrf_workspace_is_interrupted(dcrf_workspace *workspace);

/* For the tests: every question goes on. */
void dcrf_workspace_ask_always(dcrf_workspace *workspace);

/* dcrf_parallel_for that asks between chunks, never before the first; false where it ended early.
 * What the task was to write is unspecified then. */
__attribute__((warn_unused_result)) bool dcrf_parallel_while(dcrf_workspace *workspace,
                                                             size_t count, size_t grain,
                                                             dcrf_task task, void *context);

/* Between two stages of `what` ("building a lattice"): DCRF_OK, or the error of a call that is to
 * end early. */
dcrf_status dcrf_go_on(dcrf_workspace *workspace, const char *what, dcrf_error *error);

/* The error of a call that ended early, in the middle of `what` ("building a lattice"). */
dcrf_status dcrf_fail_interrupted(dcrf_workspace *workspace, const char *what, dcrf_error *error);

#endif
