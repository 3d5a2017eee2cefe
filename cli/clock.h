/* How long things take, and may take. */
#ifndef DCRF_CLI_CLOCK_H
#define DCRF_CLI_CLOCK_H

#include <stdbool.h>

/* Seconds of a clock that only goes forward. */
double seconds_now(void);

/* The time that a command may take, reading of files and writing of results included. */
typedef struct time_frame {
    double began_s; /* by that clock */
    double limit_s; /* 0: none */
} time_frame;

/* It begins now. */
time_frame time_frame_begin(double limit_s);

/* Seconds that are left, above 0 even when there are none; 0 without a limit. */
double time_left_s(const time_frame *frame);
bool time_is_over(const time_frame *frame);

#endif
