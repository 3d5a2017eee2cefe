#include "report/svg_axis.h"

#include "plot_style.h"

#include <math.h>
#include <stddef.h>

#define LEFT_PX 84
#define RIGHT_PX 16
#define TOP_PX 14
#define BOTTOM_PX 44
#define TICKS_WANTED 5
#define FEW_POWERS_OF_TEN 3.2

/* ---- axes ----------------------------------------------------------------------------------- */

svg_axis svg_axis_across(double from, double to) {
    return (svg_axis){from, to, LEFT_PX, SVG_WIDTH_PX - RIGHT_PX, false};
}

svg_axis svg_axis_up(double from, double to) {
    return (svg_axis){from, to, SVG_HEIGHT_PX - BOTTOM_PX, TOP_PX, false};
}

double svg_place(const svg_axis *axis, double value) {
    const double part = axis->logarithmic
                            ? log(fmax(value / axis->from, 1e-300)) / log(axis->to / axis->from)
                            : (value - axis->from) / (axis->to - axis->from);
    /* A bound can start at -1e300: clamp it well outside the plot. */
    return axis->from_px + fmin(fmax(part, -9), 9) * (axis->to_px - axis->from_px);
}

/* The round number (1, 2 or 5 times a power of ten) that divides the axis into a few parts, and the
 * number of decimals that its multiples need. */
static double tick_step(const svg_axis *axis) {
    const double rough = (axis->to - axis->from) / TICKS_WANTED;
    const double power = pow(10, floor(log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

static int tick_decimals(double step) {
    const double digits = ceil(-log10(step) - 1e-9);
    return digits > 0 ? (int)digits : 0;
}

static void write_tick_up(FILE *stream, const svg_axis *across, double y_px, int decimals,
                          double value) {
    fprintf(stream,
            "<line class='grid' x1='%.0f' x2='%.0f' y1='%.1f' y2='%.1f'/>"
            "<text x='%.0f' y='%.1f' text-anchor='end'>%.*f</text>\n",
            across->from_px, across->to_px, y_px, y_px, across->from_px - 8, y_px + 4, decimals,
            value);
}

static void write_tick_across(FILE *stream, const svg_axis *across, const svg_axis *up,
                              int decimals, double value) {
    fprintf(stream, "<text x='%.1f' y='%.0f' text-anchor='middle'>%.*f</text>\n",
            svg_place(across, value), up->from_px + 18, decimals, value);
}

/* At powers of ten, and, if there are few of them, also at twice and five times these. */
static void write_logarithmic_ticks(FILE *stream, const svg_axis *across, const svg_axis *up) {
    const bool few = log10(across->to / across->from) < FEW_POWERS_OF_TEN;
    const double leads[] = {1, 2, 5};
    for (double power = floor(log10(across->from)); power <= log10(across->to); power++)
        for (size_t i = 0; i < (few ? 3 : 1); i++) {
            const double value = leads[i] * pow(10, power);
            if (value >= across->from && value <= across->to)
                write_tick_across(stream, across, up, power < 0 ? (int)-power : 0, value);
        }
}

void svg_write_ticks(FILE *stream, const svg_axis *across, const svg_axis *up, const char *unit) {
    const double up_step = tick_step(up), across_step = tick_step(across);
    for (double k = ceil(up->from / up_step); k * up_step <= up->to; k++)
        write_tick_up(stream, across, svg_place(up, k * up_step), tick_decimals(up_step),
                      k * up_step);
    if (across->logarithmic)
        write_logarithmic_ticks(stream, across, up);
    else
        for (double k = ceil(across->from / across_step); k * across_step <= across->to; k++)
            write_tick_across(stream, across, up, tick_decimals(across_step), k * across_step);
    fprintf(stream, "<text x='%.0f' y='%.0f' text-anchor='middle'>%s</text>\n",
            (across->from_px + across->to_px) / 2, up->from_px + 38, unit);
}

/* ---- the plot ------------------------------------------------------------------------------- */

void svg_write_style(FILE *stream) {
    for (size_t i = 0; i < sizeof plot_style_lines / sizeof plot_style_lines[0]; i++)
        fputs(plot_style_lines[i], stream);
}

void svg_begin_sheet(FILE *stream, const svg_sheet *sheet) {
    fputs("<svg", stream);
    if (sheet->css_class)
        fprintf(stream, " class='%s'", sheet->css_class);
    if (sheet->own_file)
        fprintf(stream, " xmlns='http://www.w3.org/2000/svg' width='%zu' height='%zu'",
                sheet->width_px, sheet->height_px);
    fprintf(stream, " viewBox='0 0 %zu %zu' role='img' aria-label='%s'>\n", sheet->width_px,
            sheet->height_px, sheet->label);
    if (sheet->own_file) {
        fputs("<style>\n", stream);
        svg_write_style(stream);
        fputs("</style>\n<rect class='ground' width='100%' height='100%'/>\n", stream);
    }
}

void svg_begin(FILE *stream, const char *label, bool own_file) {
    const svg_sheet usual = {SVG_WIDTH_PX, SVG_HEIGHT_PX, NULL, label, own_file};
    svg_begin_sheet(stream, &usual);
}

void svg_end(FILE *stream) {
    fputs("</svg>\n", stream);
}

void svg_begin_inside(FILE *stream, const svg_axis *across, const svg_axis *up) {
    const double width_px = across->to_px - across->from_px, height_px = up->from_px - up->to_px;
    /* The id must be unique on the page unless the clip rectangle is the same. */
    char name[64];
    snprintf(name, sizeof name, "inside-%.0f-%.0f-%.0f-%.0f", across->from_px, up->to_px, width_px,
             height_px);
    fprintf(stream,
            "<clipPath id='%s'><rect x='%.0f' y='%.0f' width='%.0f' height='%.0f'/></clipPath>"
            "<g clip-path='url(#%s)'>\n",
            name, across->from_px, up->to_px, width_px, height_px, name);
}

void svg_end_inside(FILE *stream) {
    fputs("</g>\n", stream);
}

/* ---- step plots ----------------------------------------------------------------------------- */

void svg_stairs_add(svg_stairs *stairs, double x, double y) {
    if (!isfinite(y))
        return;
    const double x_px = svg_place(stairs->across, x);
    if (!stairs->begun)
        fprintf(stairs->stream, "<path class='%s' d='M", stairs->css_class);
    else
        fprintf(stairs->stream, " L%.1f %.1f L", x_px, stairs->y_px);
    stairs->begun = true;
    stairs->y_px = svg_place(stairs->up, y);
    fprintf(stairs->stream, "%.1f %.1f", x_px, stairs->y_px);
}

void svg_stairs_stop(svg_stairs *stairs) {
    if (stairs->begun)
        fputs("'/>\n", stairs->stream);
    stairs->begun = false;
}

void svg_stairs_end(svg_stairs *stairs) {
    if (stairs->begun)
        fprintf(stairs->stream, " L%.1f %.1f", stairs->across->to_px, stairs->y_px);
    svg_stairs_stop(stairs);
}
