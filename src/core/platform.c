#if !defined(_WIN32)
#define _GNU_SOURCE /* cpu_set_t, dladdr1, madvise, secure_getenv */
#endif
#include "core/platform.h"

#include "core/timer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <malloc.h>
#include <process.h>
#include <windows.h>
#elif !defined(__wasm__)
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef __wasm_atomics__
#include <stdatomic.h>
#endif

/* ---- memory --------------------------------------------------------------------------------- */

#if defined(_WIN32)

void *dcrf_platform_allocate(size_t alignment, size_t bytes) {
    return _aligned_malloc(bytes, alignment);
}

void dcrf_platform_free(void *memory) {
    _aligned_free(memory);
}

#elif defined(__wasm_atomics__)

/* The heap of wasi-libc is not thread-safe, and loops of the pool allocate. */
static atomic_flag heap_is_taken = ATOMIC_FLAG_INIT;

static void heap_enter(void) {
    while (atomic_flag_test_and_set(&heap_is_taken))
        ;
}

void *dcrf_platform_allocate(size_t alignment, size_t bytes) {
    heap_enter();
    void *memory = aligned_alloc(alignment, bytes);
    atomic_flag_clear(&heap_is_taken);
    return memory;
}

void dcrf_platform_free(void *memory) {
    heap_enter();
    free(memory);
    atomic_flag_clear(&heap_is_taken);
}

#else

void *dcrf_platform_allocate(size_t alignment, size_t bytes) {
    return aligned_alloc(alignment, bytes);
}

void dcrf_platform_free(void *memory) {
    free(memory);
}

#endif

#ifdef DCRF_HAS_HUGE_PAGES

void dcrf_prefer_huge_pages(void *memory, size_t bytes) {
    madvise(memory, bytes, MADV_HUGEPAGE);
}

void dcrf_lend_pages(void *memory, size_t bytes) {
    madvise(memory, bytes, MADV_FREE);
}

void dcrf_return_pages(void *memory, size_t bytes) {
    madvise(memory, bytes, MADV_DONTNEED);
}

void dcrf_follow_forks(void (*before)(void), void (*after)(void)) {
    pthread_atfork(before, after, after);
}

#endif

/* ---- time ----------------------------------------------------------------------------------- */

#if defined(_WIN32)

double dcrf_time_s(void) {
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    return (double)ticks.QuadPart / (double)per_second.QuadPart;
}

#else

double dcrf_time_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif

/* ---- threads -------------------------------------------------------------------------------- */

#if defined(_WIN32)

_Static_assert(sizeof(SRWLOCK) == sizeof(dcrf_mutex), "a lock is one pointer");

void dcrf_mutex_lock(dcrf_mutex *mutex) {
    AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

void dcrf_mutex_unlock(dcrf_mutex *mutex) {
    ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

static CONDITION_VARIABLE changes = CONDITION_VARIABLE_INIT;

static void wait_for_change(dcrf_mutex *mutex) {
    SleepConditionVariableSRW(&changes, (SRWLOCK *)mutex, INFINITE, 0);
}

static void tell_of_change(void) {
    WakeAllConditionVariable(&changes);
}

static unsigned __stdcall run_thread(void *given) {
    const struct dcrf_thread *thread = given;
    thread->run(thread->argument);
    return 0;
}

static int create_thread(struct dcrf_thread *thread) {
    const uintptr_t handle = _beginthreadex(NULL, 0, run_thread, thread, 0, NULL);
    thread->handle = (void *)handle;
    return handle ? 0 : errno;
}

void dcrf_thread_join(struct dcrf_thread *thread) {
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
}

void dcrf_thread_yield(void) {
    SwitchToThread();
}

long dcrf_process_id(void) {
    return 0; /* there is no fork() */
}

size_t dcrf_core_count(void) {
    DWORD_PTR allowed, all;
    size_t cores = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all))
        for (; allowed; allowed &= allowed - 1)
            cores++;
    return cores > 0 ? cores : 1;
}

uint64_t dcrf_core_set(void) {
    DWORD_PTR allowed, all;
    return GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all) ? allowed : 0;
}

int dcrf_current_core(void) {
    return (int)GetCurrentProcessorNumber();
}

#elif !defined(__wasm__)

void dcrf_mutex_lock(dcrf_mutex *mutex) {
    pthread_mutex_lock(mutex);
}

