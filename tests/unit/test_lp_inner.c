/* How many inner steps a step of the LP gets: none at first, more while they pay off, fewer if they
 * do not, and an occasional trial. */
#include "unit.h"

#include "lp/lp_inner.h"

#define BINS 16

/* With a gap of 4 %, and of 2 % above and below the objective. */
static const struct dcrf_lp_progress wide = {100, 96, 0.04, 97}, near = {100, 98, 0.02, 99},
                                     far = {100, 98, 0.02, 101};

/* A decrease proportional to the steps pays off; one to which the last step adds nothing does
 * not. */
static const double paying[] = {1, 2}, useless[] = {2, 2};

static size_t next(struct dcrf_lp_inner *inner, const double *decrease) {
    const size_t count = dcrf_lp_inner_choose(inner, &wide);
    dcrf_lp_inner_adapt(inner, count, BINS, decrease);
    return count;
}

static void a_run_begins_without(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = {0};
    for (size_t k = 0; k < 32; k++)
        assert_int_equal(next(&inner, paying), 0);
    assert_int_equal(next(&inner, paying), 2);
}

/* Nor does a small gap end them. */
static void but_a_lifted_run_begins_with_some(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = dcrf_lp_inner_begin(true);
    assert_int_equal(dcrf_lp_inner_choose(&inner, &near), 24);
    dcrf_lp_inner_adapt(&inner, 24, BINS, paying);
    assert_int_equal(next(&inner, useless), 48);
    inner = dcrf_lp_inner_begin(false);
    assert_int_equal(next(&inner, paying), 0);
}

static void a_small_gap_needs_none(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = {.steps = 32, .count = 8, .quiet = 10, .bound_before = 98};
    assert_int_equal(dcrf_lp_inner_choose(&inner, &near), 0);
    assert_int_equal(dcrf_lp_inner_choose(&inner, &wide), 8);
}

/* Ten steps that close a tenth of the gap together, or less. */
static void unless_the_bound_stands_still_far_from_the_minimum(void **state) {
    (void)state;
    struct dcrf_lp_inner inner = {.steps = 32, .count = 64, .bound_before = 98};
    for (size_t k = 0; k < 9; k++)
        assert_int_equal(dcrf_lp_inner_choose(&inner, &far), 0);
    assert_int_equal(dcrf_lp_inner_choose(&inner, &far), 8);
    inner.count = 4;
    assert_int_equal(dcrf_lp_inner_choose(&inner, &far), 4);
    inner.bound_before = 97.75; /* an eighth of the gap */
    assert_int_equal(dcrf_lp_inner_choose(&inner, &far), 0);
    assert_int_equal(inner.quiet, 0);
    assert_true(inner.bound_before == far.bound);
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
        cmocka_unit_test(but_a_lifted_run_begins_with_some),
        cmocka_unit_test(a_small_gap_needs_none),
        cmocka_unit_test(unless_the_bound_stands_still_far_from_the_minimum),
        cmocka_unit_test(their_number_follows_what_they_bring),
        cmocka_unit_test(the_last_is_held_against_the_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
