/* The name of a function of this program, also of a static one. */
#ifndef DCRF_BENCH_SYMBOL_H
#define DCRF_BENCH_SYMBOL_H

/* "?" if it is not known: the program was stripped, or the system is not Linux. */
const char *symbol_name(void (*function)(void));

#endif
