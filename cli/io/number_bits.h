/* Numbers in files, byte by byte: for any byte order and alignment, and without
 * compiler-dependent conversions. */
#ifndef DCRF_CLI_IO_NUMBER_BITS_H
#define DCRF_CLI_IO_NUMBER_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bits of a number of 1 to 8 bytes. */
uint64_t number_bits(const uint8_t *at, size_t bytes, bool big_endian);

/* Their value in two's complement of 1 to 8 bytes; rounded beyond 2^53. */
double number_from_signed(uint64_t bits, size_t bytes);

/* Their value in IEEE 754 of 2, 4 or 8 bytes. */
double number_from_float(uint64_t bits, size_t bytes);

/* A number of a kind, with NumPy's letters: 'f', 'i', 'u' or 'b'. Exact except for 8-byte
 * integers beyond 2^53, which are rounded. */
double number_of_kind(const uint8_t *at, size_t bytes, bool big_endian, char kind);

/* The byte order of this machine. */
bool number_machine_is_big_endian(void);

/* Convert numbers in place from this machine's byte order to little-endian. */
void number_make_little_endian(void *numbers, size_t bytes, size_t count);

#endif
