/* What the implementations of the ordered filter share: the values F(y_a, node h) seen from one
 * variable. */
#ifndef DCRF_FILTER_ORDERED_H
#define DCRF_FILTER_ORDERED_H

#include "filter/operator.h"

/* row[h] = F(y_a, node h) for all bins h. */
static inline void dcrf_ordered_row(const struct dcrf_ordered *ordered, size_t variable,
                                    float *row) {
    const size_t bin = ordered->bin[variable];
    if (!ordered->table) {
        for (size_t h = 0; h < ordered->bins; h++)
            row[h] = (float)((h > bin) - (h < bin));
        return;
    }
    const float *low = ordered->table + bin * ordered->bins;
    const float fraction = ordered->fraction[variable];
    /* Where the fraction is zero the next node may not exist. */
    const float *high = fraction > 0 ? low + ordered->bins : low;
    for (size_t h = 0; h < ordered->bins; h++)
        row[h] = low[h] + fraction * (high[h] - low[h]);
}

#endif
