#include "dataset/curves.h"

#include "dataset/method_style.h"
#include "report/html.h"
#include "report/svg_axis.h"

#include <math.h>
#include <stdlib.h>

#define PANEL_WIDTH_PX 520
#define PANEL_HEIGHT_PX 270
#define PANEL_LEFT_PX 92
#define PANEL_RIGHT_PX 16
#define PANEL_TOP_PX 30 /* its title */
#define PANEL_BOTTOM_PX 54
#define HEAD_PX 28
#define EMPTY_HEIGHT_PX 60
#define LEGEND_LINE_PX 22
#define LETTER_PX 7.5 /* average width of a letter */
#define KEY_PX 28     /* the line sample before a name in the legend */

/* Share of the range between the best energy and the edge of a plot. */
#define MARGIN 0.06

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_row(curve_row *row, const store *results, const method_list *methods,
                     const char *image) {
    bool any = false;
    *row = (curve_row){.image = image};
    for (size_t m = 0; m < methods->count; m++) {
        cli_problem none;
        if (store_get_curve(results, methods->of[m].name, image, &row->of[m], &none))
            any = any || row->of[m].count > 0;
        else
            row->of[m] = (curve){0};
    }
    return any;
}

static void free_row(curve_row *row) {
    for (size_t m = 0; m < METHODS_MAX; m++)
        curve_free(&row->of[m]);
}

bool curves_read(curve_sheet *sheet, const summary *found, const store *results,
                 const method_list *methods, size_t images) {
    const size_t most = images < found->data->count ? images : found->data->count;
    *sheet = (curve_sheet){methods, calloc(most + 1, sizeof *sheet->rows), 0};
    if (!sheet->rows)
        return false;
    for (size_t i = 0; i < most; i++) {
        const char *image = found->data->items[i].name;
        if (summary_has_failed(found, image))
            continue;
        if (read_row(&sheet->rows[sheet->count], results, methods, image))
            sheet->count++;
        else
            free_row(&sheet->rows[sheet->count]);
    }
    return true;
}

void curves_free(curve_sheet *sheet) {
    for (size_t i = 0; i < sheet->count; i++)
        free_row(&sheet->rows[i]);
    free(sheet->rows);
    *sheet = (curve_sheet){0};
}

/* ---- columns -------------------------------------------------------------------------------- */

/* The methods with cliques, or those without. */
typedef struct column {
    const curve_sheet *sheet;
    bool cliques;
    double left_px;
} column;

static bool belongs(const column *c, size_t method) {
    return c->sheet->methods->of[method].cliques == c->cliques;
}

static bool has_curve(const column *c, size_t method) {
    for (size_t i = 0; i < c->sheet->count; i++)
        if (c->sheet->rows[i].of[method].count > 0)
            return true;
    return false;
}

static bool is_empty(const column *c) {
    for (size_t m = 0; m < c->sheet->methods->count; m++)
        if (belongs(c, m) && has_curve(c, m))
            return false;
    return true;
}