void dcrf_mutex_unlock(dcrf_mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

#ifndef SYS_futex
static pthread_cond_t changes = PTHREAD_COND_INITIALIZER;

static void wait_for_change(dcrf_mutex *mutex) {
    pthread_cond_wait(&changes, mutex);
}

static void tell_of_change(void) {
    pthread_cond_broadcast(&changes);
}

/* A child of fork() must not find the lock held by a thread that it does not have. */
static void sleep_enter(void);
static void sleep_leave(void);
__attribute__((constructor)) static void follow_forks(void) {
    pthread_atfork(sleep_enter, sleep_leave, sleep_leave);
}
#endif

static void *run_thread(void *given) {
    const struct dcrf_thread *thread = given;
    thread->run(thread->argument);
    return NULL;
}

static int create_thread(struct dcrf_thread *thread) {
    sigset_t blocked, before;
    sigfillset(&blocked);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int code = pthread_create(&thread->handle, NULL, run_thread, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

void dcrf_thread_join(struct dcrf_thread *thread) {
    pthread_join(thread->handle, NULL);
}

void dcrf_thread_yield(void) {
    sched_yield();
}

long dcrf_process_id(void) {
    return getpid();
}

size_t dcrf_core_count(void) {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return (size_t)CPU_COUNT(&allowed);
#endif
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (size_t)cores : 1;
}

uint64_t dcrf_core_set(void) {
    uint64_t set = 0;
#if defined(__linux__)
    cpu_set_t allowed;
    uint64_t words[sizeof allowed / sizeof set];
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    memcpy(words, &allowed, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        set = (set ^ words[i]) * 0x9e3779b97f4a7c15;
#endif
    return set;
}

int dcrf_current_core(void) {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

#endif

#if !defined(__wasm__)

int dcrf_thread_start(struct dcrf_thread *thread, void (*run)(void *argument), void *argument) {
    thread->run = run;
    thread->argument = argument;
    return create_thread(thread);
}

#ifdef SYS_futex

/* linux/futex.h, which is not everywhere */
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

void dcrf_sleep_while(atomic_uint *word, unsigned value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

void dcrf_wake(atomic_uint *word, size_t count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count < INT_MAX ? (int)count : INT_MAX);
}

#else

/* One lock and one condition for all words: whoever sleeps is woken, and looks again. */
static dcrf_mutex sleep_mutex = DCRF_MUTEX_INIT;

static void sleep_enter(void) {
    dcrf_mutex_lock(&sleep_mutex);
}

static void sleep_leave(void) {
    dcrf_mutex_unlock(&sleep_mutex);
}

void dcrf_sleep_while(atomic_uint *word, unsigned value) {
    sleep_enter();
    if (atomic_load(word) == value)
        wait_for_change(&sleep_mutex);
    sleep_leave();
}

void dcrf_wake(atomic_uint *word, size_t count) {
    (void)word, (void)count;
    sleep_enter();
    tell_of_change();
    sleep_leave();
}

#endif

#endif

/* ---- libraries ------------------------------------------------------------------------------ */

#if defined(_WIN32)

void *dcrf_library_open(const char *path) {
    return (void *)LoadLibraryA(path);
}

void *dcrf_library_symbol(void *library, const char *name) {
    const FARPROC function = GetProcAddress(library, name);
    void *symbol;
    memcpy(&symbol, &function, sizeof symbol); /* ISO C has no cast between the two */
    return symbol;
}

void dcrf_library_close(void *library) {
    FreeLibrary(library);
}

void dcrf_library_problem(char *text, size_t bytes) {
    snprintf(text, bytes, "it does not load (Windows error %lu)", GetLastError());
}

bool dcrf_own_folder(char *path, size_t bytes) {
    static const char inside = 0;
    HMODULE module;
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            &inside, &module))
        return false;
    const DWORD length = GetModuleFileNameA(module, path, (DWORD)bytes);
    char *slash = length > 0 && length < bytes ? strrchr(path, '\\') : NULL;
    if (slash)
        *slash = 0;
    return slash != NULL;
}

const char *dcrf_library_setting(const char *name) {
    return getenv(name);
}

#elif !defined(__wasm__)

void *dcrf_library_open(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *dcrf_library_symbol(void *library, const char *name) {
    return dlsym(library, name);
}

void dcrf_library_close(void *library) {
    dlclose(library);
}

void dcrf_library_problem(char *text, size_t bytes) {
    const char *said = dlerror();
    snprintf(text, bytes, "%s", said ? said : "it does not load");
}

/* The file that contains this code. argv[0] is not reliable: the caller of exec chooses it. */
static bool find_own_file(char *path, size_t bytes) {
    static const char inside = 0;
    Dl_info own;
#if defined(__GLIBC__)
    struct link_map *map = NULL;
    if (!dladdr1(&inside, &own, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    if (!*map->l_name) { /* the program itself */
        const ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
        path[length > 0 ? length : 0] = 0;
        return length > 0;
    }
#else
    if (!dladdr(&inside, &own) || !own.dli_fname)
        return false;
#endif
    const int length = snprintf(path, bytes, "%s", own.dli_fname);
    return length > 0 && (size_t)length < bytes;
}

bool dcrf_own_folder(char *path, size_t bytes) {
    char *slash = find_own_file(path, bytes) ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = 0;
    return slash != NULL;
}

const char *dcrf_library_setting(const char *name) {
#if defined(__GLIBC__)
    return secure_getenv(name);
#else
    return getenv(name);
#endif
}

#endif
