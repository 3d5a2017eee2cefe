/* The same bytes for every number of threads, on every repeat and in every floating-point mode of
 * the caller; the same values, within a few ulps, for every instruction set. */
#include "dense.h"

#include <dcrf/cpu.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* The exact operator and the lattice take 32 at a time: more than one block. */
#define CHANNELS 35
#define STRIDE 40
/* The ordered filter takes channels one by one, in groups of eight. */
#define ORDERED_CHANNELS 9

/* All results of an operator, built and used from scratch. */
enum part { SYMMETRIC, FORWARD, ADJOINT, SIGN, TABLE, DIAGONAL, ROW_SUMS, PARTS };
static const char *const part_names[PARTS] = {"symmetric",       "forward",          "adjoint",
                                              "ordered by sign", "ordered by table", "diagonal",
                                              "row sums"};

struct results {
    size_t variables;
    float *part[PARTS]; /* blocks of STRIDE, or one float per variable */
};

static bool is_block(enum part part) {
    return part < DIAGONAL;
}

/* The number of floats in a row, and how many of them count. */
static size_t part_row(enum part part) {
    return is_block(part) ? STRIDE : 1;
}

static size_t part_channels(enum part part) {
    if (part == SIGN || part == TABLE)
        return ORDERED_CHANNELS;
    return is_block(part) ? CHANNELS : 1;
}

static size_t part_floats(const struct results *r, enum part part) {
    return r->variables * part_row(part);
}

static void use_operator(const dcrf_operator *op, dcrf_workspace *workspace, struct results *r) {
    const float thresholds[] = {0.1f, 0.2f, 0.4f, 0.5f, 0.8f}, nodes[] = {0, 0.3f, 0.4f, 1};
    const float table[] = {0, 0.5f, 1, 1, -0.5f, 0, 0.25f, 1, -1, -0.25f, 0, 1, -1, -1, -1, 0};
    const dcrf_levels sign = {.count = 6, .levels = thresholds};
    const dcrf_levels interpolated = {.count = 4, .levels = nodes, .table = table};
    float *in = random_block(r->variables, STRIDE, 0, 1, 1);
    for (enum part part = 0; part < PARTS; part++)
        memset(r->part[part], 0, part_floats(r, part) * sizeof(float));
    dcrf_status status = DCRF_OK;
    for (dcrf_direction direction = DCRF_SYMMETRIC; direction <= DCRF_ADJOINT; direction++)
        status |=
            dcrf_operator_apply(op, workspace, direction, in, r->part[SYMMETRIC + (int)direction],
                                dcrf_operator_variables(op) * STRIDE, CHANNELS, STRIDE, NULL);
    status |=
        dcrf_operator_ordered(op, workspace, &sign, in, r->part[SIGN],
                              dcrf_operator_variables(op) * STRIDE, ORDERED_CHANNELS, STRIDE, NULL);
    status |=
        dcrf_operator_ordered(op, workspace, &interpolated, in, r->part[TABLE],
                              dcrf_operator_variables(op) * STRIDE, ORDERED_CHANNELS, STRIDE, NULL);
    status |=
        dcrf_operator_diagonal(op, workspace, r->part[DIAGONAL], dcrf_operator_variables(op), NULL);
    status |=
        dcrf_operator_row_sums(op, workspace, r->part[ROW_SUMS], dcrf_operator_variables(op), NULL);
    assert_int_equal(status, DCRF_OK);
    free(in);
}

static struct results new_results(size_t variables) {
    struct results r = {.variables = variables};
    for (enum part part = 0; part < PARTS; part++)
        r.part[part] = malloc(part_floats(&r, part) * sizeof(float));
    return r;
}

static void free_results(struct results *r) {
    for (enum part part = 0; part < PARTS; part++)
        free(r->part[part]);
}

/* The padding of the outputs is unspecified. */
static void assert_same_bytes(const struct results *r, const struct results *s, const char *name) {
    for (enum part part = 0; part < PARTS; part++) {
        const size_t row = part_row(part), counted = part_channels(part);
        for (size_t a = 0; a < r->variables; a++)
            if (memcmp(r->part[part] + a * row, s->part[part] + a * row, counted * sizeof(float)))
                fail_msg("%s: %s differs at variable %zu", name, part_names[part], a);
    }
}

