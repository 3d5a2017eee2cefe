/* Parts of pages that need no network and no other file: text, pictures, looks and script all lie
 * inside them. What is written as text or picture is right in SVG as well. */
#ifndef DCRF_CLI_REPORT_HTML_H
#define DCRF_CLI_REPORT_HTML_H

#include "model/palette.h"

#include <jansson.h>
#include <stdio.h>

/* Text as text, whatever it says. What is not UTF-8, or cannot stand in XML, becomes a question
 * mark. */
void html_write_escaped(FILE *stream, const char *text);

/* From the doctype on into <style>, where rules of the page's own may follow; then on into <main>,
 * with a heading. */
void html_begin_style(FILE *stream, const char *title);
void html_begin_body(FILE *stream, const char *title);

/* What pictures of a page can do, as a set: move the cut between two of them, become large. */
enum { HTML_COMPARES = 1, HTML_ZOOMS = 2 };

/* The foot, with the scripts of the set. */
void html_end_page(FILE *stream, int abilities);

/* A section with one row a setting. */
void html_write_settings(FILE *stream, const char *title, json_t *settings);

/* A picture as an address, "data:image/png;base64,...", to stand between quotes. */
typedef struct html_picture {
    size_t width;
    size_t height;
    size_t channels;         /* 0: labels; 1: grey; 3: RGB */
    const uint16_t *samples; /* NULL: memory was out when it was made */
    const palette *colours;  /* of labels */
    bool is_fast;            /* compressed little, as there is no time */
} html_picture;

/* Pictures on pages have no more pixels, small ones no more than the second: of larger ones every
 * second row and column is there, every third, ... This is the step. */
#define HTML_PICTURE_PIXELS 4000000
#define HTML_SMALL_PICTURE_PIXELS 300000
size_t html_picture_step(size_t width, size_t height, bool is_small);

/* `file` is the page, for messages. */
bool html_write_picture(FILE *stream, const char *file, const html_picture *shown,
                        cli_problem *problem);

/* A photograph: a PNG or JPEG as it is, other files as a PNG. */
bool html_write_photograph(FILE *stream, const char *file, const char *photograph,
                           cli_problem *problem);

#endif
