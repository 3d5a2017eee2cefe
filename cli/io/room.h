/* The memory that is available, so that a header that asks for too much is refused before it is
 * allocated.
 *
 * A system that overcommits memory kills the programs that use it, and a file of a few hundred
 * kilobytes can hold a picture of gigabytes. */
#ifndef DCRF_CLI_IO_ROOM_H
#define DCRF_CLI_IO_ROOM_H

#include "problem.h"

#include <stddef.h>

/* From now on a file may use no more than this (--memory). */
void room_limit(size_t bytes);

/* Available bytes: the smallest of what the machine has free, what the limits of the process and
 * of its control group leave, and the requested limit. SIZE_MAX: no limit is known. */
size_t room_bytes(void);

/* Is there room for what decoding a file needs? */
bool room_check(size_t bytes, const char *file, cli_problem *problem);

#endif
