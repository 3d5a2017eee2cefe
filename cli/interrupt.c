#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM};
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static volatile sig_atomic_t noted;
static struct sigaction usual_actions[SIGNAL_COUNT];

/* The first signal asks for an end; the next one has its usual effect. */
static void note(int number) {
    noted = 1;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (signals[i] == number)
            sigaction(number, &usual_actions[i], NULL);
}

void interrupt_catch(void) {
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    noted = 0;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaction(signals[i], &action, &usual_actions[i]);
}

bool interrupt_came(void) {
    return noted != 0;
}

void interrupt_release(void) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaction(signals[i], &usual_actions[i], NULL);
}
