#include "dataset/hash.h"

#include "io/file.h"

#include <stdio.h>
#include <xxhash.h>

content_hash hash_bytes(const void *data, size_t size) {
    const XXH128_hash_t bits = XXH3_128bits(data, size);
    content_hash hash;
    snprintf(hash.text, sizeof hash.text, "%016llx%016llx", (unsigned long long)bits.high64,
             (unsigned long long)bits.low64);
    return hash;
}

bool hash_file(const char *path, content_hash *hash, cli_problem *problem) {
    file_bytes bytes;
    if (!file_map(path, &bytes, problem))
        return false;
    *hash = hash_bytes(bytes.data, bytes.size);
    file_free(&bytes);
    return true;
}
