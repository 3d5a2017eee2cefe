/* As much of cmocka as the unit tests of the library use, for systems that have none: without
 * setjmp, which WebAssembly does not have, a failed assertion says where and ends the program. */
#ifndef DCRF_TESTS_SHIM_CMOCKA_H
#define DCRF_TESTS_SHIM_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function)                                                                 \
    { #function, function }

/* Leaves the function that it stands in, which is the test. */
#define skip()                                                                                     \
    do {                                                                                           \
        printf("skipped\n");                                                                       \
        return;                                                                                    \
    } while (0)

#define print_message(...) printf(__VA_ARGS__)

#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        exit(1);                                                                                   \
    } while (0)
#define fail() fail_msg("failed")

#define assert_true(c)                                                                             \
    do {                                                                                           \
        if (!(c))                                                                                  \
            fail_msg("not true: %s", #c);                                                          \
    } while (0)
#define assert_false(c) assert_true(!(c))
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b) assert_true((const void *)(a) != (const void *)(b))
#define assert_string_equal(a, b)                                                                  \
    do {                                                                                           \
        if (strcmp((a), (b)) != 0)                                                                 \
            fail_msg("\"%s\" is not \"%s\"", (a), (b));                                            \
    } while (0)
#define assert_memory_equal(a, b, bytes) assert_true(memcmp((a), (b), (bytes)) == 0)
#define assert_memory_not_equal(a, b, bytes) assert_true(memcmp((a), (b), (bytes)) != 0)
#define assert_int_not_equal(a, b) assert_true((uint64_t)(a) != (uint64_t)(b))
#define assert_int_equal(a, b)                                                                     \
    do {                                                                                           \
        const uint64_t left_value = (uint64_t)(a), right_value = (uint64_t)(b);                    \
        if (left_value != right_value)                                                             \
            fail_msg("%s is %lld, %s is %lld", #a, (long long)left_value, #b,                      \
                     (long long)right_value);                                                      \
    } while (0)

typedef int (*group_fixture)(void **state);

static inline int run_group(const struct CMUnitTest *tests, size_t count, group_fixture setup,
                            group_fixture teardown) {
    void *group_state = NULL;
    if (setup && setup(&group_state) != 0)
        fail_msg("the setup failed");
    for (size_t i = 0; i < count; i++) {
        void *state = group_state;
        printf("%s\n", tests[i].name);
        fflush(stdout);
        tests[i].run(&state);
    }
    if (teardown && teardown(&group_state) != 0)
        fail_msg("the teardown failed");
    printf("%zu passed\n", count);
    return 0;
}
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    run_group((tests), sizeof(tests) / sizeof((tests)[0]), (setup), (teardown))

#endif