/* ---- the operators -------------------------------------------------------------------------- */

/* Large enough for several chunks in every loop; the exact operator needs fewer variables for
 * that. */
struct setting {
    const char *name;
    dcrf_operator_kind kind;
    dcrf_normalization normalization;
    size_t width, height;
};

#define SCALE (SANITIZED ? 1 : 2)
static const struct setting settings[] = {
    {"exact", DCRF_OPERATOR_EXACT, DCRF_NORMALIZE_SYMMETRIC, 17, 9 * SCALE},
    {"grid", DCRF_OPERATOR_GRID, DCRF_NORMALIZE_NONE, 70, 65 * SCALE},
    {"normalized grid", DCRF_OPERATOR_GRID, DCRF_NORMALIZE_SYMMETRIC, 70, 65 * SCALE},
    {"lattice", DCRF_OPERATOR_LATTICE, DCRF_NORMALIZE_NONE, 70, 65 * SCALE},
    {"normalized lattice", DCRF_OPERATOR_LATTICE, DCRF_NORMALIZE_SYMMETRIC, 70, 65 * SCALE},
};
#define SETTINGS (sizeof settings / sizeof settings[0])

static dcrf_operator *new_of_setting(const struct setting *setting, dcrf_workspace *workspace) {
    const dcrf_grid grid = dcrf_grid_2d(setting->width, setting->height);
    uint8_t *image = draw_photograph(setting->width, setting->height);
    dcrf_kernel kernel =
        setting->kind == DCRF_OPERATOR_GRID
            ? dcrf_kernel_spatial(3, 1)
            : dcrf_kernel_bilateral(20, 13, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    kernel.normalization = setting->normalization;
    dcrf_operator *op = new_operator(&grid, &kernel, setting->kind, workspace);
    free(image);
    return op;
}

static void run_setting(const struct setting *setting, size_t threads, struct results *r) {
    dcrf_workspace *workspace = new_workspace(threads);
    dcrf_operator *op = new_of_setting(setting, workspace);
    use_operator(op, workspace, r);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void threads_do_not_change_a_byte(void **state) {
    (void)state;
    const size_t threads[] = {1, 2, 3, 8, 16};
    for (size_t i = 0; i < SETTINGS; i++) {
        const size_t n = settings[i].width * settings[i].height;
        struct results once = new_results(n), again = new_results(n);
        run_setting(&settings[i], 1, &once);
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            run_setting(&settings[i], threads[t], &again);
            assert_same_bytes(&once, &again, settings[i].name);
        }
        free_results(&once);
        free_results(&again);
    }
}

/* A workspace that other operators have used, and an operator used twice. */
static void what_came_before_does_not_matter(void **state) {
    (void)state;
    dcrf_workspace *used = new_workspace(2);
    for (size_t i = SETTINGS; i-- > 0;) {
        const size_t n = settings[i].width * settings[i].height;
        struct results fresh = new_results(n), again = new_results(n);
        run_setting(&settings[i], 2, &fresh);
        dcrf_operator *op = new_of_setting(&settings[i], used);
        for (int repeat = 0; repeat < 2; repeat++) {
            use_operator(op, used, &again);
            assert_same_bytes(&fresh, &again, settings[i].name);
        }
        dcrf_operator_free(&op);
        free_results(&fresh);
        free_results(&again);
    }
    dcrf_workspace_free(&used);
}

/* ---- instruction sets ----------------------------------------------------------------------- */

/* Sets differ in the order of their sums and in fused multiply-adds: for a value that is the sum of
 * a few hundred products, a few units in the last place of the largest. */
#define MOST_ULPS 16

static void instruction_sets_agree(void **state) {
    (void)state;
    const dcrf_cpu best = dcrf_cpu_best(), in_use = dcrf_cpu_in_use();
    for (size_t i = 0; i < SETTINGS; i++) {
        const size_t n = settings[i].width * settings[i].height;
        struct results plain = new_results(n), other = new_results(n);
        assert_int_equal(dcrf_cpu_limit(DCRF_CPU_C, NULL), DCRF_OK);
        run_setting(&settings[i], 1, &plain);
        for (dcrf_cpu cpu = DCRF_CPU_C; cpu <= best; cpu++) {
            if (dcrf_cpu_limit(cpu, NULL) < 0)
                continue;
            run_setting(&settings[i], 1, &other);
            double ulps = 0;
            for (enum part part = 0; part < PARTS; part++) {
                const double error = block_error(other.part[part], plain.part[part], n,
                                                 part_channels(part), part_row(part)) /
                                     0x1p-23;
                assert_within(error, MOST_ULPS, "%s, %s with %s", settings[i].name,
                              part_names[part], dcrf_cpu_name(cpu));
                ulps = fmax(ulps, error);
            }
            print_message("%s: %s is within %.1f ulps of plain C\n", settings[i].name,
                          dcrf_cpu_name(cpu), ulps);
        }
        free_results(&plain);
        free_results(&other);
    }
    assert_int_equal(dcrf_cpu_limit(in_use, NULL), DCRF_OK);
}

/* ---- floating-point modes -------------------------------------------------------------------- */

#if defined(__SSE2__)
/* A caller that rounds upwards and keeps denormals. */
static void the_callers_mode_does_not_matter_and_is_restored(void **state) {
    (void)state;
    const unsigned before = _mm_getcsr(), round_up = 0x4000, exceptions = 0x3f;
    for (size_t threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < SETTINGS; i++) {
            const size_t n = settings[i].width * settings[i].height;
            struct results usual = new_results(n), unusual = new_results(n);
            dcrf_workspace *workspace = new_workspace(threads);
            dcrf_operator *op = new_of_setting(&settings[i], workspace);
            use_operator(op, workspace, &usual);
            float *in = random_block(n, STRIDE, 0, 1, 1);
            _mm_setcsr((before & ~0x6000u) | round_up);
            const unsigned set = _mm_getcsr();
            const dcrf_status status =
                dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, in, unusual.part[SYMMETRIC],
                                    dcrf_operator_variables(op) * STRIDE, CHANNELS, STRIDE, NULL);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(before);
            assert_int_equal(status, DCRF_OK);
            assert_int_equal(after & ~exceptions, set & ~exceptions);
            for (size_t a = 0; a < n; a++)
                assert_memory_equal(usual.part[SYMMETRIC] + a * STRIDE,
                                    unusual.part[SYMMETRIC] + a * STRIDE, CHANNELS * sizeof(float));
            free(in);
            dcrf_operator_free(&op);
            dcrf_workspace_free(&workspace);
            free_results(&usual);
            free_results(&unusual);
        }
}

