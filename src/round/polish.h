/* Improving a labelling by discrete moves. */
#ifndef DCRF_ROUND_POLISH_H
#define DCRF_ROUND_POLISH_H

#include "core/interrupt.h"
#include "energy/coupling.h"

#include <stdint.h>

struct dcrf_polisher;

/* Allocate all memory for polishing. The coupling must outlive the polisher. */
dcrf_status dcrf_polisher_new(struct dcrf_polisher **polisher, const struct dcrf_coupling *coupling,
                              dcrf_error *error);
void dcrf_polisher_free(struct dcrf_polisher **polisher);

/* Apply moves until none lowers the energy, for at most `passes` filter applications or until
 * interrupted (NULL: never). The labelling is replaced by a better one or left unchanged, also on
 * an error, unless that is a device's when it hands the labels over. */
dcrf_status dcrf_polish(struct dcrf_polisher *polisher, uint16_t *labels, size_t passes,
                        const struct dcrf_interrupt *interrupt, dcrf_error *error);

#endif
