/* Status names, memory, random numbers, the workspace, the version. */
#include "unit.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/owned.h"
#include "core/platform.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "core/timer.h"
#include "core/workspace.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <stdio.h>
#include <string.h>

static void status_names_go_both_ways(void **state) {
    (void)state;
    size_t named = 0;
    for (int value = -100; value <= 100; value++) {
        const char *name = dcrf_status_name((dcrf_status)value);
        if (!name)
            continue;
        dcrf_status back = DCRF_ERROR_ARGUMENT;
        assert_int_equal(dcrf_status_from_name(name, &back), 1);
        assert_int_equal(back, value);
        named++;
    }
    /* The enum is without gaps. */
    assert_int_equal(named, DCRF_STOP_CANCELLED - DCRF_ERROR_INTERRUPTED + 1);
    assert_string_equal(dcrf_status_name(DCRF_OK), "ok");
    assert_string_equal(dcrf_status_name(DCRF_ERROR_SIZE), "size");
    assert_string_equal(dcrf_status_name(DCRF_STOP_GAP), "gap");
}

static void unknown_status_names_are_refused(void **state) {
    (void)state;
    dcrf_status status = DCRF_STOP_TIME;
    assert_int_equal(dcrf_status_from_name("no such status", &status), 0);
    assert_int_equal(dcrf_status_from_name("", &status), 0);
    assert_int_equal(dcrf_status_from_name(NULL, &status), 0);
    assert_int_equal(dcrf_status_from_name("time", NULL), 0);
    assert_int_equal(status, DCRF_STOP_TIME);
}

