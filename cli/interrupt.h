/* Ctrl-C and SIGTERM as a request to stop, which the work polls. */
#ifndef DCRF_CLI_INTERRUPT_H
#define DCRF_CLI_INTERRUPT_H

#include "clock.h"

#include <dcrf/dcrf.h>

/* From now on a signal is only recorded; a second one ends the program. */
void interrupt_catch(void);
bool interrupt_came(void);

/* Make work that uses the workspace stop at the time limit or when a signal is caught. */
void interrupt_limit(dcrf_workspace *workspace, const time_frame *time);

/* Restore the usual signal handling. */
void interrupt_release(void);

#endif
