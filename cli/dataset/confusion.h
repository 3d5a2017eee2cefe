/* How many pixels of one class got the label of another: only pairs that occur take memory, so that
 * tens of thousands of classes do no harm. A hash table with open addressing; its order means
 * nothing. */
#ifndef DCRF_CLI_DATASET_CONFUSION_H
#define DCRF_CLI_DATASET_CONFUSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct confusion_cell {
    uint16_t truth;
    uint16_t label;
    uint64_t pixels; /* 0: an empty place of the table */
} confusion_cell;

/* All zero is a table of nothing. */
typedef struct confusion {
    confusion_cell *cells;
    size_t capacity; /* 0 or a power of two */
    size_t used;
} confusion;

void confusion_free(confusion *c);

/* Make room for so many pairs in all. False when memory is out; then nothing has changed. */
bool confusion_reserve(confusion *c, size_t pairs);

/* Add to a pair for which there is room. */
void confusion_add(confusion *c, uint16_t truth, uint16_t label, uint64_t pixels);
uint64_t confusion_get(const confusion *c, uint16_t truth, uint16_t label);

/* The pairs by truth, then by label: `used` of them, to be freed; NULL when memory is out. */
confusion_cell *confusion_sorted(const confusion *c);

#endif
