#include "core/memory.h"

#include "core/platform.h"

#include <stdint.h>
#include <string.h>

bool dcrf_multiply(size_t a, size_t b, size_t *product) {
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *product = a * b;
    return true;
}

size_t dcrf_align(size_t bytes) {
    return (bytes + DCRF_ALIGNMENT - 1) / DCRF_ALIGNMENT * DCRF_ALIGNMENT;
}

/* Large arrays request huge pages: fewer page faults when they are first written, fewer TLB misses
 * when they are gathered from. Once released they are kept, up to MOST_KEPT_BYTES: the system
 * clears every page that it hands out, which takes longer than a pass over it, and successive calls
 * need arrays of the same sizes. The system may reclaim the pages of kept blocks at any time. In
 * use and kept together, memory never exceeds the peak in use until that peak is over, and later by
 * no more than a quarter: a process that makes one call takes what the call needs. */
#ifdef DCRF_HAS_HUGE_PAGES
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define HUGE_FROM_BYTES (HUGE_PAGE_BYTES / 2)
/* The rest of the last huge page stays small pages, which are not cleared before they are used. */
#define ROUND_BYTES ((size_t)64 << 10)
#define MOST_BLOCKS 64
#define KEPT_SHARE 4

/* Memory checkers must see every release. */
#ifdef DCRF_IS_SANITIZED
#define MOST_KEPT_BYTES ((size_t)0)
#else
#define MOST_KEPT_BYTES ((size_t)512 << 20)
#endif

static struct {
    struct block {
        void *memory; /* NULL: the entry is free */
        size_t bytes;
        bool is_kept; /* else in use */
    } blocks[MOST_BLOCKS];
    size_t used_bytes, most_used_bytes, kept_bytes;
    bool is_peak_over; /* has less than a quarter of it been in use since? */
} store;
static dcrf_mutex store_mutex = DCRF_MUTEX_INIT;

static void store_enter(void) {
    dcrf_mutex_lock(&store_mutex);
}

static void store_leave(void) {
    dcrf_mutex_unlock(&store_mutex);
}

/* A child of fork() must not find the store locked by a thread that it does not have. */
static void follow_forks_once(void) {
    static bool is_following; /* guarded by the store */
    store_enter();
    if (!is_following)
        dcrf_follow_forks(store_enter, store_leave);
    is_following = true;
    store_leave();
}

/* Return a kept block to the system: the smallest with at least `bytes` bytes, or else the largest.
 * Small arrays of one step must not evict the large ones of the next. */
static void drop_kept(size_t bytes) {
    struct block *chosen = NULL;
    for (struct block *block = store.blocks; block < store.blocks + MOST_BLOCKS; block++) {
        if (!block->memory || !block->is_kept)
            continue;
        const bool is_enough = block->bytes >= bytes;
        if (!chosen || (chosen->bytes < bytes ? block->bytes > chosen->bytes
                                              : is_enough && block->bytes < chosen->bytes))
            chosen = block;
    }
    if (!chosen)
        return;
    store.kept_bytes -= chosen->bytes;
    dcrf_return_pages(chosen->memory, chosen->bytes); /* free() may keep what is not mapped alone */
    dcrf_platform_free(chosen->memory);
    *chosen = (struct block){0};
}

/* The smallest kept block that is large enough, unless it is more than twice as large (a quarter
 * larger, until the peak is over): arrays other than the one it was made for can reuse it, and it
 * need not be cleared again. */
static struct block *find_kept(size_t bytes) {
    const size_t most = bytes + (store.is_peak_over ? bytes : bytes / KEPT_SHARE);
    struct block *best = NULL;
    for (struct block *block = store.blocks; block < store.blocks + MOST_BLOCKS; block++)
        if (block->memory && block->is_kept && block->bytes >= bytes && block->bytes <= most &&
            (!best || block->bytes < best->bytes))
            best = block;
    return best;
}

static struct block *find_entry(const void *memory) {
    for (struct block *block = store.blocks; block < store.blocks + MOST_BLOCKS; block++)
        if (block->memory == memory)
            return block;
    return NULL;
}

