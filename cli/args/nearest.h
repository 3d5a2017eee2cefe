/* The known name nearest to a mistyped one, for "did you mean". */
#ifndef DCRF_CLI_ARGS_NEAREST_H
#define DCRF_CLI_ARGS_NEAREST_H

#include <stddef.h>

typedef struct nearest_name {
    const char *wanted;
    const char *best; /* NULL until a near name is offered */
    size_t best_distance;
} nearest_name;

nearest_name nearest_start(const char *wanted);
void nearest_offer(nearest_name *nearest, const char *candidate);

#endif
