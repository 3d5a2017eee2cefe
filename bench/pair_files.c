#include "pair_files.h"

#include <stdio.h>
#include <stdlib.h>

void *pair_require(void *memory) {
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static void fail(const char *path) {
    perror(path);
    exit(1);
}

void *pair_read(const char *folder, const char *name, size_t *count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    const long bytes = ftell(file);
    rewind(file);
    *count = (size_t)bytes / 4;
    void *values = pair_require(malloc(*count * 4 + 1));
    if (bytes < 0 || fread(values, 4, *count, file) != *count)
        fail(path);
    fclose(file);
    return values;
}

void pair_write(const char *folder, const char *name, const void *values, size_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(values, 4, count, file) != count || fclose(file))
        fail(path);
}
