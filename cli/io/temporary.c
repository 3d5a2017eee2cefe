#include "io/temporary.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX ".dcrf-temporary-"
#define PATTERN PREFIX "XXXXXX"

/* ---- existing files ------------------------------------------------------------------------- */

/* Paths that a signal handler can read at any time. A path that is too long, or does not fit the
 * table, is not guarded. */
#define GUARDED_MAX 64
#define PATH_BYTES 4096
enum { SLOT_FREE, SLOT_USED };

static struct {
    atomic_int state;
    char path[PATH_BYTES];
} guarded[GUARDED_MAX];

/* For threads; the handler relies on the states alone. */
static pthread_mutex_t slots = PTHREAD_MUTEX_INITIALIZER;

static void guard(const char *path) {
    const size_t bytes = strlen(path) + 1;
    pthread_mutex_lock(&slots);
    for (size_t i = 0; bytes <= PATH_BYTES && i < GUARDED_MAX; i++) {
        if (atomic_load(&guarded[i].state) != SLOT_FREE)
            continue;
        memcpy(guarded[i].path, path, bytes);
        atomic_store(&guarded[i].state, SLOT_USED);
        break;
    }
    pthread_mutex_unlock(&slots);
}

static void release(const char *path) {
    pthread_mutex_lock(&slots);
    for (size_t i = 0; i < GUARDED_MAX; i++)
        if (atomic_load(&guarded[i].state) == SLOT_USED && strcmp(guarded[i].path, path) == 0)
            atomic_store(&guarded[i].state, SLOT_FREE);
    pthread_mutex_unlock(&slots);
}

/* ---- signals -------------------------------------------------------------------------------- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static void remove_and_end(int number) {
    for (size_t i = 0; i < GUARDED_MAX; i++)
        if (atomic_load(&guarded[i].state) == SLOT_USED)
            unlink(guarded[i].path);
    signal(number, SIG_DFL);
    raise(number);
}

void temporary_guard_signals(void) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction action, usual;
        /* If the command was started with a signal ignored, as by nohup, it stays ignored. */
        if (sigaction(signals[i], NULL, &usual) != 0 || usual.sa_handler == SIG_IGN)
            continue;
        memset(&action, 0, sizeof action);
        action.sa_handler = remove_and_end;
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], &action, NULL);
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

int temporary_create(const char *target, char **name) {
    const char *slash = strrchr(target, '/');
    const size_t folder_length = slash ? (size_t)(slash - target) + 1 : 0;
    *name = malloc(folder_length + sizeof PATTERN);
    if (!*name) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(*name, target, folder_length);
    memcpy(*name + folder_length, PATTERN, sizeof PATTERN);
    /* A signal between the two would leave the file behind. */
    sigset_t guarded_signals, before;
    sigemptyset(&guarded_signals);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(&guarded_signals, signals[i]);
    pthread_sigmask(SIG_BLOCK, &guarded_signals, &before);
    const int descriptor = mkstemp(*name);
    const int cause = errno;
    if (descriptor >= 0)
        guard(*name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (descriptor >= 0)
        return descriptor;
    errno = cause;
    free(*name);
    *name = NULL;
    return -1;
}

bool temporary_rename(const char *name, const char *target) {
    if (rename(name, target) != 0)
        return false;
    release(name);
    return true;
}

void temporary_remove(const char *name) {
    unlink(name);
    release(name);
}

bool temporary_is_name(const char *name) {
    return strlen(name) == strlen(PATTERN) && strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}
