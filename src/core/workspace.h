/* The workspace: a thread pool, and scratch memory that grows as needed and is then kept, so that a
 * loop allocates nothing after its first iteration. */
#ifndef DCRF_CORE_WORKSPACE_H
#define DCRF_CORE_WORKSPACE_H

#include "core/interrupt.h"
#include "core/lanes.h"
#include "core/threads.h"

#include <dcrf/workspace.h>
#include <stdbool.h>

/* The purpose of a piece of scratch memory. Users that can be active at the same time have separate
 * slots. A slot is a constant where it is used, and is identified by its address. */
struct dcrf_slot {
    const char *purpose;
};

/* The most slots that a workspace can have. */
#define DCRF_MOST_SLOTS 32

/* At least count * bytes bytes in a slot, contents undefined; NULL when out of memory. The pointer
 * is valid until the next call for the same slot. */
void *dcrf_workspace_slot(dcrf_workspace *workspace, const struct dcrf_slot *slot, size_t count,
                          size_t bytes);

/* Release the memory of a slot, which was needed for something larger than what follows. */
void dcrf_workspace_release(dcrf_workspace *workspace, const struct dcrf_slot *slot);

/* Attach an object that lives as long as the workspace, or until another takes its slot; attaching
 * NULL frees it. False if there is no room. */
bool dcrf_workspace_attach(dcrf_workspace *workspace, const struct dcrf_slot *slot, void *object,
                           void (*free_object)(void *object));
void *dcrf_workspace_attached(const dcrf_workspace *workspace, const struct dcrf_slot *slot);

dcrf_pool *dcrf_workspace_pool(dcrf_workspace *workspace);

/* Add a reference: the workspace lives until dcrf_workspace_free has been called once more. */
void dcrf_workspace_hold(dcrf_workspace *workspace);

/* ---- one caller at a time ------------------------------------------------------------------- */

/* Every public call that uses a workspace begins with
 *
 *     DCRF_ENTER(workspace, error);
 *
 * which fails if another thread is inside, and leaves automatically at the end of the block. Nested
 * calls from the same thread are fine. */
dcrf_workspace *dcrf_workspace_enter(dcrf_workspace *workspace, dcrf_error *error);
void dcrf_workspace_leave(dcrf_workspace **workspace);

#define DCRF_ENTER(workspace, error)                                                               \
    __attribute__((cleanup(dcrf_workspace_leave))) dcrf_workspace *entered =                       \
        dcrf_workspace_enter(workspace, error);                                                    \
    if (!entered)                                                                                  \
    return DCRF_ERROR_ARGUMENT

/* ---- ending early --------------------------------------------------------------------------- */

/* Until the end of the block, poll a run's own limit besides that of the workspace, in place of
 * that of an enclosing run; NULL: none. */
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

/* DCRF_STOP_TIME or DCRF_STOP_CANCELLED once the workspace's own limit has been reached, else
 * DCRF_OK; and when its time limit expires, in dcrf_time_s(), or infinity. */
dcrf_status dcrf_workspace_limit(dcrf_workspace *workspace);
double dcrf_workspace_deadline_s(const dcrf_workspace *workspace);

/* Move the deadline of the time limit; callbacks are still polled. */
void dcrf_workspace_put_off(dcrf_workspace *workspace, double deadline_s);

/* Should the current call stop now? Cheap enough for every chunk of a loop: callbacks are polled
 * only every few milliseconds. Only for the thread that made the call. */
bool dcrf_workspace_is_interrupted(dcrf_workspace *workspace);

/* For the tests: poll callbacks every time. */
void dcrf_workspace_ask_always(dcrf_workspace *workspace);

/* dcrf_parallel_for that polls between chunks, never before the first; false if it stopped early.
 * The output of the task is then unspecified. */
__attribute__((warn_unused_result)) bool dcrf_parallel_while(dcrf_workspace *workspace,
                                                             size_t count, size_t grain,
                                                             dcrf_task task, void *context);

/* Between two stages of `what` ("building a lattice"): DCRF_OK, or the error of a call that is to
 * stop early. */
dcrf_status dcrf_go_on(dcrf_workspace *workspace, const char *what, dcrf_error *error);

/* The error of a call that stopped early, in the middle of `what` ("building a lattice"). */
dcrf_status dcrf_fail_interrupted(dcrf_workspace *workspace, const char *what, dcrf_error *error);

#endif
