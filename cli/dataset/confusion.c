#include "dataset/confusion.h"

#include <assert.h>
#include <stdlib.h>

#define LEAST_CAPACITY 64

void confusion_free(confusion *c) {
    free(c->cells);
    *c = (confusion){0};
}

/* The slot of a pair, or the empty one where it belongs. At most half of the slots are used, so
 * there is one. */
static confusion_cell *place_of(const confusion *c, uint16_t truth, uint16_t label) {
    const uint32_t key = (uint32_t)truth << 16 | label;
    /* Fibonacci hashing: the high bits of a product with 2^64 over the golden ratio. */
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (c->capacity - 1);
    while (c->cells[at].pixels > 0 && (c->cells[at].truth != truth || c->cells[at].label != label))
        at = (at + 1) & (c->capacity - 1);
    return &c->cells[at];
}

bool confusion_reserve(confusion *c, size_t pairs) {
    size_t capacity = c->capacity > 0 ? c->capacity : LEAST_CAPACITY;
    while (capacity / 2 < pairs && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity == c->capacity)
        return true;
    confusion larger = {.cells = calloc(capacity, sizeof *larger.cells), .capacity = capacity};
    if (!larger.cells || capacity / 2 < pairs) {
        free(larger.cells);
        return false;
    }
    for (size_t i = 0; i < c->capacity; i++)
        if (c->cells[i].pixels > 0)
            confusion_add(&larger, c->cells[i].truth, c->cells[i].label, c->cells[i].pixels);
    confusion_free(c);
    *c = larger;
    return true;
}

void confusion_add(confusion *c, uint16_t truth, uint16_t label, uint64_t pixels) {
    if (pixels == 0)
        return;
    assert(c->capacity > 0);
    confusion_cell *cell = place_of(c, truth, label);
    if (cell->pixels == 0) {
        assert(c->used < c->capacity / 2);
        c->used++;
        cell->truth = truth;
        cell->label = label;
    }
    cell->pixels += pixels;
}

uint64_t confusion_get(const confusion *c, uint16_t truth, uint16_t label) {
    return c->capacity > 0 ? place_of(c, truth, label)->pixels : 0;
}

static int compare_cells(const void *a, const void *b) {
    const confusion_cell *x = a, *y = b;
    return x->truth != y->truth ? (x->truth > y->truth) - (x->truth < y->truth)
                                : (x->label > y->label) - (x->label < y->label);
}

confusion_cell *confusion_sorted(const confusion *c) {
    confusion_cell *sorted = malloc((c->used + 1) * sizeof *sorted);
    size_t count = 0;
    if (!sorted)
        return NULL;
    for (size_t i = 0; i < c->capacity; i++)
        if (c->cells[i].pixels > 0)
            sorted[count++] = c->cells[i];
    qsort(sorted, count, sizeof *sorted, compare_cells);
    return sorted;
}
