#include "dataset/search_log.h"

#include "dataset/hash.h"
#include "io/file.h"
#include "report/number_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define CHECK_DIGITS 8

static const char *const phase_names[] = {"start", "sweep", "global", "local"};

const char *search_phase_name(search_phase phase) {
    return phase_names[phase];
}

double search_score(const search_log *log, const search_entry *entry) {
    return entry->scores[log->space->objective];
}

const search_entry *search_log_best(const search_log *log) {
    const search_entry *best = NULL;
    for (size_t k = 0; k < log->count; k++)
        if (!best || search_score(log, &log->entries[k]) > search_score(log, best))
            best = &log->entries[k];
    return best;
}

static bool cannot_write(const search_log *log, cli_problem *problem) {
    return failure(problem, log->path, "cannot write: %s", strerror(errno));
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void header_text(const search_space *space, char line[LINE_BYTES]) {
    size_t used = (size_t)snprintf(line, LINE_BYTES, "number,phase,score");
    for (size_t i = 0; i < space->axis_count; i++)
        used += (size_t)snprintf(line + used, LINE_BYTES - used, ",%s", space->axes[i].name);
    for (size_t i = 0; i < space->score_count; i++)
        used += (size_t)snprintf(line + used, LINE_BYTES - used, ",%s", space->score_names[i]);
    snprintf(line + used, LINE_BYTES - used, ",check");
}

static size_t append_number(char line[LINE_BYTES], size_t used, double value) {
    char text[NUMBER_TEXT_BYTES];
    return used + (size_t)snprintf(line + used, LINE_BYTES - used, ",%s", number_text(value, text));
}

static void entry_text(const search_log *log, size_t number, const search_entry *entry,
                       char line[LINE_BYTES]) {
    const search_space *space = log->space;
    size_t used =
        (size_t)snprintf(line, LINE_BYTES, "%zu,%s", number, search_phase_name(entry->phase));
    used = append_number(line, used, search_score(log, entry));
    for (size_t i = 0; i < space->axis_count; i++)
        used = append_number(line, used, entry->values[i]);
    for (size_t i = 0; i < space->score_count; i++)
        used = append_number(line, used, entry->scores[i]);
    snprintf(line + used, LINE_BYTES - used, ",%.*s", CHECK_DIGITS, hash_bytes(line, used).text);
}

/* A line is validated by parsing its numbers and writing it again: the text must be the same. */
static bool entry_from_text(const search_log *log, size_t number, const char *line,
                            search_entry *entry) {
    const search_space *space = log->space;
    const size_t count = 1 + space->axis_count + space->score_count;
    const char *comma = strchr(line, ',');
    char again[LINE_BYTES];
    *entry = (search_entry){0};
    if (!comma)
        return false;
    const size_t phase_length = strcspn(comma + 1, ",");
    for (size_t p = 0; p < sizeof phase_names / sizeof phase_names[0]; p++)
        if (strlen(phase_names[p]) == phase_length &&
            memcmp(phase_names[p], comma + 1, phase_length) == 0)
            entry->phase = (search_phase)p;
    const char *at = comma + 1 + phase_length;
    for (size_t i = 0; i < count && *at == ','; i++) {
        char *end;
        const double value = strtod(at + 1, &end);
        if (i > 0)
            *(i <= space->axis_count ? &entry->values[i - 1]
                                     : &entry->scores[i - 1 - space->axis_count]) = value;
        at = end;
    }
    entry_text(log, number, entry, again);
    return strcmp(line, again) == 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool remember(search_log *log, const search_entry *entry, cli_problem *problem) {
    if (log->count == log->capacity) {
        const size_t capacity = log->capacity ? 2 * log->capacity : 64;
        search_entry *larger = realloc(log->entries, capacity * sizeof *larger);
        if (!larger)
            return out_of_memory(problem, log->path);
        log->entries = larger;
        log->capacity = capacity;
    }
    log->entries[log->count++] = *entry;
    return true;
}

/* Take complete lines from `text`; *good becomes their size in bytes. */
static bool take_lines(search_log *log, const char *text, size_t size, size_t *good,
                       cli_problem *problem) {
    size_t number = 0;
    const char *end;
    for (*good = 0; (end = memchr(text + *good, '\n', size - *good)) != NULL; number++) {
        const size_t length = (size_t)(end - text) - *good;
        const bool last = *good + length + 1 == size;
        char line[LINE_BYTES] = "", header[LINE_BYTES];
        search_entry entry;
        if (length < sizeof line)
            memcpy(line, text + *good, length);
        header_text(log->space, header);
        const bool whole = strlen(line) == length;
        if (!whole || (number == 0 ? strcmp(line, header) != 0
                                   : !entry_from_text(log, number, line, &entry))) {
            if (last && number > 0)
                return true;
            return bad_input(problem, log->path,
                             "line %zu is not of a log of this search; choose another folder",
                             number + 1);
        }
        if (number > 0 && !remember(log, &entry, problem))
            return false;
        *good += length + 1;
    }
    return true;
}

static bool read_log(search_log *log, size_t *good, cli_problem *problem) {
    file_bytes bytes;
    *good = 0;
    if (access(log->path, F_OK) != 0)
        return true;
    if (!file_read(log->path, &bytes, problem))
        return false;
    const bool done = take_lines(log, (const char *)bytes.data, bytes.size, good, problem);
    file_free(&bytes);
    return done;
}

bool search_log_is_empty(const char *path) {
    file_bytes bytes;
    cli_problem ignored;
    if (access(path, F_OK) != 0)
        return true;
    if (!file_read(path, &bytes, &ignored))
        return false;
    const uint8_t *header_end = memchr(bytes.data, '\n', bytes.size);
    const bool empty = !header_end || !memchr(header_end + 1, '\n',
                                              bytes.size - (size_t)(header_end + 1 - bytes.data));
    file_free(&bytes);
    return empty;
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool write_line(search_log *log, const char *line, cli_problem *problem) {
    return (fprintf(log->stream, "%s\n", line) >= 0 && fflush(log->stream) == 0 &&
            fsync(fileno(log->stream)) == 0) ||
           cannot_write(log, problem);
}

/* Open for appending, after truncating what follows the good lines. */
static bool open_for_adding(search_log *log, size_t good, cli_problem *problem) {
    const int descriptor =
        open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0)
        return cannot_write(log, problem);
    if (ftruncate(descriptor, (off_t)good) != 0 || !(log->stream = fdopen(descriptor, "ab"))) {
        cannot_write(log, problem);
        close(descriptor);
        return false;
    }
    return true;
}

bool search_log_open(search_log *log, const char *path, const search_space *space,
                     cli_problem *problem) {
    size_t good;
    char header[LINE_BYTES];
    *log = (search_log){.space = space, .path = strdup(path)};
    header_text(space, header);
    const bool done = log->path
                          ? read_log(log, &good, problem) && open_for_adding(log, good, problem) &&
                                (good > 0 || write_line(log, header, problem))
                          : out_of_memory(problem, path);
    if (!done)
        search_log_close(log);
    return done;
}

bool search_log_add(search_log *log, const search_entry *entry, cli_problem *problem) {
    char line[LINE_BYTES];
    entry_text(log, log->count + 1, entry, line);
    return write_line(log, line, problem) && remember(log, entry, problem);
}

void search_log_close(search_log *log) {
    if (log->stream)
        fclose(log->stream);
    free(log->path);
    free(log->entries);
    *log = (search_log){0};
}
