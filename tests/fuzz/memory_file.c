#define _GNU_SOURCE
#include "memory_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Named files: some readers refuse links such as /dev/fd. */
static struct {
    bool is_open;
    int descriptor;
    char path[32];
} files[MEMORY_FILES];

static void remove_files(void) {
    for (size_t i = 0; i < MEMORY_FILES; i++)
        if (files[i].is_open)
            unlink(files[i].path);
}

static void open_file(size_t number) {
    static bool is_registered;
    strcpy(files[number].path, "/dev/shm/fuzzed-XXXXXX");
    files[number].descriptor = mkostemp(files[number].path, O_CLOEXEC);
    files[number].is_open = files[number].descriptor >= 0;
    if (!is_registered)
        is_registered = atexit(remove_files) == 0;
}

const char *memory_file(size_t number, const uint8_t *data, size_t size) {
    if (!files[number].is_open)
        open_file(number);
    const int descriptor = files[number].descriptor;
    if (!files[number].is_open || ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, data, size, 0) != (ssize_t)size)
        return NULL;
    return files[number].path;
}
