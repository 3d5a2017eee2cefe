/* Clocks and time limits. */
#ifndef DCRF_CLI_CLOCK_H
#define DCRF_CLI_CLOCK_H

#include <stdbool.h>

/* Seconds by a monotonic clock. */
double seconds_now(void);

/* The time limit of a command, including reading its inputs and writing its results. */
typedef struct time_frame {
    double began_s; /* by seconds_now */
    double limit_s; /* 0: none */
} time_frame;

/* Starts now. */
time_frame time_frame_begin(double limit_s);

/* Seconds left, never 0 when there is a limit; 0 without a limit. */
double time_left_s(const time_frame *frame);
bool time_is_over(const time_frame *frame);

#endif