/* The limit for memory in use and kept together. Without some slack above the peak in use, one
 * small array without a match would evict a large one in every call. */
static size_t most_held(void) {
    return store.most_used_bytes + (store.is_peak_over ? store.most_used_bytes / KEPT_SHARE : 0);
}

static void *take_huge(size_t bytes) {
    void *memory = dcrf_platform_allocate(HUGE_PAGE_BYTES, bytes);
    if (memory)
        dcrf_prefer_huge_pages(memory, bytes);
    return memory;
}

static void *allocate_huge(size_t size) {
    /* gcc 14's address sanitizer refuses a size that is not a multiple of the alignment. */
    if (MOST_KEPT_BYTES == 0)
        return dcrf_platform_allocate(DCRF_ALIGNMENT, dcrf_align(size));
    const size_t bytes = (size + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
    follow_forks_once();
    store_enter();
    struct block *kept = find_kept(bytes);
    void *memory = NULL;
    if (kept) {
        kept->is_kept = false;
        store.kept_bytes -= kept->bytes;
        store.used_bytes += kept->bytes;
        memory = kept->memory;
    } else {
        size_t sum;
        while (store.kept_bytes > 0 &&
               (sum = store.used_bytes + store.kept_bytes + bytes) > most_held())
            drop_kept(sum - most_held());
        struct block *entry = find_entry(NULL);
        memory = take_huge(bytes);
        while (!memory && store.kept_bytes > 0) { /* kept blocks may take up what is missing */
            drop_kept(bytes);
            memory = take_huge(bytes);
        }
        if (memory && entry) {
            *entry = (struct block){.memory = memory, .bytes = bytes};
            store.used_bytes += bytes;
        }
    }
    if (store.used_bytes > store.most_used_bytes) {
        store.most_used_bytes = store.used_bytes;
        store.is_peak_over = false;
    }
    store_leave();
    return memory;
}

/* Keep a block, if it belongs to the store. */
static bool keep(void *memory) {
    if (MOST_KEPT_BYTES == 0 || !memory || (uintptr_t)memory % HUGE_PAGE_BYTES != 0)
        return false;
    store_enter();
    struct block *block = find_entry(memory);
    const bool is_kept = block && block->bytes <= MOST_KEPT_BYTES;
    if (block) {
        store.used_bytes -= block->bytes;
        store.is_peak_over |= store.used_bytes < store.most_used_bytes / 4;
        if (is_kept) {
            dcrf_lend_pages(memory, block->bytes);
            block->is_kept = true;
            store.kept_bytes += block->bytes;
            while (store.kept_bytes > MOST_KEPT_BYTES)
                drop_kept(store.kept_bytes - MOST_KEPT_BYTES);
        } else {
            *block = (struct block){0};
        }
    }
    store_leave();
    return is_kept;
}
#endif

void *dcrf_allocate(size_t count, size_t bytes) {
    size_t size;
    /* PTRDIFF_MAX: pointers into the array must be subtractable. */
    if (!dcrf_multiply(count, bytes, &size) || size > (size_t)PTRDIFF_MAX - DCRF_ALIGNMENT)
        return NULL;
#ifdef DCRF_HAS_HUGE_PAGES
    if (size >= HUGE_FROM_BYTES)
        return allocate_huge(size);
#endif
    size = dcrf_align(size);
    return dcrf_platform_allocate(DCRF_ALIGNMENT, size ? size : DCRF_ALIGNMENT);
}

void *dcrf_allocate_zero(size_t count, size_t bytes) {
    void *memory = dcrf_allocate(count, bytes);
    if (memory)
        memset(memory, 0, count * bytes);
    return memory;
}

void dcrf_release(void *memory) {
#ifdef DCRF_HAS_HUGE_PAGES
    if (keep(memory))
        return;
#endif
    dcrf_platform_free(memory);
}

void dcrf_drop_kept_memory(void) {
#ifdef DCRF_HAS_HUGE_PAGES
    store_enter();
    while (store.kept_bytes > 0)
        drop_kept(0);
    store.most_used_bytes = store.used_bytes;
    store_leave();
#endif
}
