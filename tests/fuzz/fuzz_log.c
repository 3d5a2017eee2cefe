/* log.csv of a search. First the raw bytes: refused, or the complete lines are kept and the rest is
 * dropped. Then the bytes as the numbers of entries: what is added is read back. */
#include "check.h"
#include "dataset/search_log.h"
#include "memory_file.h"
#include "target.h"

#include <math.h>

static const search_space space = {
    .axes = {{.name = "sigma", .low = 0, .high = 9}, {.name = "weight", .low = 0, .high = 9}},
    .axis_count = 2,
    .score_names = {"accuracy", "iou"},
    .score_count = 2,
    .objective = 1,
};

static bool open_log(search_log *log, const char *path) {
    cli_problem problem = {0, ""};
    const bool done = search_log_open(log, path, &space, &problem);
    if (!done)
        fuzz_check_refused(&problem);
    return done;
}

static void read_bytes(const uint8_t *data, size_t size) {
    const char *path = memory_file(0, data, size);
    search_log log, again;
    if (!path || !open_log(&log, path))
        return;
    const size_t count = log.count;
    search_log_close(&log);
    fuzz_check(open_log(&again, path) && again.count == count);
    search_log_close(&again);
}

/* Entries of two values and two scores each, as doubles. */
static void write_entries(const uint8_t *data, size_t size) {
    enum { NUMBERS = 4 };
    const char *path = memory_file(0, data, 0);
    search_log log, again;
    cli_problem problem = {0, ""};
    if (!path)
        return;
    fuzz_check(open_log(&log, path));
    for (; size >= NUMBERS * sizeof(double); size -= NUMBERS * sizeof(double)) {
        double numbers[NUMBERS];
        bool is_finite = true;
        memcpy(numbers, data, sizeof numbers);
        data += sizeof numbers;
        for (size_t i = 0; i < NUMBERS; i++)
            is_finite = is_finite && isfinite(numbers[i]);
        const search_entry entry = {.phase = SEARCH_GLOBAL,
                                    .values = {numbers[0], numbers[1]},
                                    .scores = {numbers[2], numbers[3]}};
        if (is_finite)
            fuzz_check(search_log_add(&log, &entry, &problem));
    }
    fuzz_check(open_log(&again, path) && again.count == log.count);
    for (size_t k = 0; k < log.count; k++)
        fuzz_check(again.entries[k].values[1] == log.entries[k].values[1] &&
                   again.entries[k].scores[0] == log.entries[k].scores[0]);
    search_log_close(&log);
    search_log_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_bytes(data, size);
    write_entries(data, size);
    return 0;
}
