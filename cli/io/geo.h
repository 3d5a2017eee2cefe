/* Where on the Earth a picture lies: the georeference of a GeoTIFF or of a world file, to be
 * written again with what was made of the picture. */
#ifndef DCRF_CLI_IO_GEO_H
#define DCRF_CLI_IO_GEO_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The tags of a GeoTIFF that are handed on as they are. */
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
    void *data[GEO_TAGS]; /* NULL: the file has not got it */
    uint32_t count[GEO_TAGS];
    bool has_matrix;
    /* From columns and rows to coordinates, x = m[0] + m[1] column + m[2] row and y likewise from
     * m[3], m[4], m[5]; the first pixel reaches from 0 to 1. */
    double matrix[GEO_MATRIX];
    bool has_nodata;
    double nodata; /* the number of pixels that have none */
} geo_reference;

/* The number and the type of a tag, as TIFF has them. */
uint16_t geo_tag_number(geo_tag tag);
typedef enum geo_type { GEO_OF_DOUBLES, GEO_OF_SHORTS, GEO_OF_CHARACTERS } geo_type;
geo_type geo_tag_type(geo_tag tag);

/* The tags of a TIFF file in memory. NULL and true: it has none. */
bool geo_from_tiff(const uint8_t *data, size_t size, const char *file, geo_reference **made,
                   cli_problem *problem);

/* The world file beside a picture, where there is one and `*made` has no place yet. */
bool geo_from_world_file(const char *picture, geo_reference **made, cli_problem *problem);

/* Numbers of a text; false: it is no world file. */
bool geo_parse_world(const uint8_t *data, size_t size, double matrix[GEO_MATRIX]);

/* The number that a map of labels has where its image has no data: the image's own where that is no
 * label, else the largest. */
double geo_label_nodata(const geo_reference *geo, size_t labels);

void geo_free(geo_reference **geo);

/* The name of the world file of a picture: its first letter, its last one and a w, such as .pgw;
 * to be freed, NULL when memory is out. */
char *geo_world_name(const char *picture);
void geo_write_world(FILE *stream, const geo_reference *geo);

#endif
