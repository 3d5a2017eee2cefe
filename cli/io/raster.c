#include "io/raster.h"

#include "io/file.h"
#include "io/number_bits.h"
#include "io/pnm.h"
#include "io/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_bytes(const raster *from, uint64_t offset, size_t bytes, uint8_t *out,
                       cli_problem *problem) {
    if (from->descriptor < 0) {
        memcpy(out, from->memory + offset, bytes);
        return true;
    }
    while (bytes > 0) {
        const ssize_t got = pread(from->descriptor, out, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bad_input(problem, from->path, "cannot read: %s", strerror(errno));
        if (got == 0)
            return bad_input(problem, from->path, "was cut while it was read");
        out += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

static double number_at(const raster *from, const uint8_t *at) {
    return number_of_kind(at, from->item_bytes, from->big_endian, from->kind);
}

/* Convert `count` consecutive numbers to every `step`-th element of `out`. */
static void convert(const raster *from, const uint8_t *at, size_t count, float *out, size_t step) {
    if (from->item_bytes == 1 && from->kind == 'u') {
        float values[UINT8_MAX + 1];
        for (size_t i = 0; i <= UINT8_MAX; i++)
            values[i] = (float)(((double)i - from->scale.zero) * from->scale.factor);
        for (size_t i = 0; i < count; i++)
            out[i * step] = values[at[i]];
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i * step] = (float)((number_at(from, at + i * from->item_bytes) - from->scale.zero) *
                                from->scale.factor);
}

static bool convert_to_integers(const raster *from, const uint8_t *at, size_t count, int32_t *out,
                                size_t step, cli_problem *problem) {
    for (size_t i = 0; i < count; i++) {
        const double value = number_at(from, at + i * from->item_bytes);
        if (value < INT32_MIN || value > INT32_MAX)
            return bad_input(problem, from->path, "holds %.0f, which 32 bits cannot hold", value);
        out[i * step] = (int32_t)value;
    }
    return true;
}

/* The destination of a window's numbers: one of the two. */
typedef struct destination {
    float *floats;
    int32_t *integers;
} destination;

/* Read a row of the window that begins with number `index` of the file, to index `place`; `room`
 * is a buffer for its bytes. */
static bool read_row(const raster *from, uint64_t index, size_t width, uint8_t *room,
                     const destination *to, size_t place, cli_problem *problem) {
    const bool together = from->channel_stride == 1;
    const size_t planes = together ? 1 : from->channels;
    const size_t count = together ? width * from->channels : width;
    const size_t step = together ? 1 : from->channels;
    bool done = true;
    for (size_t plane = 0; done && plane < planes; plane++) {
        const uint64_t first = index + plane * from->channel_stride;
        done = read_bytes(from, from->offset + first * from->item_bytes, count * from->item_bytes,
                          room, problem);
        if (done && to->floats)
            convert(from, room, count, to->floats + place + plane, step);
        else if (done)
            done =
                convert_to_integers(from, room, count, to->integers + place + plane, step, problem);
    }
    return done;
}

static bool read_window(const raster *from, const raster_window *window, const destination *to,
                        cli_problem *problem) {
    const size_t row = window->size[0] * from->channels;
    uint8_t *room = malloc(row * from->item_bytes);
    bool done = room != NULL || out_of_memory(problem, from->path);
    size_t place = 0;
    for (size_t z = 0; done && z < window->size[2]; z++)
        for (size_t y = 0; done && y < window->size[1]; y++) {
            const uint64_t index = (window->first[2] + z) * from->stride[2] +
                                   (window->first[1] + y) * from->stride[1] +
                                   window->first[0] * from->stride[0];
            done = read_row(from, index, window->size[0], room, to, place, problem);
            place += row;
        }
    free(room);
    return done;
}

bool raster_read(const raster *from, const raster_window *window, float *out,
                 cli_problem *problem) {
    return read_window(from, window, &(destination){.floats = out}, problem);
}

bool raster_read_integers(const raster *from, const raster_window *window, int32_t *out,
                          cli_problem *problem) {
    return read_window(from, window, &(destination){.integers = out}, problem);
}

void raster_close(raster *from) {
    if (from->descriptor >= 0)
        close(from->descriptor);
    *from = (raster){.descriptor = -1};
}

/* ---- sources -------------------------------------------------------------------------------- */

static bool open_file(raster *made, cli_problem *problem) {
    made->descriptor = open(made->path, O_RDONLY | O_CLOEXEC);
    return made->descriptor >= 0 ||
           bad_input(problem, made->path, "cannot open: %s", strerror(errno));
}

static void stride_interleaved(raster *made) {
    made->channel_stride = 1;
    made->stride[0] = made->channels;
    made->stride[1] = made->stride[0] * made->size[0];
    made->stride[2] = made->stride[1] * made->size[1];
}

bool raster_from_npy(const char *path, const npy_array *array, uint64_t offset, size_t axis,
                     size_t axes, raster *made, cli_problem *problem) {
    *made = (raster){.path = path,
                     .descriptor = -1,
                     .size = {1, 1, 1},
                     .channels = 1,
                     .kind = array->kind,
                     .item_bytes = array->item_bytes,
                     .big_endian = array->big_endian,
                     .offset = offset,
                     .scale = {.factor = 1}};
    if (array->fortran_order)
        return bad_input(problem, path,
                         "is in Fortran order, which cannot be read by windows; save it with "
                         "numpy.ascontiguousarray");
    for (size_t k = 0; k < axes; k++)
        made->size[k] = array->shape[axis + axes - 1 - k];
    if (axis + axes < array->axes) { /* channels last */
        made->channels = array->shape[axis + axes];
        stride_interleaved(made);
    } else {
        stride_interleaved(made);
        made->channel_stride = made->size[0] * made->size[1] * made->size[2];
        if (axis > 0)
            made->channels = array->shape[axis - 1];
    }
    return open_file(made, problem);
}

static void raster_from_memory(const void *numbers, char kind, const size_t size[RASTER_AXES],
                               size_t channels, raster *made) {
    const uint16_t one = 1;
    uint8_t first_byte;
    memcpy(&first_byte, &one, 1);
    *made = (raster){.path = "memory",
                     .descriptor = -1,
                     .memory = numbers,
                     .size = {size[0], size[1], size[2]},
                     .channels = channels,
                     .kind = kind,
                     .item_bytes = 4,
                     .big_endian = first_byte == 0,
                     .scale = {.factor = 1}};
    stride_interleaved(made);
}

void raster_from_floats(const float *floats, const size_t size[RASTER_AXES], size_t channels,
                        raster *made) {
    raster_from_memory(floats, 'f', size, channels, made);
}

void raster_from_integers(const int32_t *integers, const size_t size[RASTER_AXES], raster *made) {
    raster_from_memory(integers, 'i', size, 1, made);
}

/* Samples without a sign, channels together. */
static void describe_samples(raster *made, size_t width, size_t height, size_t channels,
                             size_t item_bytes, bool big_endian) {
    made->size[0] = width;
    made->size[1] = height;
    made->channels = channels;
    made->kind = 'u';
    made->item_bytes = item_bytes;
    made->big_endian = big_endian;
    made->scale = (sample_scale){.factor = 1};
    stride_interleaved(made);
}

/* A raw PNM with the requested channels, except for bitmaps, is read in place. */
static bool take_pnm(const file_bytes *bytes, picture_purpose purpose, raster *made) {
    pnm_place place;
    if (!pnm_locate(bytes->data, bytes->size, &place) ||
        place.channels != (purpose == PICTURE_AS_COLOURS ? 3 : 1) ||
        (purpose == PICTURE_AS_COLOURS && place.sample_bytes > 1))
        return false;
    describe_samples(made, place.width, place.height, place.channels, place.sample_bytes, true);
    made->offset = place.offset;
    return true;
}

bool raster_from_picture(const char *path, picture_purpose purpose, const char *folder_of,
                         raster *made, cli_problem *problem) {
    file_bytes bytes;
    spooled stored;
    *made = (raster){.path = path, .descriptor = -1, .size = {1, 1, 1}};
    if (!file_map(path, &bytes, problem))
        return false;
    bool done;
    if (take_pnm(&bytes, purpose, made)) {
        done = open_file(made, problem);
    } else if ((done = spool_picture(bytes.data, bytes.size, purpose, path, folder_of, &stored,
                                     problem))) {
        made->descriptor = stored.descriptor;
        describe_samples(made, stored.width, stored.height, stored.channels, stored.sample_bytes,
                         false);
        if (purpose == PICTURE_AS_COLOURS)
            made->scale = stored.scale;
    }
    file_free(&bytes);
    return done;
}
