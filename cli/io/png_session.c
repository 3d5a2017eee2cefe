#include "io/png_session.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static void on_error(png_structp png, png_const_charp message) {
    png_session *session = png_get_error_ptr(png);
    snprintf(session->message, sizeof session->message, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    /* Warnings of libpng (odd ancillary chunks) do not affect the pixels. */
    (void)png, (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
    png_session *session = png_get_mem_ptr(png);
    void *memory = malloc(bytes);
    if (!memory && session)
        session->out_of_memory = true;
    return memory;
}

static void release(png_structp png, png_voidp memory) {
    (void)png;
    free(memory);
}

bool png_session_open_reading(png_session *session) {
    *session = (png_session){0};
    session->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, session, on_error, on_warning,
                                            session, allocate, release);
    session->info = session->png ? png_create_info_struct(session->png) : NULL;
    if (session->info)
        return true;
    png_session_close_reading(session);
    return false;
}

bool png_session_open_writing(png_session *session) {
    *session = (png_session){0};
    session->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, session, on_error, on_warning,
                                             session, allocate, release);
    session->info = session->png ? png_create_info_struct(session->png) : NULL;
    if (session->info)
        return true;
    png_session_close_writing(session);
    return false;
}

void png_session_close_reading(png_session *session) {
    png_destroy_read_struct(&session->png, &session->info, NULL);
}

void png_session_close_writing(png_session *session) {
    png_destroy_write_struct(&session->png, &session->info);
}

bool png_session_run(png_session *session, void (*work)(png_session *session, void *argument),
                     void *argument) {
    if (setjmp(png_jmpbuf(session->png)))
        return false;
    work(session, argument);
    return true;
}