/* Names map back to their values and differ, and there are `count` of them. */
#define NAMES_GO_BOTH_WAYS(type, count)                                                            \
    for (int value = -1; value <= (count); value++) {                                              \
        type back = (type)(count);                                                                 \
        const char *name = type##_name((type)value);                                               \
        if (value < 0 || value == (count)) {                                                       \
            assert_null(name);                                                                     \
            continue;                                                                              \
        }                                                                                          \
        assert_int_equal(type##_from_name(name, &back), 1);                                        \
        assert_int_equal(back, value);                                                             \
        assert_int_equal(type##_from_name("no such name", &back), 0);                              \
        assert_int_equal(type##_from_name(NULL, &back), 0);                                        \
        assert_int_equal(type##_from_name(name, NULL), 0);                                         \
        assert_int_equal(back, value);                                                             \
    }

static void names_of_enums_go_both_ways(void **state) {
    (void)state;
    NAMES_GO_BOTH_WAYS(dcrf_candidate_kind, DCRF_CANDIDATE_KINDS)
    NAMES_GO_BOTH_WAYS(dcrf_clique_form, DCRF_CLIQUE_SPREAD + 1)
    NAMES_GO_BOTH_WAYS(dcrf_compatibility, DCRF_COMPATIBILITY_MATRIX + 1)
    NAMES_GO_BOTH_WAYS(dcrf_cpu, DCRF_CPU_SIMD128 + 1)
    NAMES_GO_BOTH_WAYS(dcrf_densecrf_normalization, DCRF_DENSECRF_SYMMETRIC + 1)
    NAMES_GO_BOTH_WAYS(dcrf_direction, DCRF_ADJOINT + 1)
    NAMES_GO_BOTH_WAYS(dcrf_kernel_kind, DCRF_KERNEL_FEATURES + 1)
    NAMES_GO_BOTH_WAYS(dcrf_lp_schedule, DCRF_LP_SCHEDULE_PAPER + 1)
    NAMES_GO_BOTH_WAYS(dcrf_mask_kind, DCRF_MASK_TRIMAP + 1)
    NAMES_GO_BOTH_WAYS(dcrf_method, DCRF_METHOD_LP + 1)
    NAMES_GO_BOTH_WAYS(dcrf_normalization, DCRF_NORMALIZE_SYMMETRIC + 1)
    NAMES_GO_BOTH_WAYS(dcrf_operator_kind, DCRF_OPERATOR_LATTICE + 1)
    NAMES_GO_BOTH_WAYS(dcrf_proving, DCRF_PROVE_CERTIFICATE + 1)
    NAMES_GO_BOTH_WAYS(dcrf_scribbles_stage, DCRF_SCRIBBLES_MEAN_FIELD + 1)
    NAMES_GO_BOTH_WAYS(dcrf_stage, DCRF_STAGE_PROOF + 1)
    NAMES_GO_BOTH_WAYS(dcrf_superpixel_method, DCRF_SUPERPIXEL_SLIC + 1)
    NAMES_GO_BOTH_WAYS(dcrf_type, DCRF_BF16 + 1)
    NAMES_GO_BOTH_WAYS(dcrf_unary_kind, DCRF_UNARY_LOGITS + 1)
    for (unsigned bit = 1; bit < 8; bit *= 2) { /* values of dcrf_warning are combined */
        dcrf_warning back = (dcrf_warning)0;
        assert_int_equal(dcrf_warning_from_name(dcrf_warning_name((dcrf_warning)bit), &back), 1);
        assert_int_equal(back, bit);
        assert_non_null(dcrf_warning_text(back));
    }
    assert_null(dcrf_warning_name((dcrf_warning)3));
    assert_null(dcrf_warning_text((dcrf_warning)8));
    assert_int_equal(dcrf_warning_from_name("constant", NULL), 0);
    /* The table is in the order of the values. */
    assert_string_equal(dcrf_method_name(DCRF_METHOD_QP), "qp");
    assert_string_equal(dcrf_type_name(DCRF_I16), "i16");
    assert_string_equal(dcrf_densecrf_normalization_name(DCRF_DENSECRF_AFTER), "after");
}

static void errors_are_values(void **state) {
    (void)state;
    dcrf_error error;
    assert_fails(DCRF_ERROR_SIZE, "3 of 7", error,
                 dcrf_fail(&error, DCRF_ERROR_SIZE, "%d of %d", 3, 7));
    assert_fails(DCRF_ERROR_MEMORY, "the table", error, dcrf_fail_memory(&error, "the table"));
    assert_int_equal(dcrf_fail(NULL, DCRF_ERROR_OVERLAP, "nobody listens"), DCRF_ERROR_OVERLAP);
}

static void long_messages_are_cut(void **state) {
    (void)state;
    char text[3 * DCRF_ERROR_MESSAGE_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    dcrf_error error;
    dcrf_fail(&error, DCRF_ERROR_ARGUMENT, "%s", text);
    assert_int_equal(strlen(error.message), DCRF_ERROR_MESSAGE_BYTES - 1);
}

static void multiplication_notices_overflow(void **state) {
    (void)state;
    size_t product = 1;
    assert_true(dcrf_multiply(SIZE_MAX, 1, &product));
    assert_true(product == SIZE_MAX);
    assert_true(dcrf_multiply(0, SIZE_MAX, &product));
    assert_true(product == 0);
    assert_true(dcrf_multiply(SIZE_MAX, 0, &product));
    product = 42;
    assert_false(dcrf_multiply(SIZE_MAX / 2 + 1, 2, &product));
    assert_false(dcrf_multiply(SIZE_MAX, SIZE_MAX, &product));
    assert_true(product == 42);
}

static void memory_is_aligned_and_checked(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < 300; bytes += 7) {
        unsigned char *memory = dcrf_allocate_zero(bytes, 1);
        assert_non_null(memory);
        assert_true((uintptr_t)memory % DCRF_ALIGNMENT == 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
        dcrf_release(memory);
    }
    assert_null(dcrf_allocate(SIZE_MAX, 2));
    assert_null(dcrf_allocate(SIZE_MAX, 1));
    assert_null(dcrf_allocate((size_t)PTRDIFF_MAX, 1));
    assert_null(dcrf_allocate_zero(SIZE_MAX / 8 + 2, 8));
    dcrf_release(NULL);
}

/* Any number of arrays; a request that fails is remembered until all are released. */
static void arrays_are_owned_together(void **state) {
    (void)state;
    struct dcrf_owned owned = {0};
    for (size_t k = 1; k < 100; k++) {
        unsigned char *array = k % 2 ? dcrf_own(&owned, k, 7) : dcrf_own_zero(&owned, 7, k);
        assert_non_null(array);
        for (size_t i = 0; i < 7 * k && k % 2 == 0; i++)
            assert_int_equal(array[i], 0);
        memset(array, (int)k, 7 * k);
    }
    for (size_t k = 1; k < 100; k++)
        assert_int_equal(((unsigned char *)owned.arrays[k - 1])[7 * k - 1], k);
    assert_false(owned.is_short);
    assert_null(dcrf_own(&owned, SIZE_MAX, 2));
    assert_true(owned.is_short);
    assert_null(dcrf_own_zero(&owned, 1, 1));
    dcrf_disown(&owned);
    assert_false(owned.is_short);
    assert_non_null(dcrf_own(&owned, 1, 1));
    dcrf_disown(&owned);
    dcrf_disown(&owned);
}

static dcrf_status leave_early(dcrf_status status, size_t *left) {
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    DCRF_SCOPED char *memory = dcrf_allocate(3, 1);
    assert_non_null(dcrf_own(&owned, 3, 1));
    assert_non_null(memory);
    TRY(status);
    ++*left;
    return DCRF_OK;
}

/* What is left over, the sanitizers notice. */
static void only_errors_leave_early(void **state) {
    (void)state;
    size_t left = 0;
    assert_int_equal(leave_early(DCRF_ERROR_SIZE, &left), DCRF_ERROR_SIZE);
    assert_int_equal(left, 0);
    assert_int_equal(leave_early(DCRF_OK, &left), DCRF_OK);
    assert_int_equal(leave_early(DCRF_STOP_TIME, &left), DCRF_OK);
    assert_int_equal(left, 2);
}

/* Released memory is reused for similar sizes, and cleared if zeros are requested; much smaller or
 * larger sizes get other memory, if memory is cached at all. */
static void large_memory_is_kept(void **state) {
    (void)state;
    const size_t bytes = (size_t)8 << 20;
    unsigned char *memory = dcrf_allocate(bytes, 1);
    assert_non_null(memory);
    memset(memory, 1, bytes);
    dcrf_release(memory);
    unsigned char *small = dcrf_allocate(bytes / 4, 1), *large = dcrf_allocate(bytes * 2, 1);
    unsigned char *again = dcrf_allocate_zero(bytes - 5, 1);
    assert_true(small && large && again);
#ifdef DCRF_HAS_HUGE_PAGES
    assert_true(small != memory && large != memory);
#endif
    for (size_t i = 0; i < bytes - 5; i++)
        assert_true(again[i] == 0);
    dcrf_release(small);
    dcrf_release(large);
    dcrf_release(again);
    dcrf_trim_memory();
}

/* The first output follows from the definitions alone: state[1] is the second splitmix64 output,
 * which for seed 0 is 6e789e6aa1b965f4 in the reference. */
static void random_numbers_repeat(void **state) {
    (void)state;
    dcrf_rng one, two;
    dcrf_rng_seed(&one, 0);
    assert_true(one.state[0] == 0xe220a8397b1dcdafu);
    assert_true(one.state[1] == 0x6e789e6aa1b965f4u);
    const uint64_t times_five = one.state[1] * 5;
    const uint64_t first = ((times_five << 7) | (times_five >> 57)) * 9;
    assert_true(dcrf_rng_next(&one) == first);

    dcrf_rng_seed(&one, 7);
    dcrf_rng_seed(&two, 7);
    double sum = 0;
    const int count = 100000;
    for (int i = 0; i < count; i++) {
        const double value = dcrf_rng_uniform(&one);
        assert_true(value == dcrf_rng_uniform(&two));
        assert_true(value >= 0 && value < 1);
        sum += value;
    }
    /* Six standard deviations of a mean of uniform numbers: 6 / sqrt(12 count) = 0.0055. */
    assert_true(sum / count > 0.4945 && sum / count < 0.5055);
    dcrf_rng_seed(&two, 8);
    assert_true(dcrf_rng_next(&one) != dcrf_rng_next(&two));
}

static void time_does_not_run_backwards(void **state) {
    (void)state;
    double last = dcrf_time_s();
    for (int i = 0; i < 1000; i++) {
        const double now = dcrf_time_s();
        assert_true(now >= last);
        last = now;
    }
}

static void workspace_grows_and_keeps(void **state) {
    (void)state;
    static const struct dcrf_slot one = {"a test"}, another = {"the same"};
    dcrf_workspace *workspace = NULL;
    assert_int_equal(dcrf_workspace_new(&workspace, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_threads(workspace), 2);
    assert_int_equal(dcrf_workspace_bytes(workspace), 0);

    char *small = dcrf_workspace_slot(workspace, &one, 100, 8);
    assert_non_null(small);
    memset(small, 1, 800);
    assert_true(dcrf_workspace_bytes(workspace) == 800);
    assert_ptr_equal(dcrf_workspace_slot(workspace, &one, 10, 8), small);
    assert_true(dcrf_workspace_bytes(workspace) == 800);

    char *other = dcrf_workspace_slot(workspace, &another, 1, 64);
    assert_ptr_not_equal(other, small);
    char *large = dcrf_workspace_slot(workspace, &one, 1 << 20, 4);
    assert_non_null(large);
    memset(large, 2, (size_t)4 << 20);
    assert_true(dcrf_workspace_bytes(workspace) == ((size_t)4 << 20) + 64);

    /* Too large: refused, and the workspace still works. */
    assert_null(dcrf_workspace_slot(workspace, &another, SIZE_MAX, 8));
    assert_null(dcrf_workspace_slot(workspace, &another, SIZE_MAX / 16, 8));
    assert_non_null(dcrf_workspace_slot(workspace, &another, 0, 4));

    /* Requests beyond the number of slots fail, and existing slots stay. */
    static const struct dcrf_slot many[DCRF_MOST_SLOTS];
    for (size_t i = 0; i < DCRF_MOST_SLOTS; i++)
        assert_true((dcrf_workspace_slot(workspace, &many[i], 1, 1) != NULL) ==
                    (i + 2 < DCRF_MOST_SLOTS));
    assert_ptr_equal(dcrf_workspace_slot(workspace, &one, 1, 1), large);
    dcrf_workspace_free(&workspace);
    assert_null(workspace);
    dcrf_workspace_free(&workspace);
    dcrf_workspace_free(NULL);
}

static void absurd_thread_counts_are_refused(void **state) {
    (void)state;
    dcrf_workspace *workspace = (dcrf_workspace *)&workspace;
    dcrf_error error;
    assert_fails(DCRF_ERROR_ARGUMENT, "1000000 threads", error,
                 dcrf_workspace_new(&workspace, 1000000, &error));
    assert_null(workspace);
}

static void versions_agree(void **state) {
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", DCRF_VERSION_MAJOR, DCRF_VERSION_MINOR,
             DCRF_VERSION_PATCH);
    assert_string_equal(text, DCRF_VERSION);
    assert_string_equal(dcrf_version(), DCRF_VERSION);
    assert_string_equal(dcrf_version(), PROJECT_VERSION);
}

/* The examples of FIPS 180-4 (NIST's "SHA-256" example computations). */
static void hash_of_known_messages(void **state) {
    (void)state;
    static const struct {
        const char *message, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct dcrf_sha256 hash;
        uint8_t digest[DCRF_SHA256_BYTES];
        char text[2 * DCRF_SHA256_BYTES + 1];
        dcrf_sha256_begin(&hash);
        for (const char *c = known[k].message; *c; c++) /* byte by byte */
            dcrf_sha256_add(&hash, c, 1);
        dcrf_sha256_end(&hash, digest);
        for (size_t i = 0; i < sizeof digest; i++)
            snprintf(text + 2 * i, 3, "%02x", digest[i]);
        assert_string_equal(text, known[k].digest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names_go_both_ways),
        cmocka_unit_test(unknown_status_names_are_refused),
        cmocka_unit_test(names_of_enums_go_both_ways),
        cmocka_unit_test(errors_are_values),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(multiplication_notices_overflow),
        cmocka_unit_test(memory_is_aligned_and_checked),
        cmocka_unit_test(arrays_are_owned_together),
        cmocka_unit_test(only_errors_leave_early),
        cmocka_unit_test(large_memory_is_kept),
        cmocka_unit_test(random_numbers_repeat),
        cmocka_unit_test(time_does_not_run_backwards),
        cmocka_unit_test(workspace_grows_and_keeps),
        cmocka_unit_test(absurd_thread_counts_are_refused),
        cmocka_unit_test(hash_of_known_messages),
        cmocka_unit_test(versions_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
