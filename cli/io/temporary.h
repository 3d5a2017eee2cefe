/* Temporary files, which become outputs when they are complete.
 *
 * They have a unique name in the folder of their target, so that a rename puts them in place. A
 * signal that ends the command removes them first; only SIGKILL or a power failure leaves one
 * behind. */
#ifndef DCRF_CLI_IO_TEMPORARY_H
#define DCRF_CLI_IO_TEMPORARY_H

#include <stdbool.h>

/* Create one for `target`; the caller frees *name. Returns a descriptor, or -1 with errno set. */
int temporary_create(const char *target, char **name);

/* Put it in place, or remove it. False with errno set on failure. */
bool temporary_rename(const char *name, const char *target);
void temporary_remove(const char *name);

/* Is this the name, without its folder, of a temporary file? */
bool temporary_is_name(const char *name);

/* From now on SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process. */
void temporary_guard_signals(void);

#endif
