/* Wall-clock time. */
#ifndef DCRF_CORE_TIMER_H
#define DCRF_CORE_TIMER_H

/* Seconds since some fixed moment, monotonic. */
double dcrf_time_s(void);

#endif
