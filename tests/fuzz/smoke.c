/* A short fuzzing run without libFuzzer, the same on every machine: each file on the command line
 * is tried unchanged and with a few hundred random changes.
 *
 *   fuzz_npy ROUNDS FILE... */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MAX 65536

/* xorshift64: quality does not matter, only reproducibility. */
static uint64_t random_state = 0x9e3779b97f4a7c15u;

static size_t random_below(size_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % limit);
}

/* Change, insert, remove, copy or cut; returns the new size. */
static size_t mutate(uint8_t *data, size_t size) {
    static const uint8_t edge_values[] = {0, 1, 0x7f, 0x80, 0xff, '(', '\'', '9', ','};
    const size_t at = random_below(size), length = 1 + random_below(size - at < 8 ? size - at : 8);
    switch (random_below(6)) {
    case 0:
        data[at] = (uint8_t)(data[at] ^ 1u << random_below(8));
        return size;
    case 1:
        data[at] = edge_values[random_below(sizeof edge_values)];
        return size;
    case 2:
        memmove(data + at, data + at + length, size - at - length);
        return size > length ? size - length : size;
    case 3:
        if (size + length > INPUT_BYTES_MAX)
            return size;
        memmove(data + at + length, data + at, size - at);
        return size + length;
    case 4:
        memmove(data + random_below(size - length + 1), data + at, length);
        return size;
    default:
        return random_below(8) == 0 ? at + 1 : size;
    }
}

static void try_changed(const uint8_t *seed, size_t seed_size) {
    static uint8_t changed[INPUT_BYTES_MAX];
    size_t size = seed_size;
    memcpy(changed, seed, seed_size);
    for (size_t changes = 1 + random_below(4); changes > 0 && size > 0; changes--)
        size = mutate(changed, size);
    /* A copy of the exact size, so that a sanitizer catches every overrun. */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        exit(EXIT_FAILURE);
    memcpy(exact, changed, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int count, char **arguments) {
    static uint8_t seed[INPUT_BYTES_MAX];
    if (count < 3) {
        fprintf(stderr, "usage: %s ROUNDS FILE...\n", arguments[0]);
        return EXIT_FAILURE;
    }
    const long rounds = strtol(arguments[1], NULL, 10);
    for (int i = 2; i < count; i++) {
        FILE *stream = fopen(arguments[i], "rb");
        if (!stream) {
            perror(arguments[i]);
            return EXIT_FAILURE;
        }
        const size_t size = fread(seed, 1, sizeof seed, stream);
        fclose(stream);
        LLVMFuzzerTestOneInput(seed, size);
        for (long round = 0; round < rounds; round++)
            try_changed(seed, size);
    }
    printf("%d files, %ld changes of each\n", count - 2, rounds);
    return EXIT_SUCCESS;
}
