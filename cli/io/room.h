/* Memory that is there to be taken, so that what a header promises can be refused before it is
 * made.
 *
 * A system that promises more memory than it has ends programs that believe it; a file of some
 * hundred kilobytes can hold a picture of gigabytes. */
#ifndef DCRF_CLI_IO_ROOM_H
#define DCRF_CLI_IO_ROOM_H

#include "problem.h"

#include <stddef.h>

/* From now on no more than this may be taken for a file (--memory). */
void room_limit(size_t bytes);

/* Bytes that can be taken: what the machine has free, what the limits of the process and of its
 * control group leave, and what was requested. SIZE_MAX: no limit is known. */
size_t room_bytes(void);

/* Is there room for what a file needs when it is decoded? */
bool room_check(size_t bytes, const char *file, cli_problem *problem);

#endif
