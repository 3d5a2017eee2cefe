/* The grid.
 *
 * The height of the sheet and the classes in its legend are only known after all pictures have
 * been drawn, so they are drawn into memory first. Label maps have one colour per class, so that
 * they compress well; void is hatched in grey. */
#include "dataset/picture_grid.h"

#include "io/file.h"
#include "io/label_map.h"
#include "io/picture.h"
#include "report/html.h"
#include "report/svg_axis.h"

#include <math.h>
#include <stdlib.h>

#define CELL_PX 180
#define CELL_HEIGHT_MAX_PX 270
#define SMALLEST_CELL_PX 110 /* below this, a page scrolls instead of shrinking them */
#define LARGEST_CELL_PX 260
#define GAP_PX 8
#define HEAD_PX 34
#define CAPTION_PX 24
#define LEGEND_LINE_PX 24
#define LETTER_PX 7.5
#define SWATCH_PX 14

/* Void uses two colours of the palette, the last ones that labels would need. */
#define VOID_DARK 254
#define VOID_LIGHT 255
#define VOID_STRIPE_PX 4

/* Column 0 is the photograph, then comes the ground truth, if any, then the methods. */
#define TRUTH_COLUMN 1

typedef struct grid {
    FILE *stream; /* the drawing, in memory */
    const char *file;
    const summary *found;
    const store *results;
    const method_list *methods;
    palette colours;
    bool seen[PALETTE_COLOURS];
    bool seen_void;
    size_t columns;
    double y_px;
    double row_height_px;
    cli_problem *problem;
} grid;

/* ---- cells ---------------------------------------------------------------------------------- */

static double column_px(size_t column) {
    return GAP_PX + (double)column * (CELL_PX + GAP_PX);
}

static void begin_cell(const grid *g, size_t column, size_t width) {
    fprintf(g->stream, "<image x='%.0f' y='%.1f' width='%d' height='%.1f'%s href='",
            column_px(column), g->y_px, CELL_PX, g->row_height_px,
            width < CELL_PX ? " class='pixels'" : "");
}

static void end_cell(const grid *g, const char *image, const char *what) {
    fputs("'><title>", g->stream);
    html_write_escaped(g->stream, image);
    fputs(": ", g->stream);
    html_write_escaped(g->stream, what);
    fputs("</title></image>\n", g->stream);
}

static bool draw_photograph(grid *g, const dataset_item *item, size_t width) {
    begin_cell(g, 0, width);
    const bool done = html_write_photograph(g->stream, g->file, item->image_file, g->problem);
    end_cell(g, item->name, "image");
    return done;
}

static bool draw_map(grid *g, size_t column, const dataset_item *item, const char *what,
                     const picture *labels) {
    const html_picture shown = {labels->width,   labels->height, 0,
                                labels->samples, &g->colours,    false};
    begin_cell(g, column, labels->width);
    const bool done = html_write_picture(g->stream, g->file, &shown, g->problem);
    end_cell(g, item->name, what);
    return done;
}

static bool read_labels(const grid *g, const char *method, const char *image, picture *labels) {
    char *path = store_labels_file(g->results, method, image);
    file_bytes bytes;
    bool done = path ? file_read(path, &bytes, g->problem) : out_of_memory(g->problem, g->file);
    if (done) {
        done = picture_decode(bytes.data, bytes.size, PICTURE_AS_NUMBERS, path, labels, g->problem);
        file_free(&bytes);
    }
    free(path);
    return done;
}

static void note_labels(grid *g, const picture *labels) {
    for (size_t a = 0; a < labels->width * labels->height; a++)
        g->seen[labels->samples[a] % PALETTE_COLOURS] = true;
}

/* The truth as labels; numbers that are not classes become void. */
static void truth_to_labels(grid *g, const int32_t *truth, picture *labels) {
    const size_t classes = g->found->data->labels;
    for (size_t a = 0; a < labels->width * labels->height; a++) {
        const bool is_class = truth[a] >= 0 && (size_t)truth[a] < classes;
        const size_t diagonal = a % labels->width + a / labels->width;
        labels->samples[a] = is_class                             ? (uint16_t)truth[a]
                             : diagonal / VOID_STRIPE_PX % 2 != 0 ? VOID_LIGHT
                                                                  : VOID_DARK;
        if (is_class)
            g->seen[truth[a] % PALETTE_COLOURS] = true;
        else
            g->seen_void = true;
    }
}

