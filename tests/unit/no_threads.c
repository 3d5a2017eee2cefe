/* For the programs of the suite `unthreaded`: their pthread_create, also for libraries that they
 * load. The thread sanitizer leaves them out because they make no thread; one that makes a thread
 * ends here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*start)(void *), void *argument) {
    (void)thread, (void)attributes, (void)start, (void)argument;
    fputs("A program of the suite `unthreaded` makes a thread: take it off the list in "
          "tests/meson.build, so that the thread sanitizer runs it.\n",
          stderr);
    abort();
}
