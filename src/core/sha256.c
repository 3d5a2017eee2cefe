#include "core/sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned bits) {
    return x >> bits | x << (32 - bits);
}

static void take_block(uint32_t *state, const uint8_t *block) {
    uint32_t w[64], s[8];
    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (size_t t = 16; t < 64; t++) {
        const uint32_t early = w[t - 15], late = w[t - 2];
        w[t] = w[t - 16] + (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) + w[t - 7] +
               (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
    memcpy(s, state, sizeof s);
    for (size_t t = 0; t < 64; t++) {
        const uint32_t first = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                               ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[t] + w[t];
        const uint32_t second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                                ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += s[i];
}

void dcrf_sha256_begin(struct dcrf_sha256 *hash) {
    *hash = (struct dcrf_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void dcrf_sha256_add(struct dcrf_sha256 *hash, const void *bytes, size_t count) {
    const uint8_t *from = bytes;
    while (count > 0) {
        const size_t used = hash->length % 64, room = 64 - used;
        const size_t part = count < room ? count : room;
        memcpy(hash->block + used, from, part);
        hash->length += part;
        from += part;
        count -= part;
        if (hash->length % 64 == 0)
            take_block(hash->state, hash->block);
    }
}

void dcrf_sha256_end(struct dcrf_sha256 *hash, uint8_t digest[DCRF_SHA256_BYTES]) {
    const uint64_t bits = hash->length * 8;
    const uint8_t one = 0x80, zero = 0;
    uint8_t length[8];
    dcrf_sha256_add(hash, &one, 1);
    while (hash->length % 64 != 56)
        dcrf_sha256_add(hash, &zero, 1);
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    dcrf_sha256_add(hash, length, 8);
    for (size_t i = 0; i < DCRF_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void dcrf_sha256_add_u64(struct dcrf_sha256 *hash, uint64_t value) {
    uint8_t bytes[8];
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    dcrf_sha256_add(hash, bytes, 8);
}

void dcrf_sha256_add_f64(struct dcrf_sha256 *hash, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    dcrf_sha256_add_u64(hash, bits);
}

void dcrf_sha256_add_f32(struct dcrf_sha256 *hash, float value) {
    uint32_t bits;
    uint8_t bytes[4];
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(bits >> (8 * i));
    dcrf_sha256_add(hash, bytes, 4);
}
