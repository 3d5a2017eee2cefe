/* Temporary files: what becomes an output when it is complete.
 *
 * They lie in the folder of their target, so that a rename puts them in place, under a unique name.
 * A signal that ends the command removes them first; only a kill that cannot be caught, or a power
 * cut, leaves one behind. */
#ifndef DCRF_CLI_IO_TEMPORARY_H
#define DCRF_CLI_IO_TEMPORARY_H

#include <stdbool.h>

/* Make one for `target`; *name is to be freed. A descriptor, or -1 with errno set. */
int temporary_create(const char *target, char **name);

/* Take it into place, or away. False with errno set where that fails. */
bool temporary_rename(const char *name, const char *target);
void temporary_remove(const char *name);

/* Is this the name, without its folder, of a temporary file? */
bool temporary_is_name(const char *name);

/* From now on SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process. */
void temporary_guard_signals(void);

#endif
