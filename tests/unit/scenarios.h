/* Uses of the library from beginning to end, for tests that inject failures.
 *
 * To add one, write a function and a line in `scenarios`. */
#ifndef DCRF_TESTS_SCENARIOS_H
#define DCRF_TESTS_SCENARIOS_H

#include "alloc_injection.h"

struct named_scenario {
    const char *name;
    scenario run;
    size_t least_requests; /* for memory; fewer mean that the scenario is not doing its job */
};

extern const struct named_scenario scenarios[];
extern const size_t scenario_count;

#endif
