/* GeoTIFF (OGC 19-008): positions are given by a scale with a tie point or by a 4 x 4 matrix,
 * and the meaning of the coordinates by a directory of keys. A world file has six lines: the
 * steps of x along columns, of y along columns, of x along rows, of y along rows, and the centre
 * of the first pixel. */
#include "io/geo.h"

#include "io/file.h"
#include "io/tiff_memory.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY_RASTER_TYPE 1025
#define RASTER_PIXEL_IS_POINT 2
#define KEY_NUMBERS 4 /* per directory entry */

static const struct {
    uint16_t number;
    geo_type type;
} tags[GEO_TAGS] = {
    {33550, GEO_OF_DOUBLES}, {33922, GEO_OF_DOUBLES}, {34264, GEO_OF_DOUBLES},
    {34735, GEO_OF_SHORTS},  {34736, GEO_OF_DOUBLES}, {34737, GEO_OF_CHARACTERS},
};

uint16_t geo_tag_number(geo_tag tag) {
    return tags[tag].number;
}

geo_type geo_tag_type(geo_tag tag) {
    return tags[tag].type;
}

void geo_free(geo_reference **geo) {
    for (int tag = 0; *geo && tag < GEO_TAGS; tag++)
        free((*geo)->data[tag]);
    free(*geo);
    *geo = NULL;
}

double geo_label_nodata(const geo_reference *geo, size_t labels) {
    const double largest = labels > UINT8_MAX ? UINT16_MAX : UINT8_MAX;
    const bool is_free = geo && geo->has_nodata && geo->nodata >= (double)labels &&
                         geo->nodata <= largest && geo->nodata == floor(geo->nodata);
    return is_free ? geo->nodata : largest;
}

/* ---- GeoTIFF -------------------------------------------------------------------------------- */

static TIFFDataType type_of(geo_type type) {
    return type == GEO_OF_DOUBLES ? TIFF_DOUBLE : type == GEO_OF_SHORTS ? TIFF_SHORT : TIFF_ASCII;
}

static size_t item_bytes(geo_type type) {
    return type == GEO_OF_DOUBLES ? sizeof(double) : type == GEO_OF_SHORTS ? sizeof(uint16_t) : 1;
}

static bool take_tags(TIFF *tiff, geo_reference *geo) {
    for (int tag = 0; tag < GEO_TAGS; tag++) {
        const geo_type type = tags[tag].type;
        uint32_t count = 0;
        const void *data = tiff_foreign_field(tiff, tags[tag].number, type_of(type), &count);
        if (!data)
            continue;
        geo->data[tag] = malloc(count * item_bytes(type));
        if (!geo->data[tag])
            return false;
        memcpy(geo->data[tag], data, count * item_bytes(type));
        geo->count[tag] = count;
    }
    return true;
}

static bool is_pixel_a_point(const geo_reference *geo) {
    const uint16_t *keys = geo->data[GEO_KEYS];
    for (size_t i = KEY_NUMBERS; i + KEY_NUMBERS <= geo->count[GEO_KEYS]; i += KEY_NUMBERS)
        if (keys[i] == KEY_RASTER_TYPE && keys[i + 1] == 0)
            return keys[i + 3] == RASTER_PIXEL_IS_POINT;
    return false;
}

/* Shift the matrix so that column and row 0 are the corner of the first pixel. */
static void start_at_corner(double m[GEO_MATRIX]) {
    m[0] -= (m[1] + m[2]) / 2;
    m[3] -= (m[4] + m[5]) / 2;
}

static void find_matrix(geo_reference *geo) {
    const double *scale = geo->data[GEO_PIXEL_SCALE], *tie = geo->data[GEO_TIEPOINTS];
    const double *four = geo->data[GEO_TRANSFORMATION];
    double *m = geo->matrix;
    if (geo->count[GEO_TRANSFORMATION] == 16) {
        const double found[GEO_MATRIX] = {four[3], four[0], four[1], four[7], four[4], four[5]};
        memcpy(m, found, sizeof found);
    } else if (geo->count[GEO_PIXEL_SCALE] >= 2 && geo->count[GEO_TIEPOINTS] == 6) {
        const double found[GEO_MATRIX] = {tie[3] - tie[0] * scale[0], scale[0], 0,
                                          tie[4] + tie[1] * scale[1], 0,        -scale[1]};
        memcpy(m, found, sizeof found);
    } else {
        return;
    }
    geo->has_matrix = true;
    if (is_pixel_a_point(geo))
        start_at_corner(m);
}

