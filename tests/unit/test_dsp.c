#define _POSIX_C_SOURCE 200809L
/* Every instruction set against plain C, entry by entry of the table.
 *
 *   test_dsp           checks
 *   test_dsp --time    checks, then prints the time per call for each set
 *   test_dsp --is-in-use NAME    no checks: exits with 0 if that set is in use
 *
 * A result is a sum of products. However it is ordered, and with or without fused multiply-adds,
 * its rounding error is at most (operations) * 2^-24 times the sum of the absolute products, to
 * first order; two results differ by twice that. The sum of absolutes comes from a second run of
 * plain C on absolute values, so the check is as sharp where terms cancel. */
#include "dense.h"
#include "dsp_cases.h"

#include "core/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__wasm__) && !defined(_WIN32)
#define CAN_FORK
#include <sys/wait.h>
#include <unistd.h>
#endif

#define MOST_SETS 8

#define DSP_ENTRIES                                                                                \
    (DSP_FILTER_ENTRIES + DSP_POINT_ENTRIES + DSP_SOFTMAX_ENTRIES + DSP_PAIR_ENTRIES)

static const struct dsp_entry *entry(size_t e) {
    if (e < DSP_FILTER_ENTRIES)
        return &dsp_filter_entries[e];
    e -= DSP_FILTER_ENTRIES;
    if (e < DSP_POINT_ENTRIES)
        return &dsp_point_entries[e];
    e -= DSP_POINT_ENTRIES;
    return e < DSP_SOFTMAX_ENTRIES ? &dsp_softmax_entries[e]
                                   : &dsp_pair_entries[e - DSP_SOFTMAX_ENTRIES];
}

/* The table consists of its instruction set and functions, each of which has a case. */
_Static_assert(sizeof(struct dcrf_dsp) - offsetof(struct dcrf_dsp, embed_single) ==
                   DSP_ENTRIES * sizeof(void (*)(void)),
               "an entry of the table has no case");

/* Sets other than plain C that run on this machine. */
static size_t other_sets(dcrf_cpu *sets) {
    size_t count = 0;
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++)
        if (cpu != DCRF_CPU_C && dcrf_dsp_for(cpu))
            sets[count++] = cpu;
    return count;
}

/* Asserts that `value` equals `expected` up to the rounding of `operations` operations on terms
 * whose absolute values sum to `size`. */
static void assert_rounded(const float *value, const float *expected, const float *size,
                           size_t count, size_t operations, const char *what, dcrf_cpu cpu) {
    const double unit = (double)(operations + 2) * 0x1p-23;
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)value[i] - (double)expected[i]) <= unit * (double)size[i] + 1e-37))
            fail_msg("%s with %s: %.9g, not %.9g, at %zu", what, dcrf_cpu_name(cpu),
                     (double)value[i], (double)expected[i], i);
}

/* ---- the checks ----------------------------------------------------------------------------- */

static void sets_agree_with_plain_c(void **state) {
    (void)state;
    const size_t cases = SANITIZED ? 100 : 400;
    dcrf_cpu sets[MOST_SETS];
    const size_t count = other_sets(sets);
    if (count == 0)
        print_message("skipped: nothing but plain C here\n");
    for (size_t e = 0; e < DSP_ENTRIES; e++)
        for (uint64_t number = 0; count > 0 && number < cases; number++) {
            double time_s;
            struct dsp_result plain = entry(e)->run(dcrf_dsp_for(DCRF_CPU_C), number, 1, &time_s);
            for (size_t s = 0; s < count; s++) {
                struct dsp_result r = entry(e)->run(dcrf_dsp_for(sets[s]), number, 1, &time_s);
                assert_int_equal(r.count, plain.count);
                assert_rounded(r.value, plain.value, plain.size, plain.count, plain.operations,
                               entry(e)->name, sets[s]);
                free_dsp_result(&r);
            }
            free_dsp_result(&plain);
        }
}

/* Every entry of every table is filled, and each table names its set. */
static void tables_are_complete(void **state) {
    (void)state;
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++) {
        const struct dcrf_dsp *dsp = dcrf_dsp_for(cpu);
        if (!dsp)
            continue;
        assert_int_equal(dsp->cpu, cpu);
        assert_true(dsp->embed_single && dsp->embed_double);
        assert_true(dsp->splat_ring && dsp->slice_ring && dsp->blur_ring);
#ifndef __wasm__
        if (cpu != DCRF_CPU_C) /* plain C would give the same result, slowly */
            assert_true(dsp->splat_ring != dcrf_dsp_for(DCRF_CPU_C)->splat_ring &&
                        dsp->slice_ring != dcrf_dsp_for(DCRF_CPU_C)->slice_ring &&
                        dsp->blur_ring != dcrf_dsp_for(DCRF_CPU_C)->blur_ring);
#endif
        assert_true(dsp->splat_runs && dsp->slice_runs && dsp->blur && dsp->convolve &&
                    dsp->scale && dsp->weigh && dsp->read && dsp->gaussian_sum && dsp->softmax &&
                    dsp->shared_softmax && dsp->negative_exponential && dsp->log_sums &&
                    dsp->sum_window);
        assert_true(dsp->pairs.values && dsp->pairs.product && dsp->pairs.transpose &&
                    dsp->pairs.line);
        assert_true(dsp->pairs_double.values && dsp->pairs_double.product &&
                    dsp->pairs_double.transpose && dsp->pairs_double.line);
    }
    assert_non_null(dcrf_dsp_for(DCRF_CPU_C));
    assert_null(dcrf_dsp_for((dcrf_cpu)17));
    assert_null(dcrf_cpu_name((dcrf_cpu)17));
    assert_non_null(dcrf_dsp_for(dcrf_cpu_best()));
}

