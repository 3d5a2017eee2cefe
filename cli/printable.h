/* Names of files and classes, made fit to be shown.
 *
 * A name is any bytes; on a terminal some of them move the cursor or change colours. Here only what
 * is UTF-8 and no control character passes, and a byte of anything else becomes \xNN: control
 * characters of ASCII (ESC) and of Latin-1 (U+009B, which begins sequences as ESC [ does), the
 * marks that turn the direction of writing, and bytes that are no UTF-8. */
#ifndef DCRF_CLI_PRINTABLE_H
#define DCRF_CLI_PRINTABLE_H

#include <stddef.h>

/* The text, cut where `out` is full; returns `out`. */
char *printable(const char *text, char *out, size_t bytes);

/* The same without a limit, to be freed; NULL: out of memory. */
char *printable_copy(const char *text);

#define PRINTABLE_BYTES 512

#endif
