/* The workspace: a pool of threads and scratch memory that grows to what is needed and is then
 * kept, so that a loop allocates nothing after its first turn. */
#ifndef DCRF_CORE_WORKSPACE_H
#define DCRF_CORE_WORKSPACE_H

#include "core/threads.h"

#include <dcrf/operator.h>

/* Each user of scratch memory that can be active together with another has a slot of its own. */
enum dcrf_slot {
    DCRF_SLOT_OPERATOR,  /* inside an operator's apply */
    DCRF_SLOT_OPERATOR2, /* a second buffer there */
    DCRF_SLOT_HISTOGRAM, /* histograms of the ordered filter */
    DCRF_SLOT_BINS,      /* and the bins of its values */
    DCRF_SLOT_ORDERED,   /* channels on their way through the ordered filter */
    DCRF_SLOT_ENERGY,    /* blocks built by the energy */
    DCRF_SLOT_ENERGY2,   /* its list of labels */
    DCRF_SLOT_ENERGY3,   /* its sums */
    DCRF_SLOT_SPREAD,    /* lattices of the compatible mean field */
    DCRF_SLOT_CHUNK,     /* and what its threads work on */
    DCRF_SLOT_COUNT
};

/* At least count * bytes bytes in a slot, contents undefined; NULL when memory is out. The pointer
 * is valid until the next call for the same slot. */
void *dcrf_workspace_slot(dcrf_workspace *workspace, enum dcrf_slot slot, size_t count,
                          size_t bytes);

/* The pool of a workspace. */
dcrf_pool *dcrf_workspace_pool(dcrf_workspace *workspace);

#endif
