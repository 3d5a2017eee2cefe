/* The entry point of a fuzz target, called by libFuzzer or by smoke.c. */
#ifndef DCRF_TESTS_FUZZ_TARGET_H
#define DCRF_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
