#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe does not say how much is coming; this much is certainly a mistake. */
#define PIPE_BYTES_MAX ((size_t)1 << 32)
#define FIRST_BUFFER_BYTES ((size_t)1 << 16)

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
    /* One byte beyond the size of a regular file, so that its end is seen without growing. */
    const bool regular = S_ISREG(info->st_mode) && info->st_size >= 0;
    const size_t expected = regular ? (size_t)info->st_size + 1 : 0;
    size_t capacity = 0;
    for (;;) {
        if (bytes->size == capacity && !grow(bytes, &capacity, expected))
            return out_of_memory(problem, path);
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

static bool read_open(int descriptor, const char *path, file_bytes *bytes, cli_problem *problem) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return bad_input(problem, path, "cannot read: %s", strerror(errno));
    if (S_ISDIR(info.st_mode))
        return bad_input(problem, path, "is a folder; give a file");
    if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))
        return bad_input(problem, path, "is a device; give a file");
    return read_all(descriptor, &info, path, bytes, problem);
}

bool file_read(const char *path, file_bytes *bytes, cli_problem *problem) {
    *bytes = (file_bytes){NULL, 0};
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return bad_input(problem, path, "cannot open: %s", strerror(errno));
    const bool done = read_open(descriptor, path, bytes, problem);
    close(descriptor);
    if (!done)
        file_free(bytes);
    return done;
}

void file_free(file_bytes *bytes) {
    free(bytes->data);
    *bytes = (file_bytes){NULL, 0};
}
