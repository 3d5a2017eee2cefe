/* The entry point of a fuzz target, as libFuzzer calls it; smoke.c calls it too. */
#ifndef DCRF_TESTS_FUZZ_TARGET_H
#define DCRF_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
