#include "io/tiff_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBTIFF_MEMORY_MAX ((tmsize_t)1 << 31)
#define FIRST_ROOM_BYTES ((size_t)1 << 16)

static tmsize_t read_bytes(thandle_t handle, void *out, tmsize_t wanted) {
    tiff_memory *m = handle;
    const uint8_t *data = m->data ? m->data : m->written;
    if (m->position >= m->size || wanted <= 0)
        return 0;
    const size_t left = m->size - (size_t)m->position;
    const size_t count = (size_t)wanted < left ? (size_t)wanted : left;
    memcpy(out, data + m->position, count);
    m->position += count;
    return (tmsize_t)count;
}

/* Grow to `end`; gaps are zero. */
static bool grow(tiff_memory *m, size_t end) {
    size_t room = m->room ? m->room : FIRST_ROOM_BYTES;
    while (room < end && room <= SIZE_MAX / 2)
        room *= 2;
    uint8_t *larger = room >= end ? realloc(m->written, room) : NULL;
    if (!larger)
        return false;
    memset(larger + m->room, 0, room - m->room);
    m->written = larger;
    m->room = room;
    return true;
}

static tmsize_t write_bytes(thandle_t handle, void *data, tmsize_t bytes) {
    tiff_memory *m = handle;
    if (m->data || bytes <= 0 || m->position > SIZE_MAX - (size_t)bytes)
        return 0;
    const size_t end = (size_t)m->position + (size_t)bytes;
    if (end > m->room && !grow(m, end)) {
        m->out_of_memory = true;
        return 0;
    }
    memcpy(m->written + m->position, data, (size_t)bytes);
    m->position = end;
    m->size = end > m->size ? end : m->size;
    return bytes;
}

static toff_t seek_to(thandle_t handle, toff_t offset, int whence) {
    tiff_memory *m = handle;
    m->position = offset + (whence == SEEK_CUR ? m->position : whence == SEEK_END ? m->size : 0);
    return m->position;
}

static int close_nothing(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle) {
    return ((tiff_memory *)handle)->size;
}

static int keep_message(TIFF *tiff, void *user_data, const char *module, const char *format,
                        va_list arguments) {
    tiff_memory *m = user_data;
    (void)tiff, (void)module;
    if (m->message[0] == '\0')
        vsnprintf(m->message, sizeof m->message, format, arguments);
    return 1; /* handled: nothing is printed */
}

static int ignore_message(TIFF *tiff, void *user_data, const char *module, const char *format,
                          va_list arguments) {
    (void)tiff, (void)user_data, (void)module, (void)format, (void)arguments;
    return 1;
}

const void *tiff_foreign_field(TIFF *tiff, uint16_t number, TIFFDataType type, uint32_t *count) {
    const TIFFField *field = TIFFFindField(tiff, number, TIFF_ANY);
    const void *data = NULL;
    if (!field || TIFFFieldDataType(field) != type || !TIFFFieldPassCount(field) ||
        !TIFFGetField(tiff, number, count, &data))
        return NULL;
    return *count > 0 ? data : NULL;
}

bool tiff_nodata(TIFF *tiff, double *nodata) {
    char text[64], *end;
    uint32_t count = 0;
    const char *data = tiff_foreign_field(tiff, TIFF_TAG_NODATA, TIFF_ASCII, &count);
    if (!data)
        return false;
    snprintf(text, sizeof text, "%.*s", count < sizeof text ? (int)count : (int)sizeof text - 1,
             data);
    *nodata = strtod(text, &end);
    return end != text;
}

TIFF *tiff_memory_open(tiff_memory *memory) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) {
        memory->out_of_memory = true;
        return NULL;
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, LIBTIFF_MEMORY_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, memory);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_message, memory);
    TIFF *tiff = TIFFClientOpenExt("", memory->data ? "rm" : "wm", memory, read_bytes, write_bytes,
                                   seek_to, close_nothing, size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}
