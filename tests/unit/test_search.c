/* The search: it finds the known optimum, repeats the same points, and resumes from any log that a
 * killed run can leave. */
#include "unit.h"

#include "dataset/search_log.h"
#include "dataset/search_record.h"
#include "io/file.h"
#include "report/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AXES 5
#define LOG_FILE "test_search.csv"
#define RECORD_FILE "test_search.json"

static const search_space space = {
    .axes = {{"a", 0.5, 10, true, 0},
             {"b", 0.05, 20, true, 0},
             {"c", 5, 150, true, 0},
             {"d", -1, 3, false, 0},
             {"e", 5, 200, true, 1.4142135623730951}},
    .axis_count = AXES,
    .score_names = {"other", "wanted"},
    .score_count = 2,
    .objective = 1,
};

/* The optimum, as fractions of the axes: neither in the middle, where the search begins, nor at the
 * start. */
static const double best_place[AXES] = {0.3, 0.62, 0.8, 0.17, 0.45};
static const double lower_peak[AXES] = {0.8, 0.2, 0.15, 0.8, 0.8};
static const double start[AXES] = {8, 0.2, 10, 2.5, 100};

/* ---- functions ------------------------------------------------------------------------------ */

typedef struct counter {
    size_t evaluations;
    size_t stop_after; /* 0: never */
    bool in_steps;     /* piecewise constant, with a second peak at the start */
} counter;

static double place_on_axis(size_t i, double value) {
    const search_axis *axis = &space.axes[i];
    return axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                             : (value - axis->low) / (axis->high - axis->low);
}

static double distance2(const double *values, const double *place) {
    double sum = 0;
    for (size_t i = 0; i < AXES; i++)
        sum += pow(place_on_axis(i, values[i]) - place[i], 2);
    return sum;
}

static bool score_point(void *user, const double *values, double *scores, cli_problem *problem) {
    counter *count = user;
    for (size_t i = 0; i < AXES; i++) {
        assert_true(values[i] >= space.axes[i].low && values[i] <= space.axes[i].high);
        /* Four digits, or a step; the start may have more digits. */
        if (count->evaluations > 0 && i < 4 && values[i] > space.axes[i].low &&
            values[i] < space.axes[i].high)
            assert_true(number_rounded(values[i], 4) == values[i]);
    }
    assert_true(values[4] == floor(values[4]));
    if (count->stop_after > 0 && count->evaluations == count->stop_after)
        return failure(problem, "test", "stopped");
    count->evaluations++;
    const double smooth = exp(-2 * distance2(values, best_place));
    const double second = 0.6 * exp(-4 * distance2(values, lower_peak));
    scores[0] = values[0];
    scores[1] = count->in_steps ? floor(1000 * fmax(smooth, second)) / 1000 : smooth;
    return true;
}

/* ---- runs ----------------------------------------------------------------------------------- */

static bool run_search(counter *count, size_t seed, const size_t *budgets, size_t budget_count,
                       search_log *log, cli_problem *problem) {
    search task = {.space = &space,
                   .seed = seed,
                   .budgets = budgets,
                   .budget_count = budget_count,
                   .evaluate = score_point,
                   .user = count};
    memcpy(task.start, start, sizeof start);
    return search_log_open(log, LOG_FILE, &space, problem) && search_run(&task, log, problem);
}

/* A run that continues the existing log and must succeed; returns its evaluations. */
static size_t complete(size_t seed, bool in_steps, size_t budget) {
    counter count = {0, 0, in_steps};
    search_log log;
    cli_problem problem;
    if (!run_search(&count, seed, &budget, 1, &log, &problem))
        fail_msg("%s", problem.text);
    search_log_close(&log);
    return count.evaluations;
}

static file_bytes log_bytes(void) {
    file_bytes bytes;
    cli_problem problem;
    assert_true(file_read(LOG_FILE, &bytes, &problem));
    return bytes;
}

static void write_bytes(const char *path, const void *data, size_t size) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

static void assert_log_is(const file_bytes *wanted) {
    file_bytes bytes = log_bytes();
    assert_int_equal(bytes.size, wanted->size);
    assert_memory_equal(bytes.data, wanted->data, wanted->size);
    file_free(&bytes);
}

static void assert_refused(const char *words, size_t seed, size_t budget) {
    counter count = {0};
    search_log log;
    cli_problem problem = {0};
    assert_false(run_search(&count, seed, &budget, 1, &log, &problem));
    assert_non_null(strstr(problem.text, words));
    assert_int_equal(count.evaluations, 0);
    search_log_close(&log);
}

