/* Wall-clock time. */
#ifndef DCRF_CORE_TIMER_H
#define DCRF_CORE_TIMER_H

/* Seconds since some fixed moment, monotone. */
double dcrf_time_s(void);

#endif
