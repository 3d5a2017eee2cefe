/* Ctrl-C and SIGTERM as a wish to end, which the work looks at. */
#ifndef DCRF_CLI_INTERRUPT_H
#define DCRF_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on a signal is only noted; a second one ends the program. */
void interrupt_catch(void);
bool interrupt_came(void);

/* Signals have their usual meaning again. */
void interrupt_release(void);

#endif
