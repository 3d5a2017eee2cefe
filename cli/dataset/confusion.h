/* How many pixels of one class got the label of another. Only pairs that occur take memory, so
 * that tens of thousands of classes are possible. A hash table with open addressing; its order
 * is arbitrary. */
#ifndef DCRF_CLI_DATASET_CONFUSION_H
#define DCRF_CLI_DATASET_CONFUSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct confusion_cell {
    uint16_t truth;
    uint16_t label;
    uint64_t pixels; /* 0: an empty slot */
} confusion_cell;

/* All zero is an empty table. */
typedef struct confusion {
    confusion_cell *cells;
    size_t capacity; /* 0 or a power of two */
    size_t used;
} confusion;

void confusion_free(confusion *c);

/* Make room for this many pairs in total. False if out of memory; then nothing has changed. */
bool confusion_reserve(confusion *c, size_t pairs);

/* Add to a pair for which there is room. */
void confusion_add(confusion *c, uint16_t truth, uint16_t label, uint64_t pixels);
uint64_t confusion_get(const confusion *c, uint16_t truth, uint16_t label);

/* The pairs by truth, then by label: `used` of them; the caller frees them. NULL if out of
 * memory. */
confusion_cell *confusion_sorted(const confusion *c);

#endif
