#include "io/number_bits.h"

#include <math.h>
#include <string.h>

uint64_t number_bits(const uint8_t *at, size_t bytes, bool big_endian) {
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)at[big_endian ? bytes - 1 - i : i] << (8 * i);
    return bits;
}

double number_from_signed(uint64_t bits, size_t bytes) {
    const uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    return bits & sign ? -(double)((sign - 1) - (bits & (sign - 1))) - 1 : (double)bits;
}

/* IEEE 754 binary16: sign, 5 bits of exponent (bias 15), 10 bits of fraction. */
static double half_value(uint16_t bits) {
    const uint64_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double magnitude;
    if (exponent == 0)
        magnitude = 0x1p-24 * (double)fraction;
    else if (exponent < 0x1f)
        magnitude = 0x1p-24 * (double)((fraction + 0x400) << (exponent - 1));
    else
        magnitude = fraction ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -magnitude : magnitude;
}

double number_from_float(uint64_t bits, size_t bytes) {
    if (bytes == 2)
        return half_value((uint16_t)bits);
    if (bytes == 4) {
        const uint32_t narrow = (uint32_t)bits;
        float value;
        memcpy(&value, &narrow, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double number_of_kind(const uint8_t *at, size_t bytes, bool big_endian, char kind) {
    const uint64_t bits = number_bits(at, bytes, big_endian);
    switch (kind) {
    case 'f':
        return number_from_float(bits, bytes);
    case 'i':
        return number_from_signed(bits, bytes);
    case 'b':
        return bits != 0;
    default:
        return (double)bits;
    }
}

bool number_machine_is_big_endian(void) {
    const uint16_t one = 1;
    uint8_t first_byte;
    memcpy(&first_byte, &one, 1);
    return first_byte == 0;
}

void number_make_little_endian(void *numbers, size_t bytes, size_t count) {
    if (!number_machine_is_big_endian())
        return;
    uint8_t *at = numbers;
    for (; count-- > 0; at += bytes)
        for (size_t i = 0; i < bytes / 2; i++) {
            const uint8_t low = at[bytes - 1 - i];
            at[bytes - 1 - i] = at[i];
            at[i] = low;
        }
}
