/* What ISO C lacks. All code of the library that differs between systems is in platform.c, for
 * POSIX, Windows and WebAssembly, including the clock of core/timer.h. (WebAssembly has no threads
 * of its own; its pool is core/wasm/threads.c.) */
#ifndef DCRF_CORE_PLATFORM_H
#define DCRF_CORE_PLATFORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this built for a tool that follows every block of memory and every thread? */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DCRF_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
    __has_feature(thread_sanitizer)
#define DCRF_IS_SANITIZED
#endif
#endif

/* ---- memory --------------------------------------------------------------------------------- */

/* `bytes` is a positive multiple of the alignment, a power of two. NULL when out of memory. */
void *dcrf_platform_allocate(size_t alignment, size_t bytes);
void dcrf_platform_free(void *memory);

#if defined(__linux__)
/* Request huge pages; let the system reclaim pages until they are next written; or return pages to
 * it at once: they are zero when next touched. */
#define DCRF_HAS_HUGE_PAGES
void dcrf_prefer_huge_pages(void *memory, size_t bytes);
void dcrf_lend_pages(void *memory, size_t bytes);
void dcrf_return_pages(void *memory, size_t bytes);

/* Call `before` before every fork() from now on, and `after` after it in both processes. */
void dcrf_follow_forks(void (*before)(void), void (*after)(void));
#endif

/* ---- threads -------------------------------------------------------------------------------- */

#if !defined(__wasm__)

#if defined(_WIN32)
typedef struct dcrf_mutex {
    void *lock; /* an SRWLOCK */
} dcrf_mutex;
typedef void *dcrf_thread_handle;
#define DCRF_MUTEX_INIT                                                                            \
    { NULL }
#else
#include <pthread.h>
typedef pthread_mutex_t dcrf_mutex;
typedef pthread_t dcrf_thread_handle;
#define DCRF_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#endif

void dcrf_mutex_lock(dcrf_mutex *mutex);
void dcrf_mutex_unlock(dcrf_mutex *mutex);

/* Sleep while a word has a value; may return earlier. A thread that changes the word and then wakes
 * sleepers wakes `count` of them, or more, and none falls asleep for the old value afterwards. */
void dcrf_sleep_while(atomic_uint *word, unsigned value);
void dcrf_wake(atomic_uint *word, size_t count);

/* Must not move until the thread has been joined. */
struct dcrf_thread {
    dcrf_thread_handle handle;
    void (*run)(void *argument);
    void *argument;
};

/* Start a thread that blocks the program's signals, so that they are handled in the program's own
 * threads; only signals raised by a fault in the thread itself still reach a crash handler. Returns
 * zero or an error number. */
int dcrf_thread_start(struct dcrf_thread *thread, void (*run)(void *argument), void *argument);
void dcrf_thread_join(struct dcrf_thread *thread);
void dcrf_thread_yield(void);

/* Differs between the two sides of a fork(). */
long dcrf_process_id(void);

/* Cores available to this thread: a container or taskset may allow fewer than there are. And a
 * number that differs between sets of them, if that is known. */
size_t dcrf_core_count(void);
uint64_t dcrf_core_set(void);

/* The core that runs this thread now; negative if unknown. */
int dcrf_current_core(void);

#endif

/* ---- libraries ------------------------------------------------------------------------------ */

#if !defined(__wasm__)
#define DCRF_HAS_LOADER

/* NULL on failure; dcrf_library_problem then says why, in the same thread. */
void *dcrf_library_open(const char *path);
void *dcrf_library_symbol(void *library, const char *name);
void dcrf_library_close(void *library);
void dcrf_library_problem(char *text, size_t bytes);

/* The folder of the program or library that contains this code; false if unknown. */
bool dcrf_own_folder(char *path, size_t bytes);

/* An environment variable about a library to load; NULL where the environment is not to be trusted,
 * in a program with more privileges than the user who starts it. */
const char *dcrf_library_setting(const char *name);

#endif

#endif
