/* Names of files and classes, made safe to print.
 *
 * A name can hold any bytes, and on a terminal some of them move the cursor or change colours.
 * Only valid UTF-8 without control characters passes; every other byte becomes \xNN: ASCII
 * control characters (ESC), those of Latin-1 (U+009B, which begins sequences as ESC [ does), the
 * marks that change the writing direction, and bytes that are not UTF-8. */
#ifndef DCRF_CLI_PRINTABLE_H
#define DCRF_CLI_PRINTABLE_H

#include <stddef.h>

/* The text, truncated to fit `out`; returns `out`. */
char *printable(const char *text, char *out, size_t bytes);

/* The same without a limit; the caller frees it. NULL: out of memory. */
char *printable_copy(const char *text);

#define PRINTABLE_BYTES 512

#endif
