/* libpng reports errors by longjmp. A session keeps that inside one function: everything that has
 * to survive the jump (libpng's structures, the buffers, the message) lives in a struct outside the
 * function that calls setjmp, so no local variable is ever read after a jump. */
#ifndef DCRF_CLI_IO_PNG_SESSION_H
#define DCRF_CLI_IO_PNG_SESSION_H

#include <png.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct png_session {
    png_structp png;
    png_infop info;
    bool out_of_memory;
    char message[96]; /* of libpng, without its full stop */
} png_session;

/* Structures for reading or writing; false when memory is out. */
bool png_session_open_reading(png_session *session);
bool png_session_open_writing(png_session *session);
void png_session_close_reading(png_session *session);
void png_session_close_writing(png_session *session);

/* Run `work`; false when libpng jumped out of it. What `work` allocates it must store where the
 * caller finds it. */
bool png_session_run(png_session *session, void (*work)(png_session *session, void *argument),
                     void *argument);

#endif
