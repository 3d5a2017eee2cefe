#include "io/spool.h"

#include "io/output.h"
#include "io/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a decoder may hold of a picture that is not decoded by rows. */
#define BAND_BYTES_MAX ((size_t)256 << 20)

typedef struct spooling {
    const char *file;
    FILE *stream;
    uint8_t *row; /* buffer for one row */
    size_t sample_bytes;
    sample_range *range; /* NULL: not needed */
    bool are_colours;
    cli_problem *problem;
} spooling;

static bool cannot_store(const char *file, cli_problem *problem) {
    return failure(problem, file, "its pixels cannot be stored in a temporary file: %s",
                   strerror(errno));
}

static bool take_row(spooling *s, const uint16_t *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        s->row[s->sample_bytes * i] = (uint8_t)samples[i];
        if (s->sample_bytes == 2)
            s->row[2 * i + 1] = (uint8_t)(samples[i] >> 8);
    }
    return fwrite(s->row, s->sample_bytes, count, s->stream) == count ||
           cannot_store(s->file, s->problem);
}

static bool take_rows(void *user, const picture *described, const uint16_t *samples, size_t rows) {
    spooling *s = user;
    const size_t count = described->width * described->channels;
    if (!s->row) {
        s->sample_bytes = described->largest > UINT8_MAX ? 2 : 1;
        s->row = malloc(count * s->sample_bytes);
        s->range = s->are_colours && sample_range_matters(described) ? sample_range_new() : NULL;
        if (!s->row || (s->are_colours && sample_range_matters(described) && !s->range))
            return out_of_memory(s->problem, s->file);
    }
    if (s->range)
        sample_range_add(s->range, described, samples, described->width * rows);
    bool done = true;
    for (size_t row = 0; done && row < rows; row++)
        done = take_row(s, samples + row * count, count);
    return done;
}

FILE *spool_open(const char *folder_of) {
    char *name;
    const int descriptor = output_create_beside(folder_of, &name);
    if (descriptor < 0)
        return NULL;
    temporary_remove(name);
    free(name);
    FILE *stream = fdopen(descriptor, "w+b");
    if (!stream)
        close(descriptor);
    return stream;
}

bool spool_floats(FILE *stream, const float *floats, size_t count, const char *file,
                  cli_problem *problem) {
    return fwrite(floats, sizeof *floats, count, stream) == count || cannot_store(file, problem);
}

int spool_close(FILE *stream, const char *file, cli_problem *problem) {
    int descriptor = -1;
    if (fflush(stream) != 0)
        cannot_store(file, problem);
    else if ((descriptor = dup(fileno(stream))) < 0)
        failure(problem, file, "cannot be kept open: %s", strerror(errno));
    fclose(stream);
    return descriptor;
}

bool spool_picture(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                   const char *folder_of, spooled *stored, cli_problem *problem) {
    picture described;
    spooling s = {.file = file,
                  .stream = spool_open(folder_of),
                  .are_colours = purpose == PICTURE_AS_COLOURS,
                  .problem = problem};
    const picture_sink sink = {take_rows, &s, BAND_BYTES_MAX};
    *stored = (spooled){.descriptor = -1};
    if (!s.stream)
        return failure(problem, file, "no temporary file can be made for its pixels: %s",
                       strerror(errno));
    bool done = picture_decode_rows(data, size, purpose, file, &sink, &described, problem);
    if (done) {
        stored->descriptor = spool_close(s.stream, file, problem);
        s.stream = NULL;
        stored->width = described.width;
        stored->height = described.height;
        stored->channels = described.channels;
        stored->sample_bytes = s.sample_bytes;
        stored->scale = sample_scale_of(s.range, &described);
        done = stored->descriptor >= 0;
    }
    if (s.stream)
        fclose(s.stream);
    free(s.row);
    free(s.range);
    return done;
}
