/* A small seeded random number generator (xoshiro256**, Blackman and Vigna 2018; seeded by
 * splitmix64). State belongs to the caller, so results repeat. */
#ifndef DCRF_CORE_RNG_H
#define DCRF_CORE_RNG_H

#include <stdint.h>

typedef struct dcrf_rng {
    uint64_t state[4];
} dcrf_rng;

void dcrf_rng_seed(dcrf_rng *rng, uint64_t seed);
uint64_t dcrf_rng_next(dcrf_rng *rng);

/* Uniform on [0, 1). */
double dcrf_rng_uniform(dcrf_rng *rng);

#endif
