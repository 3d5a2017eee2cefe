#include "io/file.h"

#include "io/room.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The size of a pipe is unknown; this much is certainly a mistake. */
#define PIPE_BYTES_MAX ((size_t)1 << 32)
#define FIRST_BUFFER_BYTES ((size_t)1 << 16)
/* Below this, reading is as fast as mapping. */
#define MAPPED_BYTES_MIN ((off_t)1 << 20)

/* Make room for at least one byte more than there is. */
static bool grow(file_bytes *bytes, size_t *capacity, size_t at_least) {
    size_t wanted = *capacity ? *capacity * 2 : FIRST_BUFFER_BYTES;
    if (wanted < at_least)
        wanted = at_least;
    uint8_t *larger = wanted < *capacity ? NULL : realloc(bytes->data, wanted);
    if (!larger)
        return false;
    bytes->data = larger;
    *capacity = wanted;
    return true;
}

static bool read_all(int descriptor, const struct stat *info, const char *path, file_bytes *bytes,
                     cli_problem *problem) {
    /* A regular file is read up to its size when it was opened, even if it grows. Some system
     * files report a size of 0. */
    const bool regular = S_ISREG(info->st_mode) && info->st_size > 0;
    const size_t expected = regular ? (size_t)info->st_size : 0;
    size_t capacity = 0;
    if (regular && !room_check(expected, path, problem))
        return false;
    for (;;) {
        if (regular && bytes->size == expected)
            return true;
        if (bytes->size == capacity) {
            if (!room_check(capacity, path, problem))
                return false;
            if (!grow(bytes, &capacity, expected))
                return out_of_memory(problem, path);
        }
        const ssize_t got = read(descriptor, bytes->data + bytes->size, capacity - bytes->size);
        if (got == 0)
            return true;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bad_input(problem, path, "cannot read: %s", strerror(errno));
        bytes->size += (size_t)got;
        if (!regular && bytes->size > PIPE_BYTES_MAX)
            return bad_input(problem, path, "more than 4 GiB from a pipe; use a file");
    }
}

/* False if the file should be read instead. */
static bool map_all(int descriptor, const struct stat *info, file_bytes *bytes) {
    if (!S_ISREG(info->st_mode) || info->st_size < MAPPED_BYTES_MIN)
        return false;
    void *mapped = mmap(NULL, (size_t)info->st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED)
        return false;
    *bytes = (file_bytes){mapped, (size_t)info->st_size, true};
    return true;
}

static bool read_open(int descriptor, const char *path, bool may_map, file_bytes *bytes,
                      cli_problem *problem) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return bad_input(problem, path, "cannot read: %s", strerror(errno));
    if (S_ISDIR(info.st_mode))
        return bad_input(problem, path, "is a folder; give a file");
    if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))
        return bad_input(problem, path, "is a device; give a file");
    return (may_map && map_all(descriptor, &info, bytes)) ||
           read_all(descriptor, &info, path, bytes, problem);
}

/* Is this the name of standard input? */
static bool is_standard(const char *path) {
    return strcmp(path, "-") == 0;
}

/* Standard input can be read only once. */
static int take_standard(cli_problem *problem) {
    static bool is_taken = false;
    const int descriptor = is_taken ? -1 : dup(STDIN_FILENO);
    if (is_taken)
        bad_input(problem, "-",
                  "the standard input was read already; one file can come from it, and is read "
                  "once");
    else if (descriptor < 0)
        bad_input(problem, "-", "cannot read the standard input: %s", strerror(errno));
    is_taken = true;
    return descriptor;
}

bool file_is_plain(const char *path) {
    struct stat info;
    if (is_standard(path))
        return false;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

static bool open_and_read(const char *path, bool may_map, file_bytes *bytes, cli_problem *problem) {
    *bytes = (file_bytes){NULL, 0, false};
    const int descriptor =
        is_standard(path) ? take_standard(problem) : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && is_standard(path))
        return false;
    if (descriptor < 0)
        return bad_input(problem, path, "cannot open: %s", strerror(errno));
    const bool done = read_open(descriptor, path, may_map, bytes, problem);
    close(descriptor);
    if (!done)
        file_free(bytes);
    return done;
}

bool file_read(const char *path, file_bytes *bytes, cli_problem *problem) {
    return open_and_read(path, false, bytes, problem);
}

bool file_map(const char *path, file_bytes *bytes, cli_problem *problem) {
    return open_and_read(path, true, bytes, problem);
}

void file_free(file_bytes *bytes) {
    if (bytes->mapped)
        munmap(bytes->data, bytes->size);
    else
        free(bytes->data);
    *bytes = (file_bytes){NULL, 0, false};
}

static void on_cut(int signal_number) {
    static const char message[] = "dcrf: an input file was cut while it was read\n";
    (void)signal_number;
    /* Nothing can be done about a failed write here. */
    if (write(STDERR_FILENO, message, sizeof message - 1) < 0)
        _exit(EXIT_STATUS_FAILURE);
    _exit(EXIT_STATUS_BAD_INPUT);
}

void file_explain_cut(void) {
    signal(SIGBUS, on_cut);
}