/* `labels` are those of a method: they have the image's size, and their memory is reused. */
static bool draw_truth(grid *g, const dataset_item *item, picture *labels) {
    const cli_image image = {
        .width = labels->width, .height = labels->height, .depth = 1, .channels = IMAGE_CHANNELS};
    int32_t *truth = NULL;
    if (!item->truth_file)
        return true;
    if (!label_map_read(item->truth_file, &image, &truth, g->problem))
        return false;
    truth_to_labels(g, truth, labels);
    free(truth);
    return draw_map(g, TRUTH_COLUMN, item, "truth", labels);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void draw_caption(const grid *g, size_t image) {
    fprintf(g->stream, "<text class='caption' x='%.0f' y='%.1f'>", column_px(0),
            g->y_px + g->row_height_px + CAPTION_PX - 9);
    html_write_escaped(g->stream, g->found->data->items[image].name);
    fprintf(g->stream, ": up to %.1f %% of the pixels change</text>\n",
            100 * g->found->changed_share[image]);
}

static size_t first_method_column(const grid *g) {
    return g->found->data->has_truth ? TRUTH_COLUMN + 1 : 1;
}

static bool draw_row(grid *g, size_t image) {
    const dataset_item *item = &g->found->data->items[image];
    bool done = true;
    for (size_t m = 0; done && m < g->methods->count; m++) {
        const char *method = g->methods->of[m].name;
        picture labels;
        if (!read_labels(g, method, item->name, &labels))
            return false;
        note_labels(g, &labels);
        if (m == 0)
            g->row_height_px = fmin((double)CELL_PX * (double)labels.height / (double)labels.width,
                                    CELL_HEIGHT_MAX_PX);
        done = (m > 0 || draw_photograph(g, item, labels.width)) &&
               draw_map(g, first_method_column(g) + m, item, method, &labels) &&
               (m > 0 || !g->found->data->has_truth || draw_truth(g, item, &labels));
        picture_free(&labels);
    }
    draw_caption(g, image);
    g->y_px += g->row_height_px + CAPTION_PX;
    return done;
}

static void draw_head(const grid *g) {
    for (size_t i = 0; i < g->columns; i++) {
        fprintf(g->stream, "<text class='head' x='%.1f' y='%d' text-anchor='middle'>",
                column_px(i) + CELL_PX / 2.0, HEAD_PX - 12);
        const size_t first = first_method_column(g);
        html_write_escaped(g->stream, i == 0      ? "image"
                                      : i < first ? "truth"
                                                  : g->methods->of[i - first].name);
        fputs("</text>\n", g->stream);
    }
}

/* ---- the legend ----------------------------------------------------------------------------- */

static void draw_key(grid *g, double *x_px, const uint8_t rgb[3], const char *name) {
    double width_px = SWATCH_PX + 22;
    for (const char *at = name; *at; at++)
        width_px += LETTER_PX;
    if (*x_px > GAP_PX && *x_px + width_px > column_px(g->columns)) {
        *x_px = GAP_PX;
        g->y_px += LEGEND_LINE_PX;
    }
    fprintf(g->stream,
            "<rect class='swatch' x='%.1f' y='%.1f' width='%d' height='%d' rx='3' "
            "fill='#%02x%02x%02x'/><text x='%.1f' y='%.1f'>",
            *x_px, g->y_px, SWATCH_PX, SWATCH_PX, rgb[0], rgb[1], rgb[2], *x_px + SWATCH_PX + 6,
            g->y_px + SWATCH_PX - 2.5);
    html_write_escaped(g->stream, name);
    fputs("</text>\n", g->stream);
    *x_px += width_px;
}

static void draw_legend(grid *g) {
    double x_px = GAP_PX;
    g->y_px += 6;
    for (size_t i = 0; i < PALETTE_COLOURS && i < g->found->data->labels; i++)
        if (g->seen[i])
            draw_key(g, &x_px, g->colours.rgb[i], g->found->data->classes[i]);
    if (g->seen_void)
        draw_key(g, &x_px, g->colours.rgb[VOID_DARK], "void");
    g->y_px += LEGEND_LINE_PX;
}

/* ---- the sheet ------------------------------------------------------------------------------ */

static void set_void_colours(palette *colours) {
    for (size_t c = 0; c < 3; c++) {
        colours->rgb[VOID_DARK][c] = 0x68;
        colours->rgb[VOID_LIGHT][c] = 0x90;
    }
}

/* Among the images that have results and are not drawn yet, the one that changes most, the first
 * of equal ones; the number of images if there is none. */
static size_t next_image(const grid *g, const bool *drawn) {
    const dataset *data = g->found->data;
    size_t next = data->count;
    for (size_t i = 0; i < data->count; i++)
        if (!drawn[i] && !summary_has_failed(g->found, data->items[i].name) &&
            (next == data->count || g->found->changed_share[i] > g->found->changed_share[next]))
            next = i;
    return next;
}

static bool draw_rows(grid *g, size_t images) {
    const size_t count = g->found->data->count;
    bool *is_drawn = calloc(count + 1, sizeof *is_drawn);
    if (!is_drawn)
        return out_of_memory(g->problem, g->file);
    bool done = true;
    size_t drawn = 0;
    for (size_t i; done && drawn < images && (i = next_image(g, is_drawn)) < count; drawn++) {
        done = draw_row(g, i);
        is_drawn[i] = true;
    }
    free(is_drawn);
    if (!done)
        return false;
    if (drawn == 0) {
        fprintf(g->stream, "<text x='%d' y='%d'>There are no pictures.</text>\n", GAP_PX,
                HEAD_PX + 16);
        g->y_px += LEGEND_LINE_PX;
    }
    return true;
}

static void write_sheet(FILE *stream, const grid *g, const char *drawn, size_t bytes,
                        bool own_file) {
    const svg_sheet paper = {(size_t)column_px(g->columns), (size_t)g->y_px, "picture-grid",
                             "Pictures of images, results and truth", own_file};
    svg_begin_sheet(stream, &paper);
    fprintf(stream,
            "<style>\n.picture-grid { min-width: %zupx; max-width: %zupx; margin: 0 auto; }\n"
            ".picture-grid text { font-size: 13px; }\n"
            ".picture-grid .head { fill: var(--text); font-size: 14px; font-weight: 600; }\n"
            ".picture-grid .swatch { stroke: var(--line); }\n"
            /* Labels are not affected by the camera's orientation. */
            ".picture-grid image { image-orientation: none; }\n"
            ".picture-grid .pixels { image-rendering: pixelated; }\n</style>\n",
            g->columns * SMALLEST_CELL_PX, g->columns * LARGEST_CELL_PX);
    fwrite(drawn, 1, bytes, stream);
    svg_end(stream);
}

bool picture_grid_write(FILE *stream, const char *file, const summary *found, const store *results,
                        const method_list *methods, size_t images, bool own_file,
                        cli_problem *problem) {
    grid g = {.file = file,
              .found = found,
              .results = results,
              .methods = methods,
              .colours = found->data->colours,
              .columns = 1 + methods->count + (found->data->has_truth ? 1 : 0),
              .y_px = HEAD_PX,
              .problem = problem};
    char *drawn = NULL;
    size_t bytes = 0;
    if (found->data->labels <= VOID_DARK)
        set_void_colours(&g.colours);
    g.stream = open_memstream(&drawn, &bytes);
    if (!g.stream)
        return out_of_memory(problem, file);
    draw_head(&g);
    bool done = draw_rows(&g, images);
    if (done)
        draw_legend(&g);
    if (fclose(g.stream) != 0 && done)
        done = out_of_memory(problem, file);
    if (done)
        write_sheet(stream, &g, drawn, bytes, own_file);
    free(drawn);
    return done;
}
