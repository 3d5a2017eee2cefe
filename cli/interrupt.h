/* Ctrl-C and SIGTERM as a wish to end, which the work looks at. */
#ifndef DCRF_CLI_INTERRUPT_H
#define DCRF_CLI_INTERRUPT_H

#include "clock.h"

#include <dcrf/dcrf.h>

/* From now on a signal is only noted; a second one ends the program. */
void interrupt_catch(void);
bool interrupt_came(void);

/* Let what is done with a workspace end with the time, or with a signal that is caught. */
void interrupt_limit(dcrf_workspace *workspace, const time_frame *time);

/* Signals have their usual meaning again. */
void interrupt_release(void);

#endif
