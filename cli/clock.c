#include "clock.h"

#include <math.h>
#include <time.h>

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

time_frame time_frame_begin(double limit_s) {
    return (time_frame){seconds_now(), limit_s};
}

double time_left_s(const time_frame *frame) {
    const double gone_s = seconds_now() - frame->began_s;
    return frame->limit_s > 0 ? fmax(frame->limit_s - gone_s, 1e-9) : 0;
}

bool time_is_over(const time_frame *frame) {
    return frame->limit_s > 0 && seconds_now() - frame->began_s >= frame->limit_s;
}