static int remove_files(void **state) {
    (void)state;
    unlink(LOG_FILE);
    unlink(RECORD_FILE);
    return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void find_best(bool in_steps, size_t budget, double tolerance) {
    counter count = {0, 0, in_steps};
    search_log log;
    cli_problem problem;
    assert_true(run_search(&count, 1, &budget, 1, &log, &problem));
    assert_true(count.evaluations <= budget);
    assert_int_equal(count.evaluations, log.count);
    assert_int_equal(log.entries[0].phase, SEARCH_START);
    assert_memory_equal(log.entries[0].values, start, sizeof start);
    const search_entry *best = search_log_best(&log);
    for (size_t i = 0; i < AXES; i++) {
        /* Half a step of the last axis is 0.047 of it. */
        const double off = fabs(place_on_axis(i, best->values[i]) - best_place[i]);
        if (!(off <= (i == 4 ? 0.05 : 0) + tolerance))
            fail_msg("%s is off by %g of its axis", space.axes[i].name, off);
    }
    search_log_close(&log);
}

/* The quadratic models are nearly exact here: what remains is where they converge, 0.005. */
static void finds_the_best_of_a_smooth_function(void **state) {
    (void)state;
    find_best(false, 150, 0.02);
}

/* A step is as high as the function falls over 0.022 of all axes, and the last axis moves in steps;
 * ten times that is far from the second peak, which is 0.35 to 0.65 away on every axis. */
static void finds_the_best_of_steps_with_two_peaks(void **state) {
    (void)state;
    find_best(true, 150, 0.1);
}

static void asks_the_same_again(void **state) {
    (void)state;
    complete(7, true, 40);
    file_bytes first = log_bytes();
    unlink(LOG_FILE);
    complete(7, true, 40);
    assert_log_is(&first);
    assert_int_equal(complete(7, true, 40), 0);
    assert_log_is(&first);
    unlink(LOG_FILE);
    complete(8, true, 40);
    file_bytes other = log_bytes();
    assert_true(other.size != first.size || memcmp(other.data, first.data, first.size) != 0);
    file_free(&other);
    file_free(&first);
}

/* Truncated after and within every line. */
static void goes_on_from_every_cut(void **state) {
    (void)state;
    size_t lines = 0;
    complete(3, true, 24);
    file_bytes whole = log_bytes();
    for (size_t end = 0; end <= whole.size; end++) {
        const bool behind = end == 0 || whole.data[end - 1] == '\n';
        const bool within = end % 29 == 0;
        if (behind || within) {
            write_bytes(LOG_FILE, whole.data, end);
            const size_t evaluations = complete(3, true, 24);
            /* `lines` counts the header. */
            lines += behind && end > 0;
            assert_int_equal(evaluations, 24 - (lines > 0 ? lines - 1 : 0));
            assert_log_is(&whole);
        }
    }
    assert_int_equal(lines, 25);
    file_free(&whole);
}

static void goes_on_after_a_stop(void **state) {
    (void)state;
    const size_t budget = 30;
    complete(3, false, budget);
    file_bytes whole = log_bytes();
    for (size_t after = 1; after < budget; after += 4) {
        counter count = {0, after, false};
        search_log log;
        cli_problem problem = {0};
        unlink(LOG_FILE);
        assert_false(run_search(&count, 3, &budget, 1, &log, &problem));
        assert_string_equal(problem.text, "test: stopped");
        assert_int_equal(log.count, after);
        search_log_close(&log);
        assert_int_equal(complete(3, false, budget), budget - after);
        assert_log_is(&whole);
    }
    file_free(&whole);
}

static void larger_budgets_go_on(void **state) {
    (void)state;
    const size_t budgets[] = {20, 35};
    counter count = {0, 0, true};
    search_log log;
    cli_problem problem;
    complete(5, true, budgets[0]);
    file_bytes first = log_bytes();
    assert_true(run_search(&count, 5, budgets, 2, &log, &problem));
    assert_int_equal(count.evaluations, budgets[1] - budgets[0]);
    search_log_close(&log);
    assert_refused("is beyond this search", 5, budgets[0]);
    file_bytes both = log_bytes();
    assert_memory_equal(both.data, first.data, first.size);
    file_free(&first);
    file_free(&both);
}

static bool score_size(void *user, const double *values, double *scores, cli_problem *problem) {
    (void)problem;
    ++*(size_t *)user;
    scores[0] = -fabs(values[0] - 57);
    return true;
}

/* One axis with 12 steps is soon exhausted: 5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160, 200. */
static void ends_where_nothing_is_left(void **state) {
    (void)state;
    const search_space few = {.axes = {{"e", 5, 200, true, 1.4142135623730951}},
                              .axis_count = 1,
                              .score_names = {"wanted"},
                              .score_count = 1};
    const size_t budget = 100;
    size_t evaluations = 0;
    search_log log;
    cli_problem problem;
    const search task = {&few, {20}, 1, &budget, 1, score_size, &evaluations};
    assert_true(search_log_open(&log, LOG_FILE, &few, &problem));
    assert_true(search_run(&task, &log, &problem));
    assert_true(evaluations <= 12);
    assert_true(search_log_best(&log)->values[0] == 57);
    search_log_close(&log);
}

static void refuses_other_logs(void **state) {
    (void)state;
    complete(3, false, 20);
    file_bytes whole = log_bytes();
    assert_false(search_log_is_empty(LOG_FILE));
    assert_refused("is not of this search", 4, 20);
    assert_log_is(&whole);
    assert_refused("is not of this search", 3, 10);
    /* A line in the middle is damaged; at the end it would be dropped. */
    char *copy = strndup((const char *)whole.data, whole.size);
    char *third = strstr(copy, "\n3,");
    third[5] = 'x';
    write_bytes(LOG_FILE, copy, whole.size);
    assert_refused("line 4 is not of a log", 3, 20);
    /* A changed digit is detected too. */
    memcpy(copy, whole.data, whole.size);
    char *digit = strpbrk(strchr(third + 3, ',') + 1, "0123456789");
    *digit = *digit == '7' ? '8' : '7';
    write_bytes(LOG_FILE, copy, whole.size);
    assert_refused("line 4 is not of a log", 3, 20);
    write_bytes(LOG_FILE, "number,phase,score,x\n", 21);
    assert_refused("line 1 is not of a log", 3, 20);
    assert_true(search_log_is_empty(LOG_FILE));
    free(copy);
    file_free(&whole);
}

static bool claim(const char *subject, bool anew, size_t budget, size_t *count,
                  cli_problem *problem) {
    size_t *budgets = NULL;
    json_error_t error;
    const bool done = search_record_claim(RECORD_FILE, json_loads(subject, 0, &error), anew, budget,
                                          &budgets, count, problem);
    if (done)
        assert_int_equal(budgets[*count - 1], budget);
    free(budgets);
    return done;
}

static void a_folder_holds_one_search(void **state) {
    (void)state;
    cli_problem problem = {0};
    size_t count;
    assert_false(claim("{\"seed\": 1, \"method\": \"qp\"}", false, 20, &count, &problem));
    assert_non_null(strstr(problem.text, "is missing"));
    assert_true(claim("{\"seed\": 1, \"method\": \"qp\"}", true, 20, &count, &problem));
    assert_int_equal(count, 1);
    assert_true(claim("{\"seed\": 1, \"method\": \"qp\"}", false, 20, &count, &problem));
    assert_int_equal(count, 1);
    assert_true(claim("{\"seed\": 1, \"method\": \"qp\"}", false, 30, &count, &problem));
    assert_int_equal(count, 2);
    assert_false(claim("{\"seed\": 1, \"method\": \"qp\"}", false, 25, &count, &problem));
    assert_non_null(strstr(problem.text, "a budget of 30"));
    assert_false(claim("{\"seed\": 1, \"method\": \"mf\"}", false, 30, &count, &problem));
    assert_non_null(strstr(problem.text, "another 'method'"));
    write_bytes(RECORD_FILE, "{", 1);
    assert_false(claim("{\"seed\": 1}", false, 30, &count, &problem));
    assert_non_null(strstr(problem.text, "is not JSON"));
    size_t *budgets = NULL;
    assert_true(
        search_record_claim(RECORD_FILE, json_object(), true, 5, &budgets, &count, &problem));
    assert_int_equal(count, 1);
    free(budgets);
}

static void numbers_come_back(void **state) {
    (void)state;
    char text[NUMBER_TEXT_BYTES];
    assert_string_equal(number_text(0.1, text), "0.1");
    assert_string_equal(number_text(100, text), "100");
    assert_string_equal(number_text(12340, text), "12340");
    assert_string_equal(number_text(0, text), "0");
    assert_string_equal(number_text(-2.5, text), "-2.5");
    unsigned long long bits = 88172645463325252ull;
    for (size_t i = 0; i < 10000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            assert_true(strtod(number_text(value, text), NULL) == value);
    }
    assert_true(number_rounded(3.14159, 4) == 3.142);
    assert_true(number_rounded(123456, 4) == 123500);
}

#define case_of(name) cmocka_unit_test_setup_teardown(name, remove_files, remove_files)

int main(void) {
    const struct CMUnitTest tests[] = {
        case_of(finds_the_best_of_a_smooth_function),
        case_of(finds_the_best_of_steps_with_two_peaks),
        case_of(asks_the_same_again),
        case_of(goes_on_from_every_cut),
        case_of(goes_on_after_a_stop),
        case_of(larger_budgets_go_on),
        case_of(ends_where_nothing_is_left),
        case_of(refuses_other_logs),
        case_of(a_folder_holds_one_search),
        case_of(numbers_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
