/* Every allocation of every scenario fails once: an error with a message, and no leak. And every
 * scenario runs with a stack of 64 KB, in the calling thread and in those of the pool. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for pthread_setattr_default_np */
#endif
#include "dense.h"
#include "scenarios.h"
#include "unit.h"

#include "core/memory.h"

#include <pthread.h>
#include <stdlib.h>

static void failing_allocations_are_errors(void **state) {
    (void)state;
    for (size_t i = 0; i < scenario_count; i++) {
        const size_t refused = check_failing_allocations(scenarios[i].name, scenarios[i].run);
        print_message("%s: %zu requests refused one by one\n", scenarios[i].name, refused);
        assert_true(refused >= scenarios[i].least_requests);
    }
}

#if defined(__GLIBC__)
static void *run_all(void *statuses) {
    for (size_t i = 0; i < scenario_count; i++) {
        dcrf_error error;
        ((dcrf_status *)statuses)[i] = scenarios[i].run(&error);
    }
    return NULL;
}

/* A thread that overruns its stack hits a guard page, and the test crashes. */
static void a_stack_of_64_kb_is_enough(void **state) {
    (void)state;
    pthread_attr_t usual, small;
    pthread_t thread;
    if (SANITIZED)
        skip(); /* sanitizers pad every variable */
    dcrf_status *statuses = malloc(scenario_count * sizeof *statuses);
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 64 * 1024), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_all, statuses), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&small);
    for (size_t i = 0; i < scenario_count; i++)
        assert_int_equal(statuses[i], DCRF_OK);
    free(statuses);
}
#endif

int main(void) {
    release_what_is_kept = dcrf_trim_memory;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_allocations_are_errors),
#if defined(__GLIBC__)
        cmocka_unit_test(a_stack_of_64_kb_is_enough),
#endif
    };
    setenv("DCRF_CUDA_LIBRARY", FAKE_BACKEND, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