static bool has_bound(const column *c, size_t method) {
    for (size_t i = 0; i < c->sheet->count; i++) {
        const curve *drawn = &c->sheet->rows[i].of[method];
        for (size_t k = 0; k < drawn->count; k++)
            if (isfinite(drawn->points[k].lower_bound))
                return true;
    }
    return false;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* From the first moment after the start to the last, over all methods, so that a row is
 * comparable. */
static svg_axis time_axis(const curve_row *row, double left_px) {
    double first_s = INFINITY, last_s = 0;
    for (size_t m = 0; m < METHODS_MAX; m++)
        for (size_t k = 0; k < row->of[m].count; k++) {
            const double time_s = row->of[m].points[k].time_s;
            if (isfinite(time_s) && time_s > 0) {
                first_s = fmin(first_s, time_s);
                last_s = fmax(last_s, time_s);
            }
        }
    if (!(last_s > 0))
        first_s = last_s = 0.1;
    first_s = fmax(first_s, 1e-6 * last_s);
    return (svg_axis){first_s / 1.25, last_s * 1.25, left_px + PANEL_LEFT_PX,
                      left_px + PANEL_WIDTH_PX - PANEL_RIGHT_PX, true};
}

typedef struct energy_range {
    double first_high; /* the largest energy of any method */
    double last_high;  /* the largest final energy of any method */
    double low;
    double first_bound;
    double last_bound;
} energy_range;

static void extend_range(energy_range *range, const curve *drawn) {
    double last = NAN, first_bound = NAN, last_bound = NAN;
    for (size_t k = 0; k < drawn->count; k++) {
        const curve_point *point = &drawn->points[k];
        if (isfinite(point->energy)) {
            range->first_high = fmax(range->first_high, point->energy);
            range->low = fmin(range->low, point->energy);
            last = point->energy;
        }
        if (isfinite(point->lower_bound)) {
            first_bound = fmin(first_bound, point->lower_bound); /* fmin skips NaN */
            last_bound = point->lower_bound;
        }
    }
    range->last_high = fmax(range->last_high, last);
    range->first_bound = fmin(range->first_bound, first_bound);
    range->last_bound = fmin(range->last_bound, last_bound);
}

/* From a little below the last bound to a little above the first energies. Extreme starting
 * values are clipped: bounds further below the last one than half of the range above it, and
 * energies further above it than both ten times the final ones and three times their magnitude. */
static svg_axis energy_axis(const column *c, const curve_row *row, double top_px) {
    energy_range range = {NAN, NAN, NAN, NAN, NAN};
    for (size_t m = 0; m < c->sheet->methods->count; m++)
        if (belongs(c, m))
            extend_range(&range, &row->of[m]);
    if (isnan(range.low))
        range.low = range.first_high = range.last_high = 0;
    const double bound = fmin(range.low, range.last_bound);
    const double size = fmax(fabs(range.last_high), fabs(bound));
    const double high =
        fmin(range.first_high, bound + fmax(10 * (range.last_high - bound), 3 * size));
    const double above = fmax(high - bound, 1e-6 * size + 1e-9);
    const double low = fmax(fmin(bound, range.first_bound), bound - above / 2);
    const double margin = MARGIN * (high - low) + 1e-6 * size + 1e-9;
    return (svg_axis){low - margin, high + margin, top_px + PANEL_HEIGHT_PX - PANEL_BOTTOM_PX,
                      top_px + PANEL_TOP_PX, false};
}

/* ---- drawing -------------------------------------------------------------------------------- */

static void draw_bound(FILE *stream, const curve *drawn, size_t method, const svg_axis *time,
                       const svg_axis *energy) {
    char css_class[32];
    snprintf(css_class, sizeof css_class, "m%zu lower", method);
    svg_stairs stairs = {stream, time, energy, css_class, false, 0};
    for (size_t k = 0; k < drawn->count; k++)
        svg_stairs_add(&stairs, fmax(drawn->points[k].time_s, time->from),
                       drawn->points[k].lower_bound);
    svg_stairs_end(&stairs);
}

/* A dot marks the end of the method; from there its energy continues faintly, for comparison. */
static void draw_energy(FILE *stream, const curve *drawn, size_t method, const char *name,
                        const svg_axis *time, const svg_axis *energy) {
    char css_class[32];
    snprintf(css_class, sizeof css_class, "m%zu", method);
    svg_stairs stairs = {stream, time, energy, css_class, false, 0};
    const curve_point *last = NULL;
    for (size_t k = 0; k < drawn->count; k++) {
        const curve_point *point = &drawn->points[k];
        svg_stairs_add(&stairs, fmax(point->time_s, time->from), point->energy);
        if (isfinite(point->energy))
            last = point;
    }
    svg_stairs_stop(&stairs);
    if (!last)
        return;
    const double x_px = svg_place(time, fmax(last->time_s, time->from));
    const double y_px = svg_place(energy, last->energy);
    fprintf(stream,
            "<path class='m%zu after' d='M%.1f %.1f L%.1f %.1f'/>"
            "<circle class='end m%zu' r='4' cx='%.1f' cy='%.1f'><title>",
            method, x_px, y_px, time->to_px, y_px, method, x_px, y_px);
    html_write_escaped(stream, name);
    fprintf(stream, ": %.6g after %.3g s</title></circle>\n", last->energy, last->time_s);
}

static void draw_panel(FILE *stream, const column *c, const curve_row *row, double top_px) {
    const svg_axis time = time_axis(row, c->left_px);
    const svg_axis energy = energy_axis(c, row, top_px);
    fprintf(stream, "<text class='title' x='%.1f' y='%.1f'>", time.from_px, energy.to_px - 10);
    html_write_escaped(stream, row->image);
    fputs("</text>\n", stream);
    svg_write_ticks(stream, &time, &energy, "seconds");
    svg_begin_inside(stream, &time, &energy);
    for (size_t m = 0; m < c->sheet->methods->count; m++)
        if (belongs(c, m))
            draw_bound(stream, &row->of[m], m, &time, &energy);
    for (size_t m = 0; m < c->sheet->methods->count; m++)
        if (belongs(c, m))
            draw_energy(stream, &row->of[m], m, c->sheet->methods->of[m].name, &time, &energy);
    svg_end_inside(stream);
}

/* One entry of the legend; on the next line if this one is full. */
static void draw_key(FILE *stream, const column *c, size_t method, bool bound, double *x_px,
                     double *y_px) {
    char name[METHOD_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s%s", c->sheet->methods->of[method].name,
             bound ? ", lower bound" : "");
    double width_px = KEY_PX + 14;
    for (const char *at = name; *at; at++)
        width_px += LETTER_PX;
    const double begin_px = c->left_px + PANEL_LEFT_PX;
    if (*x_px > begin_px && *x_px + width_px > c->left_px + PANEL_WIDTH_PX) {
        *x_px = begin_px;
        *y_px += LEGEND_LINE_PX;
    }
    if (stream) {
        fprintf(stream, "<path class='m%zu%s' d='M%.1f %.1f h%d'/><text x='%.1f' y='%.1f'>", method,
                bound ? " lower" : "", *x_px, *y_px - 4, KEY_PX - 8, *x_px + KEY_PX - 2, *y_px);
        html_write_escaped(stream, name);
        fputs("</text>\n", stream);
    }
    *x_px += width_px;
}

/* Returns its lower edge; `stream` = NULL: without drawing. */
static double draw_head(FILE *stream, const column *c) {
    double x_px = c->left_px + PANEL_LEFT_PX, y_px = HEAD_PX;
    if (stream)
        fprintf(stream, "<text class='head' x='%.1f' y='%.1f'>%s</text>\n", x_px, y_px,
                c->cliques ? "With cliques" : "Without cliques");
    y_px += LEGEND_LINE_PX;
    for (size_t m = 0; m < c->sheet->methods->count; m++)
        if (belongs(c, m) && has_curve(c, m)) {
            draw_key(stream, c, m, false, &x_px, &y_px);
            if (has_bound(c, m))
                draw_key(stream, c, m, true, &x_px, &y_px);
        }
    return y_px + LEGEND_LINE_PX / 2.0;
}

void curves_write(FILE *stream, const curve_sheet *sheet, bool own_file) {
    column columns[2];
    size_t count = 0;
    double head_px = 0;
    for (int cliques = 0; cliques < 2; cliques++) {
        columns[count] = (column){sheet, cliques, (double)count * PANEL_WIDTH_PX};
        if (is_empty(&columns[count]))
            continue;
        head_px = fmax(head_px, draw_head(NULL, &columns[count]));
        count++;
    }
    const svg_sheet paper = {(count > 1 ? count : 1) * PANEL_WIDTH_PX,
                             count > 0 ? (size_t)head_px + sheet->count * PANEL_HEIGHT_PX
                                       : EMPTY_HEIGHT_PX,
                             "curves", "Energy against time", own_file};
    svg_begin_sheet(stream, &paper);
    fputs("<style>\n", stream);
    method_write_styles(stream, "curves", sheet->methods);
    /* Keep it legible on much wider or narrower pages. */
    fprintf(stream, ".curves { max-width: %zupx; min-width: %zupx; margin: 0 auto; }\n",
            paper.width_px * 13 / 10, paper.width_px * 7 / 10);
    fputs(".curves text { font-size: 13px; }\n"
          ".curves .title { fill: var(--text); font-size: 14px; }\n"
          ".curves .head { fill: var(--text); font-size: 15px; font-weight: 600; }\n"
          ".curves path.lower { stroke-dasharray: 6 4; stroke-width: 1.6; }\n"
          ".curves path.after { stroke-width: 1.2; opacity: .4; }\n"
          ".curves circle.end { stroke: none; }\n</style>\n",
          stream);
    if (count == 0)
        fputs("<text x='20' y='35'>No curves were recorded.</text>\n", stream);
    for (size_t i = 0; i < count; i++) {
        draw_head(stream, &columns[i]);
        for (size_t r = 0; r < sheet->count; r++)
            draw_panel(stream, &columns[i], &sheet->rows[r], head_px + (double)r * PANEL_HEIGHT_PX);
    }
    svg_end(stream);
}
