/* The georeference of a GeoTIFF or of a world file, which is written to the outputs made from
 * the picture. */
#ifndef DCRF_CLI_IO_GEO_H
#define DCRF_CLI_IO_GEO_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The tags of a GeoTIFF that are copied unchanged. */
typedef enum geo_tag {
    GEO_PIXEL_SCALE,
    GEO_TIEPOINTS,
    GEO_TRANSFORMATION,
    GEO_KEYS,
    GEO_DOUBLES,
    GEO_TEXTS,
    GEO_TAGS
} geo_tag;

#define GEO_MATRIX 6

typedef struct geo_reference {
    void *data[GEO_TAGS]; /* NULL: not in the file */
    uint32_t count[GEO_TAGS];
    bool has_matrix;
    /* From columns and rows to coordinates: x = m[0] + m[1] column + m[2] row, and y in the same
     * way from m[3], m[4], m[5]; the first pixel extends from 0 to 1. */
    double matrix[GEO_MATRIX];
    bool has_nodata;
    double nodata; /* the value of pixels without data */
} geo_reference;

/* The number and the type of a tag in TIFF. */
uint16_t geo_tag_number(geo_tag tag);
typedef enum geo_type { GEO_OF_DOUBLES, GEO_OF_SHORTS, GEO_OF_CHARACTERS } geo_type;
geo_type geo_tag_type(geo_tag tag);

/* The tags of a TIFF file in memory. NULL and true: it has none. */
bool geo_from_tiff(const uint8_t *data, size_t size, const char *file, geo_reference **made,
                   cli_problem *problem);

/* The world file beside a picture, if there is one and `*made` has no position yet. */
bool geo_from_world_file(const char *picture, geo_reference **made, cli_problem *problem);

/* Parse the numbers of a text; false: it is not a world file. */
bool geo_parse_world(const uint8_t *data, size_t size, double matrix[GEO_MATRIX]);

/* The number for no data in a label map: the image's own if that is not a label, otherwise the
 * largest. */
double geo_label_nodata(const geo_reference *geo, size_t labels);

void geo_free(geo_reference **geo);

/* The name of a picture's world file: its ending is the first and last letter of the picture's
 * and a w, such as .pgw. The caller frees it; NULL if out of memory. */
char *geo_world_name(const char *picture);
void geo_write_world(FILE *stream, const geo_reference *geo);

#endif
