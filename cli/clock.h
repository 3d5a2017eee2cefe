/* How long things take. */
#ifndef DCRF_CLI_CLOCK_H
#define DCRF_CLI_CLOCK_H

/* Seconds of a clock that only goes forward. */
double seconds_now(void);

#endif
