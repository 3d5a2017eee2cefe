/* Copying and clearing large arrays with all threads. */
#include "core/threads.h"

#include <string.h>

/* About so many bytes per chunk. */
#define BYTES ((size_t)1 << 16)

struct copy {
    char *to;
    const char *from; /* NULL: zeros */
};

static void copy_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct copy *copy = context;
    if (copy->from)
        memcpy(copy->to + begin, copy->from + begin, end - begin);
    else
        memset(copy->to + begin, 0, end - begin);
}

void dcrf_parallel_copy(dcrf_pool *pool, void *to, const void *from, size_t bytes) {
    struct copy copy = {to, from};
    dcrf_parallel_for(pool, bytes, dcrf_even_grain(bytes, BYTES), copy_some, &copy);
}

void dcrf_parallel_clear(dcrf_pool *pool, void *to, size_t bytes) {
    dcrf_parallel_copy(pool, to, NULL, bytes);
}

/* About so many rows per chunk. */
#define ROWS 4096

struct column {
    float *to;
    const float *rows;
    size_t stride;
};

static void copy_column(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct column *column = context;
    for (size_t a = begin; a < end; a++)
        column->to[a] = column->rows[a * column->stride];
}

void dcrf_parallel_column(dcrf_pool *pool, float *to, const float *rows, size_t stride,
                          size_t count) {
    struct column column = {to, rows, stride};
    dcrf_parallel_for(pool, count, dcrf_even_grain(count, ROWS), copy_column, &column);
}
