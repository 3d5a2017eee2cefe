/* Numbers of files, byte by byte: whatever the byte order and alignment, and without conversions
 * that depend on the compiler. */
#ifndef DCRF_CLI_IO_NUMBER_BITS_H
#define DCRF_CLI_IO_NUMBER_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bits of a number of 1 to 8 bytes. */
uint64_t number_bits(const uint8_t *at, size_t bytes, bool big_endian);

/* Their meaning in two's complement of 1 to 8 bytes; rounded beyond 2^53. */
double number_from_signed(uint64_t bits, size_t bytes);

/* Their meaning in IEEE 754 of 2, 4 or 8 bytes. */
double number_from_float(uint64_t bits, size_t bytes);

/* A number of a kind as numpy names them: 'f', 'i', 'u' or 'b'. Exact but for 8-byte integers
 * beyond 2^53, which are rounded. */
double number_of_kind(const uint8_t *at, size_t bytes, bool big_endian, char kind);

/* The order of bytes that numbers have in the memory of this machine. */
bool number_machine_is_big_endian(void);

/* Numbers in memory, turned in place into those of a file that is little-endian. */
void number_make_little_endian(void *numbers, size_t bytes, size_t count);

#endif
