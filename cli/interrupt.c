#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM};
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

/* Atomic, because any thread may receive the signal; lock-free, as a signal handler requires. */
static atomic_int noted;
static struct sigaction usual_actions[SIGNAL_COUNT];

/* The first signal asks the work to stop; the next one has its usual effect. */
static void note(int number) {
    atomic_store_explicit(&noted, 1, memory_order_relaxed);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (signals[i] == number)
            sigaction(number, &usual_actions[i], NULL);
}

void interrupt_catch(void) {
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    atomic_store_explicit(&noted, 0, memory_order_relaxed);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaction(signals[i], NULL, &usual_actions[i]);
        /* Signals that the parent ignores stay ignored: nohup, or a script's background job. */
        if (usual_actions[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool interrupt_came(void) {
    return atomic_load_explicit(&noted, memory_order_relaxed) != 0;
}

static int is_interrupted(void *user) {
    (void)user;
    return interrupt_came();
}

void interrupt_limit(dcrf_workspace *workspace, const time_frame *time) {
    dcrf_workspace_set_limit(workspace, time_left_s(time), is_interrupted, NULL);
}

void interrupt_release(void) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaction(signals[i], &usual_actions[i], NULL);
}
