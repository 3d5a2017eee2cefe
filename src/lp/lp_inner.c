/* Inner steps pay off as long as the last of them lowers the majorant by more per unit of work than
 * the whole step does on average (the marginal value theorem). If they pay off, their number is
 * doubled, otherwise halved; when it is zero, a trial is made now and then. Work is counted, not
 * timed, so that runs are reproducible. */
#include "lp/lp_inner.h"

#include <stdbool.h>

/* None in the first steps, since a run may end soon, nor when the gap is small, where narrow widths
 * matter. */
#define PLAIN_STEPS 32
#define SMALL_GAP 0.03
#define TRIAL 2
#define MOST 64
#define PAUSE 16
/* Work in units of a plain filter of one bin: an inner step takes one filter and three passes over
 * rows; a step, one filter per bin and about six passes. */
#define INNER_WORK 4.0
#define PASSES 6.0

size_t dcrf_lp_inner_choose(struct dcrf_lp_inner *inner, double relative_gap) {
    if (inner->steps++ < PLAIN_STEPS || relative_gap <= SMALL_GAP)
        return 0;
    if (inner->count == 0 && inner->pause > 0) {
        inner->pause--;
        return 0;
    }
    return inner->count > TRIAL ? inner->count : TRIAL;
}

void dcrf_lp_inner_judge(struct dcrf_lp_inner *inner, size_t count, size_t bins,
                         const double *decrease) {
    if (count == 0)
        return;
    const double work = (double)bins + PASSES + INNER_WORK * (double)count;
    const bool is_paying = (decrease[1] - decrease[0]) * work > decrease[1] * INNER_WORK;
    inner->count = is_paying ? 2 * count : count / 2;
    if (inner->count > MOST)
        inner->count = MOST;
    if (inner->count < TRIAL) {
        inner->count = 0;
        inner->pause = PAUSE;
    }
}
