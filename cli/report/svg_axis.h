/* Plots as SVG: axes with round ticks, and lines and dots at data values.
 *
 * A plot is part of a page or a file of its own. Its colours are those of report/plot.css, for
 * light and dark backgrounds. */
#ifndef DCRF_CLI_REPORT_SVG_AXIS_H
#define DCRF_CLI_REPORT_SVG_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SVG_WIDTH_PX 720
#define SVG_HEIGHT_PX 320

typedef struct svg_axis {
    double from;
    double to;
    double from_px;
    double to_px;
    bool logarithmic; /* `from` is larger than zero */
} svg_axis;

/* The axes of a plot of the default size, with room for ticks. `to` must exceed `from` by more
 * than the rounding error. */
svg_axis svg_axis_across(double from, double to);
svg_axis svg_axis_up(double from, double to);

double svg_place(const svg_axis *axis, double value);

/* The colours and styles of plots, as CSS. */
void svg_write_style(FILE *stream);

/* Begin a plot. `label` describes it for screen readers. A file of its own includes style and
 * background. */
void svg_begin(FILE *stream, const char *label, bool own_file);

/* The same in another size. */
typedef struct svg_sheet {
    size_t width_px;
    size_t height_px;
    const char *css_class; /* for its own CSS rules; NULL: none */
    const char *label;
    bool own_file;
} svg_sheet;

void svg_begin_sheet(FILE *stream, const svg_sheet *sheet);

void svg_end(FILE *stream);

/* Ticks and grid lines at round values, and the label of the horizontal axis. */
void svg_write_ticks(FILE *stream, const svg_axis *across, const svg_axis *up, const char *unit);

/* What is drawn in between is clipped at the ends of the axes. */
void svg_begin_inside(FILE *stream, const svg_axis *across, const svg_axis *up);
void svg_end_inside(FILE *stream);

/* A step plot: a value holds until the next one is known. Initialize the members that change
 * with {0}; values that are not finite are skipped. */
typedef struct svg_stairs {
    FILE *stream;
    const svg_axis *across;
    const svg_axis *up;
    const char *css_class;
    bool begun;
    double y_px;
} svg_stairs;

void svg_stairs_add(svg_stairs *stairs, double x, double y);
void svg_stairs_end(svg_stairs *stairs); /* the last value holds to the end of the axis */
void svg_stairs_stop(svg_stairs *stairs);

#endif