bool geo_from_tiff(const uint8_t *data, size_t size, const char *file, geo_reference **made,
                   cli_problem *problem) {
    tiff_memory memory = {.data = data, .size = size};
    geo_reference *geo = *made = calloc(1, sizeof *geo);
    TIFF *tiff = geo ? tiff_memory_open(&memory) : NULL;
    const bool done = geo && (!tiff || take_tags(tiff, geo));
    bool has_any = false;
    if (done && tiff) {
        find_matrix(geo);
        geo->has_nodata = tiff_nodata(tiff, &geo->nodata);
        has_any = geo->has_nodata;
        for (int tag = 0; tag < GEO_TAGS; tag++)
            has_any = has_any || geo->data[tag];
    }
    if (tiff)
        TIFFClose(tiff);
    if (!has_any)
        geo_free(made);
    return done || out_of_memory(problem, file);
}

/* ---- world files ---------------------------------------------------------------------------- */

/* The ending of a name, from its last dot on; NULL: none. */
static const char *ending_of(const char *path) {
    const char *point = strrchr(path, '.'), *slash = strrchr(path, '/');
    return point && (!slash || point > slash + 1) && point[1] ? point : NULL;
}

/* The name with another ending; the caller frees it. */
static char *renamed(const char *path, const char *ending) {
    const char *own = ending_of(path);
    const size_t stem = own ? (size_t)(own - path) : strlen(path);
    char *name = malloc(stem + strlen(ending) + 1);
    if (name) {
        memcpy(name, path, stem);
        strcpy(name + stem, ending);
    }
    return name;
}

static void world_endings(const char *path, char endings[3][16]) {
    const char *own = ending_of(path);
    const size_t length = own ? strlen(own + 1) : 0;
    const bool usual = length >= 2 && length <= 8;
    snprintf(endings[0], sizeof endings[0], ".%c%cw", usual ? own[1] : 'w',
             usual ? own[length] : 'l');
    snprintf(endings[1], sizeof endings[1], "%sw", usual ? own : ".wld");
    strcpy(endings[2], ".wld");
}

char *geo_world_name(const char *picture) {
    char endings[3][16];
    world_endings(picture, endings);
    return renamed(picture, endings[0]);
}

bool geo_parse_world(const uint8_t *data, size_t size, double matrix[GEO_MATRIX]) {
    char text[1024];
    double line[6];
    const char *at = text;
    if (size >= sizeof text)
        return false;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < 6; i++) {
        char *end;
        line[i] = strtod(at, &end);
        if (end == at || !isfinite(line[i]) || (*end && !isspace((unsigned char)*end)))
            return false;
        at = end;
    }
    while (isspace((unsigned char)*at))
        at++;
    const double found[GEO_MATRIX] = {line[4], line[0], line[2], line[5], line[1], line[3]};
    memcpy(matrix, found, sizeof found);
    start_at_corner(matrix);
    return *at == '\0' && (size_t)(at - text) == size && (line[0] != 0 || line[1] != 0);
}

bool geo_from_world_file(const char *picture, geo_reference **made, cli_problem *problem) {
    char endings[3][16];
    file_bytes bytes;
    cli_problem ignored;
    double matrix[GEO_MATRIX];
    bool found = *made && (*made)->has_matrix;
    world_endings(picture, endings);
    for (size_t i = 0; !found && i < 3; i++) {
        char *name = renamed(picture, endings[i]);
        if (!name)
            return out_of_memory(problem, picture);
        if (file_is_plain(name) && file_read(name, &bytes, &ignored)) {
            found = geo_parse_world(bytes.data, bytes.size, matrix);
            file_free(&bytes);
        }
        free(name);
        if (!found)
            continue;
        if (!*made && !(*made = calloc(1, sizeof **made)))
            return out_of_memory(problem, picture);
        (*made)->has_matrix = true;
        memcpy((*made)->matrix, matrix, sizeof matrix);
    }
    return true;
}

void geo_write_world(FILE *stream, const geo_reference *geo) {
    const double *m = geo->matrix;
    const double lines[6] = {
        m[1], m[4], m[2], m[5], m[0] + (m[1] + m[2]) / 2, m[3] + (m[4] + m[5]) / 2};
    for (size_t i = 0; i < 6; i++)
        fprintf(stream, "%.17g\n", lines[i]);
}
