/* libpng reports errors by longjmp. A session confines that to one function: everything that has
 * to survive the jump (libpng's structures, the buffers, the message) is in a struct outside the
 * function that calls setjmp, so no local variable is read after a jump. */
#ifndef DCRF_CLI_IO_PNG_SESSION_H
#define DCRF_CLI_IO_PNG_SESSION_H

#include <png.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct png_session {
    png_structp png;
    png_infop info;
    bool out_of_memory;
    char message[96]; /* from libpng, without its full stop */
} png_session;

/* Structures for reading or writing; false if out of memory. */
bool png_session_open_reading(png_session *session);
bool png_session_open_writing(png_session *session);
void png_session_close_reading(png_session *session);
void png_session_close_writing(png_session *session);

/* Run `work`; false if libpng jumped out of it. Whatever `work` allocates must be stored where
 * the caller can free it. */
bool png_session_run(png_session *session, void (*work)(png_session *session, void *argument),
                     void *argument);

#endif