/* Denormal input counts as zero inside, and the caller's denormal mode is restored. */
static void denormals_are_flushed_inside_only(void **state) {
    (void)state;
    volatile float tiny = 1e-40f;
    for (size_t threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < SETTINGS; i++) {
            const size_t n = settings[i].width * settings[i].height;
            dcrf_workspace *workspace = new_workspace(threads);
            dcrf_operator *op = new_of_setting(&settings[i], workspace);
            float *in = malloc(n * STRIDE * sizeof *in);
            for (size_t j = 0; j < n * STRIDE; j++)
                in[j] = tiny;
            float *out = new_applied(op, workspace, DCRF_SYMMETRIC, in, CHANNELS, STRIDE);
            for (size_t a = 0; a < n; a++)
                for (size_t c = 0; c < CHANNELS; c++)
                    assert_true(out[a * STRIDE + c] == 0);
            const float doubled = tiny * 2;
            assert_true(doubled > tiny && tiny > 0);
            free(in);
            free(out);
            dcrf_operator_free(&op);
            dcrf_workspace_free(&workspace);
        }
}
#else
static void the_callers_mode_does_not_matter_and_is_restored(void **state) {
    (void)state;
    print_message("skipped: not an x86\n");
}
static void denormals_are_flushed_inside_only(void **state) {
    (void)state;
    print_message("skipped: not an x86\n");
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(what_came_before_does_not_matter),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(the_callers_mode_does_not_matter_and_is_restored),
        cmocka_unit_test(denormals_are_flushed_inside_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
