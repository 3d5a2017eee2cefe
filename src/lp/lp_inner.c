/* Inner steps pay off as long as the last of them lowers the majorant by more per unit of work than
 * the whole step does on average (the marginal value theorem). If they pay off, their number is
 * doubled, otherwise halved; when it is zero, a trial is made now and then. Work is counted, not
 * timed, so that runs are reproducible. */
#include "lp/lp_inner.h"

/* None in the first steps, since a run may end soon. When the gap is small, narrow widths matter,
 * and averages of plain steps give better dual points; but where the bound stands still and the
 * objective is above the energy of the best labelling, so that y is far from the minimum, as after
 * a change of width, a few of them bring it there. */
#define PLAIN_STEPS 32
#define SMALL_GAP 0.03
#define TRIAL 2
#define MOST 64
#define MOST_AT_SMALL_GAP 8
/* The bound stands still when so many steps at one width have closed at most this fraction of the
 * gap. After a change of width it does so for eight steps anyway. */
#define QUIET_STEPS 10
#define QUIET 0.1
#define PAUSE 16
#define FIRST_IF_LIFTED 24
/* Work in units of a plain filter of one bin: an inner step takes one filter and three passes over
 * rows; a step, one filter per bin and about six passes. */
#define INNER_WORK 4.0
#define PASSES 6.0

static bool is_quiet(struct dcrf_lp_inner *inner, const struct dcrf_lp_progress *now) {
    inner->quiet++;
    if (inner->steps == 0 ||
        now->bound - inner->bound_before > QUIET * (now->energy - now->bound)) {
        inner->bound_before = now->bound;
        inner->quiet = 0;
    }
    return inner->quiet >= QUIET_STEPS;
}

struct dcrf_lp_inner dcrf_lp_inner_begin(bool is_lifted) {
    return (struct dcrf_lp_inner){.is_lifted = is_lifted, .count = is_lifted ? FIRST_IF_LIFTED : 0};
}

size_t dcrf_lp_inner_choose(struct dcrf_lp_inner *inner, const struct dcrf_lp_progress *now) {
    const bool is_stuck = is_quiet(inner, now) && now->objective > now->energy;
    const bool is_small = now->relative_gap <= SMALL_GAP && !inner->is_lifted;
    const bool is_early = inner->steps++ < PLAIN_STEPS && !inner->is_lifted;
    if (is_early || (is_small && !is_stuck))
        return 0;
    if (is_small && inner->count > MOST_AT_SMALL_GAP)
        inner->count = MOST_AT_SMALL_GAP;
    if (inner->count == 0 && inner->pause > 0) {
        inner->pause--;
        return 0;
    }
    return inner->count > TRIAL ? inner->count : TRIAL;
}

void dcrf_lp_inner_adapt(struct dcrf_lp_inner *inner, size_t count, size_t bins,
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
