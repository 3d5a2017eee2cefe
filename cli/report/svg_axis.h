/* Plots as SVG: axes with round ticks, and lines and dots at the places of values.
 *
 * A plot stands inside a page or is a file of its own. Colours are those of report/plot.css, for
 * light and dark grounds. */
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

/* The axes of a plot of the usual size, with room for ticks. `to` must be larger than `from` by
 * more than rounding. */
svg_axis svg_axis_across(double from, double to);
svg_axis svg_axis_up(double from, double to);

double svg_place(const svg_axis *axis, double value);

/* The round number (1, 2 or 5 times a power of ten) that divides the axis into a few parts, and
 * the digits after the point that its multiples need. */
double svg_tick_step(const svg_axis *axis);
int svg_tick_decimals(double step);

/* The colours and looks of plots, as CSS. */
void svg_write_style(FILE *stream);

/* Begin a plot. `label` tells readers who do not see it what it shows. A file of its own brings
 * style and ground along. */
void svg_begin(FILE *stream, const char *label, bool own_file);

/* The same in another size. */
typedef struct svg_sheet {
    size_t width_px;
    size_t height_px;
    const char *css_class; /* for rules that are its own; NULL: none */
    const char *label;
    bool own_file;
} svg_sheet;

void svg_begin_sheet(FILE *stream, const svg_sheet *sheet);

void svg_end(FILE *stream);

/* Numbers and lines at round values, and what the numbers across are. */
void svg_write_ticks(FILE *stream, const svg_axis *across, const svg_axis *up, const char *unit);

/* What comes between is cut off where the axes end. */
void svg_begin_inside(FILE *stream, const svg_axis *across, const svg_axis *up);
void svg_end_inside(FILE *stream);

/* A staircase: a value holds until the next one is known. Begin with {0} for the members that
 * change; values that are not finite are passed over. */
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