static void limits_are_kept(void **state) {
    (void)state;
    dcrf_error error;
    const dcrf_cpu before = dcrf_cpu_in_use();
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++)
        if (dcrf_dsp_for(cpu)) {
            assert_int_equal(dcrf_cpu_limit(cpu, NULL), DCRF_OK);
            assert_int_equal(dcrf_cpu_in_use(), cpu);
            assert_ptr_equal(dcrf_dsp(), dcrf_dsp_for(cpu));
        } else {
            const dcrf_cpu kept = dcrf_cpu_in_use();
            assert_fails(DCRF_ERROR_UNSUPPORTED, dcrf_cpu_name(cpu), error,
                         dcrf_cpu_limit(cpu, &error));
            assert_int_equal(dcrf_cpu_in_use(), kept);
        }
    assert_fails(DCRF_ERROR_UNSUPPORTED, "that instruction set", error,
                 dcrf_cpu_limit((dcrf_cpu)17, &error));
    assert_int_equal(dcrf_cpu_limit(before, NULL), DCRF_OK);
}

static const char *own_path;

#ifdef CAN_FORK
/* Runs this program again with DCRF_CPU set, under the same emulator if any (script/check-cpus);
 * its exit status is the set in use. */
static int set_in_use_with(const char *limit) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (limit)
            setenv("DCRF_CPU", limit, 1);
        else
            unsetenv("DCRF_CPU");
        execl("/bin/sh", "sh", "-c", "exec $EMULATOR \"$0\" --in-use", own_path, (char *)NULL);
        _exit(99);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_environment_limits(void **state) {
    (void)state;
    assert_int_equal(set_in_use_with(NULL), dcrf_cpu_best());
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++)
        assert_int_equal(set_in_use_with(dcrf_cpu_name(cpu)),
                         dcrf_dsp_for(cpu) ? cpu : dcrf_cpu_best());
    assert_int_equal(set_in_use_with("abacus"), dcrf_cpu_best());
    assert_int_equal(set_in_use_with(""), dcrf_cpu_best());
}
#endif

/* ---- the clock ------------------------------------------------------------------------------ */

static void print_times(void) {
    const size_t cases = 80, rounds = 5, repeats = 100;
    dcrf_cpu sets[MOST_SETS + 1] = {DCRF_CPU_C};
    const size_t count = 1 + other_sets(sets + 1);
    printf("%-24s", "ns a call");
    for (size_t s = 0; s < count; s++)
        printf("%16s", dcrf_cpu_name(sets[s]));
    printf("\n");
    for (size_t e = 0; e < DSP_ENTRIES; e++) {
        double plain_s = 0;
        printf("%-24s", entry(e)->name);
        for (size_t s = 0; s < count; s++) {
            double sum_s = 0;
            for (uint64_t number = 0; number < cases; number++) {
                double best_s = INFINITY;
                for (size_t round = 0; round < rounds; round++) {
                    double time_s;
                    struct dsp_result r =
                        entry(e)->run(dcrf_dsp_for(sets[s]), number, repeats, &time_s);
                    best_s = fmin(best_s, time_s);
                    free_dsp_result(&r);
                }
                sum_s += best_s;
            }
            if (s == 0)
                plain_s = sum_s;
            printf("%8.0f (%4.1fx)", sum_s / (double)cases * 1e9, plain_s / sum_s);
        }
        printf("\n");
    }
}

/* For an exponent of -d, the exponential has an error of d 2^-53, which times exp(-d) is at most
 * 0.4 of it, plus some roundings; then come the sums, the logarithm and the last sum. */
static void logarithms_of_sums_are_precise(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++) {
        const struct dcrf_dsp *dsp = dcrf_dsp_for(cpu);
        for (size_t labels = 1; dsp && labels < 40; labels++)
            for (int sign = -1; sign <= 1; sign += 2) {
                enum { ROWS = 7 };
                float rows[ROWS * 40];
                double out[ROWS];
                const double spread[] = {1e-3, 1, 30, 300, 1e5, 3e38, 0};
                for (size_t k = 0; k < ROWS * labels; k++)
                    rows[k] = (float)(spread[k / labels] * (2 * dcrf_rng_uniform(&rng) - 1));
                dsp->log_sums(rows, labels, ROWS, sign, out);
                for (size_t r = 0; r < ROWS; r++) {
                    long double top = -HUGE_VALL, sum = 0;
                    for (size_t i = 0; i < labels; i++)
                        top = fmaxl(top, (long double)(sign * (double)rows[r * labels + i]));
                    for (size_t i = 0; i < labels; i++)
                        sum += expl((long double)(sign * (double)rows[r * labels + i]) - top);
                    const long double exact = logl(sum) + top;
                    assert_true(fabsl((long double)out[r] - exact) <=
                                (long double)(0x1p-53 * ((double)labels + 8 + fabs(out[r]))));
                }
            }
    }
}

int main(int argc, char **argv) {
    own_path = argv[0];
    if (argc > 1 && strcmp(argv[1], "--in-use") == 0)
        return (int)dcrf_cpu_in_use();
    if (argc > 2 && strcmp(argv[1], "--is-in-use") == 0)
        return strcmp(argv[2], dcrf_cpu_name(dcrf_cpu_in_use())) != 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_of_sums_are_precise), cmocka_unit_test(tables_are_complete),
        cmocka_unit_test(sets_agree_with_plain_c),        cmocka_unit_test(limits_are_kept),
#ifdef CAN_FORK
        cmocka_unit_test(the_environment_limits),
#endif
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (argc > 1 && strcmp(argv[1], "--time") == 0)
        print_times();
    return failed;
}
