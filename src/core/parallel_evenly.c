/* Chunks that fill whole rounds.
 *
 * Threads take chunks, so a loop takes as many rounds as its largest share has chunks: 17 chunks
 * take 16 threads as long as 32. The chunks of a loop over many indices are therefore a multiple of
 * 16, whatever the number of threads: 2, 4, 8 and 16 threads have equal shares. */
#include "core/threads.h"

#define PARTS 16
/* Chunks begin at multiples of this: so many floats are a cache line, and the rows of blocks that
 * are interleaved. */
#define STEP 16
/* Rows of variables in a chunk. */
#define USUAL_ROWS 1024

size_t dcrf_even_grain(size_t count, size_t usual) {
    if (count == 0)
        return usual;
    const size_t least = (count - 1) / usual + 1; /* chunks */
    const size_t parts = least < PARTS ? least : PARTS;
    const size_t rounds = (count + parts * usual / 2) / (parts * usual); /* the nearest number */
    const size_t chunks = rounds > 0 ? parts * rounds : parts;
    return ((count - 1) / chunks + STEP) / STEP * STEP;
}

void dcrf_parallel_rows(dcrf_pool *pool, size_t count, dcrf_task task, void *context) {
    dcrf_parallel_for(pool, count, dcrf_even_grain(count, USUAL_ROWS), task, context);
}
