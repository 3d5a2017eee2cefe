/* How many inner steps a step of the LP gets: none at first, more while they pay off, fewer if they
 * do not, and an occasional trial. */
#include "unit.h"

#include "lp/lp_inner.h"

#define BINS 16
#define WIDE 0.1 /* an open gap */

/* A decrease proportional to the steps pays off; one to which the last step adds nothing does
 * not. */
static const double paying[] = {1, 2}, useless[] = {2, 2};

static size_t next(struct dcrf_lp_inner *inner, const double *decrease) {
    const size_t count = dcrf_lp_inner_choose(inner, WIDE);
    dcrf_lp_inner_judge(inner, count, BINS, decrease);
    return count;
}

static void a_run_begins_without(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = {0};
    for (size_t k = 0; k < 32; k++)
        assert_int_equal(next(&inner, paying), 0);
    assert_int_equal(next(&inner, paying), 2);
}

static void a_small_gap_needs_none(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = {.steps = 32, .count = 8};
    assert_int_equal(dcrf_lp_inner_choose(&inner, 0.02), 0);
    assert_int_equal(dcrf_lp_inner_choose(&inner, 0.04), 8);
}

static void their_number_follows_what_they_bring(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = {.steps = 32};
    for (size_t count = 2; count < 64; count *= 2)
        assert_int_equal(next(&inner, paying), count);
    assert_int_equal(next(&inner, paying), 64);
    assert_int_equal(next(&inner, useless), 64);
    for (size_t count = 32; count >= 2; count /= 2)
        assert_int_equal(next(&inner, useless), count);
    for (size_t k = 0; k < 16; k++)
        assert_int_equal(next(&inner, paying), 0);
    assert_int_equal(next(&inner, paying), 2);
    assert_int_equal(next(&inner, paying), 4);
}

/* Two inner steps are 8 of 16 + 6 + 8 units of work, so the last one pays off if it gains more than
 * 4/30. */
static void the_last_is_held_against_the_average(void **state) {
    (void)state;
    const double less[] = {27, 30}, more[] = {25, 30};
    struct dcrf_lp_inner inner = {.steps = 32};
    assert_int_equal(next(&inner, more), 2);
    assert_int_equal(next(&inner, less), 4);
    assert_int_equal(next(&inner, less), 2);
    assert_int_equal(next(&inner, more), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_begins_without),
        cmocka_unit_test(a_small_gap_needs_none),
        cmocka_unit_test(their_number_follows_what_they_bring),
        cmocka_unit_test(the_last_is_held_against_the_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
