#define _GNU_SOURCE
#include "memory_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

const char *memory_file(size_t number, const uint8_t *data, size_t size) {
    static struct {
        bool is_open;
        int descriptor;
        char path[32];
    } files[MEMORY_FILES];
    if (!files[number].is_open) {
        files[number].descriptor = memfd_create("fuzzed", MFD_CLOEXEC);
        files[number].is_open = files[number].descriptor >= 0;
    }
    const int descriptor = files[number].descriptor;
    if (!files[number].is_open || ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, data, size, 0) != (ssize_t)size)
        return NULL;
    snprintf(files[number].path, sizeof files[number].path, "/proc/self/fd/%d", descriptor);
    return files[number].path;
}
