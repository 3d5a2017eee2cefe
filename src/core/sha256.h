/* SHA-256 (FIPS 180-4), so that a certificate can say which data it belongs to. */
#ifndef DCRF_CORE_SHA256_H
#define DCRF_CORE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define DCRF_SHA256_BYTES 32

struct dcrf_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
};

void dcrf_sha256_begin(struct dcrf_sha256 *hash);
void dcrf_sha256_add(struct dcrf_sha256 *hash, const void *bytes, size_t count);
void dcrf_sha256_end(struct dcrf_sha256 *hash, uint8_t digest[DCRF_SHA256_BYTES]);

/* Numbers are hashed as little-endian bytes. */
void dcrf_sha256_add_f32(struct dcrf_sha256 *hash, float value);
void dcrf_sha256_add_f64(struct dcrf_sha256 *hash, double value);
void dcrf_sha256_add_u64(struct dcrf_sha256 *hash, uint64_t value);

#endif
