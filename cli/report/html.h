/* Parts of self-contained pages: text, pictures, style and script are all embedded. Text and
 * pictures are written so that they are valid in SVG too. */
#ifndef DCRF_CLI_REPORT_HTML_H
#define DCRF_CLI_REPORT_HTML_H

#include "model/palette.h"

#include <jansson.h>
#include <stdio.h>

/* Escaped text. Bytes that are not UTF-8, or not allowed in XML, become question marks. */
void html_write_escaped(FILE *stream, const char *text);

/* From the doctype into <style>, where the page's own rules may follow; then into <main>, with a
 * heading. */
void html_begin_style(FILE *stream, const char *title);
void html_begin_body(FILE *stream, const char *title);

/* Features of the pictures on a page, as flags: a slider between two of them, and enlarging. */
enum { HTML_COMPARES = 1, HTML_ZOOMS = 2 };

/* The end of the page, with the scripts for these features. */
void html_end_page(FILE *stream, int abilities);

/* A section with one row per setting. */
void html_write_settings(FILE *stream, const char *title, json_t *settings);

/* A picture as a URL, "data:image/png;base64,...", to be written between quotes. */
typedef struct html_picture {
    size_t width;
    size_t height;
    size_t channels;         /* 0: labels; 1: grey; 3: RGB */
    const uint16_t *samples; /* NULL: out of memory when it was made */
    const palette *colours;  /* of labels */
    bool is_fast;            /* compress fast rather than well, because there is no time */
} html_picture;

/* The most pixels of a picture, and of a small one. Of larger pictures only every second, third,
 * ... row and column is shown; this is that step. */
#define HTML_PICTURE_PIXELS 4000000
#define HTML_SMALL_PICTURE_PIXELS 300000
size_t html_picture_step(size_t width, size_t height, bool is_small);

/* `file` is the page, for messages. */
bool html_write_picture(FILE *stream, const char *file, const html_picture *shown,
                        cli_problem *problem);

/* A photograph: a PNG or JPEG unchanged, other formats as a PNG. */
bool html_write_photograph(FILE *stream, const char *file, const char *photograph,
                           cli_problem *problem);

#endif
