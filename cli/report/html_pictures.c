/* The pictures of the report, and the comparison of two of them. */
#include "report/html_pictures.h"

#include "report/html.h"

#include <stdlib.h>
#include <string.h>

/* ---- pictures ------------------------------------------------------------------------------- */

typedef struct page_picture {
    const char *id;
    const char *name; /* in the menus of the comparison */
    const char *caption;
    size_t channels;         /* 0: labels */
    const uint16_t *samples; /* labels, grey or RGB */
} page_picture;

static bool write_picture(const page *p, const page_picture *picture) {
    const html_picture drawn = {p->shown->width,  p->shown->height, picture->channels,
                                picture->samples, p->colours,       p->is_hurried};
    const cli_image *image = &p->results->built->image;
    fprintf(p->stream, "<figure><img id='picture-%s' class='%s' alt='", picture->id,
            picture->channels == 0 ? "pixels" : "");
    html_write_escaped(p->stream, picture->caption);
    fprintf(p->stream, "' width='%zu' height='%zu' src='", image->width, image->height);
    const bool done = html_write_picture(p->stream, p->file, &drawn, p->problem);
    fputs("'><figcaption>", p->stream);
    html_write_escaped(p->stream, picture->caption);
    fputs("</figcaption></figure>\n", p->stream);
    return done;
}

/* The pictures of a scene; those drawn for it must be freed. */
#define PICTURES_MAX 8
typedef struct picture_set {
    page_picture of[PICTURES_MAX];
    size_t count;
    uint16_t *drawn[PICTURES_MAX]; /* NULL: the samples are the scene's, or out of memory */
} picture_set;

static void add_picture(picture_set *set, page_picture added, uint16_t *drawn) {
    if (drawn)
        added.samples = drawn;
    set->drawn[set->count] = drawn;
    set->of[set->count++] = added;
}

static picture_set draw_pictures(const page *p, const scene *shown) {
    const solution *found = p->results->found;
    picture_set set = {.count = 0};
    add_picture(&set, (page_picture){"image", "image", "the image", IMAGE_CHANNELS, shown->colours},
                NULL);
    if (option_text(p->results->record, "scribbles"))
        add_picture(&set, (page_picture){"strokes", "strokes", "the strokes", IMAGE_CHANNELS, NULL},
                    picture_strokes(shown, p->results->built->model, p->colours));
    if (p->results->built->mask.map)
        add_picture(
            &set, (page_picture){"mask", "mask", "the mask, as it was given", IMAGE_CHANNELS, NULL},
            picture_mask(shown, p->results->built->mask.map, p->colours));
    else
        add_picture(&set,
                    (page_picture){"unary", "unary minimum",
                                   "the unary minimum: every pixel for itself", 0, NULL},
                    picture_labels(shown, found->unary_labels));
    add_picture(&set, (page_picture){"result", "result", "the result", 0, NULL},
                picture_labels(shown, found->labels));
    add_picture(
        &set,
        (page_picture){"overlay", "overlay", "the result over the image", IMAGE_CHANNELS, NULL},
        picture_overlay(shown, found->labels, p->colours));
    add_picture(
        &set, (page_picture){"boundaries", "boundaries", "where labels meet", IMAGE_CHANNELS, NULL},
        picture_boundaries(shown, found->labels));
    add_picture(&set,
                (page_picture){"confidence", "confidence", "how sure the method is: white is sure",
                               1, NULL},
                picture_grey(shown, found->confidence));
    /* If everything or nothing is proven, a number says it; no picture is needed. */
    if (found->has_proof && found->proven.proven > 0 &&
        found->proven.proven < found->proven.variables)
        add_picture(&set,
                    (page_picture){"proof", "proof",
                                   "proven where grey; where two labels are left orange, three "
                                   "red, more purple",
                                   IMAGE_CHANNELS, NULL},
                    picture_proof(shown, found->labels_left));
    return set;
}

static void free_pictures(picture_set *set) {
    for (size_t i = 0; i < set->count; i++)
        free(set->drawn[i]);
}

static void say_step(const page *p) {
    if (p->shown->step > 1)
        fprintf(p->stream, "<p class='soft'>One of %zu rows and columns%s.</p>\n", p->shown->step,
                p->is_hurried ? ", as there was no time for more" : "");
}

static bool write_pictures(const page *p, const picture_set *set) {
    fprintf(p->stream, "<section><h2>%s</h2>\n",
            image_is_volume(&p->results->built->image) ? "Pictures of the slice" : "Pictures");
    say_step(p);
    fputs("<div class='pictures'>\n", p->stream);
    bool done = true;
    for (size_t i = 0; done && i < set->count; i++)
        done = write_picture(p, &set->of[i]);
    fputs("</div></section>\n", p->stream);
    return done;
}

/* ---- slices --------------------------------------------------------------------------------- */

/* More would make the page too large: larger volumes show every second slice, every third, ... */
#define SLICE_PIXELS_MAX 8000000

static size_t slice_step(const cli_image *image) {
    return (image_pixels(image) + SLICE_PIXELS_MAX - 1) / SLICE_PIXELS_MAX;
}

/* One slice: an object that maps picture names to URLs. */
static bool write_slice(const page *p, const scene *shown, size_t slice) {
    picture_set set = draw_pictures(p, shown);
    bool done = true;
    fprintf(p->stream, "{\"slice\":%zu", slice);
    for (size_t i = 0; done && i < set.count; i++) {
        const html_picture drawn = {shown->width,      shown->height, set.of[i].channels,
                                    set.of[i].samples, p->colours,    p->is_hurried};
        fprintf(p->stream, ",\"%s\":\"", set.of[i].id);
        done = html_write_picture(p->stream, p->file, &drawn, p->problem);
        fputc('"', p->stream);
    }
    fputc('}', p->stream);
    free_pictures(&set);
    return done;
}

/* The other slices of a volume, for the script of the comparison. */
static bool write_slices(const page *p) {
    const cli_image *image = &p->results->built->image;
    scene shown;
    if (!image_is_volume(image))
        return true;
    if (!scene_new(&shown, image, p->shown->step))
        return out_of_memory(p->problem, p->file);
    fputs("<script type='application/json' id='slices'>[\n", p->stream);
    bool done = true;
    for (size_t slice = 0; done && slice < image->depth; slice += slice_step(image)) {
        fputs(slice == 0 ? "" : ",\n", p->stream);
        scene_move(&shown, image, slice);
        done = write_slice(p, &shown, slice);
    }
    fputs("]</script>\n", p->stream);
    scene_free(&shown);
    return done;
}

/* ---- the comparison ------------------------------------------------------------------------- */

static void write_choice(const page *p, const picture_set *set, const char *side, const char *name,
                         const char *chosen) {
    fprintf(p->stream, "<label>%s<select id='%s'>", name, side);
    for (size_t i = 0; i < set->count; i++)
        fprintf(p->stream, "<option value='%s'%s>%s</option>", set->of[i].id,
                strcmp(set->of[i].id, chosen) == 0 ? " selected" : "", set->of[i].name);
    fputs("</select></label>\n", p->stream);
}

static void write_legend_entry(const page *p, size_t label) {
    const uint8_t *rgb = p->colours->rgb[label];
    char name[CLASS_TEXT_BYTES];
    fprintf(p->stream, "<span><i style='background:#%02x%02x%02x'></i>", rgb[0], rgb[1], rgb[2]);
    html_write_escaped(p->stream, class_text(&p->results->built->classes, label, name));
    fputs("</span>", p->stream);
}

static void write_comparison(const page *p, const picture_set *set) {
    fputs("<section><h2>Compare</h2><div class='choices'>\n", p->stream);
    const bool has_strokes = option_text(p->results->record, "scribbles") != NULL;
    const bool has_mask = p->results->built->mask.map != NULL;
    write_choice(p, set, "left", "Left", has_strokes ? "strokes" : has_mask ? "mask" : "unary");
    write_choice(p, set, "right", "Right", "overlay");
    /* Tall pictures are limited to the window. */
    fprintf(p->stream,
            "</div><div class='compare' id='compare' style='max-width:calc(85vh*%zu/%zu)'>",
            p->shown->width, p->shown->height);
    fputs("<img class='below' alt=''>"
          "<div class='above'><img alt=''></div><div class='cut'></div></div>\n"
          "<input class='slider' id='slider' type='range' min='0' max='100' value='50' step='0.1' "
          "aria-label='where the left picture ends'>\n",
          p->stream);
    const cli_image *image = &p->results->built->image;
    if (image_is_volume(image))
        fprintf(p->stream,
                "<label class='soft'>slice <output id='slice-number'></output> of %zu%s<input "
                "class='slider' id='slice' type='range' min='0' step='1'></label>\n",
                image->depth, slice_step(image) == 1 ? "" : " (not all are on the page)");
    const solution *found = p->results->found;
    bool seen[PALETTE_COLOURS] = {false};
    for (size_t a = 0; a < image_pixels(&p->results->built->image); a++)
        seen[found->labels[a] % PALETTE_COLOURS] = seen[found->unary_labels[a] % PALETTE_COLOURS] =
            true;
    fputs("<div class='legend'>", p->stream);
    for (size_t i = 0; i < PALETTE_COLOURS; i++)
        if (seen[i])
            write_legend_entry(p, i);
    fputs("</div></section>\n", p->stream);
}

/* ---- other strengths ------------------------------------------------------------------------ */

/* The labels with weaker and stronger kernels, as a strip. */
static bool write_strip(const page *p) {
    const strength_sweep *sweep = p->results->sweep;
    if (!sweep || sweep->count == 0)
        return true;
    fputs("<section><h2>At other strengths</h2><div class='pictures strip'>\n", p->stream);
    bool done = true;
    for (size_t k = 0; done && k < sweep->count; k++) {
        const sweep_point *point = &sweep->points[k];
        char id[32], caption[128];
        snprintf(id, sizeof id, "strength-%zu", k);
        snprintf(caption, sizeof caption, "strength %.3g%s: %.1f %% change, %zu of %zu labels left",
                 point->nats, point->factor == 1 ? " (in force)" : "", 100 * point->changed_share,
                 point->changes.labels_after, point->changes.labels_before);
        uint16_t *labels = picture_labels(p->shown, point->labels);
        const page_picture picture = {id, NULL, caption, 0, labels};
        done = write_picture(p, &picture);
        free(labels);
    }
    fputs("</div></section>\n", p->stream);
    return done;
}

void html_write_sweep(const page *p) {
    const strength_sweep *sweep = p->results->sweep;
    fprintf(p->stream,
            "<div class='scroll'><table>\n<tr><th>strength</th><th>%s changed</th><th>labels left"
            "</th><th>largest label</th></tr>\n",
            image_unit_text(&p->results->built->image));
    for (size_t k = 0; sweep && k < sweep->count; k++) {
        const sweep_point *point = &sweep->points[k];
        fprintf(p->stream,
                "<tr%s><td>%.3g%s</td><td>%.2f %%</td><td>%zu of %zu</td><td>%.0f %%</td></tr>\n",
                point->factor == 1 ? " class='best'" : "", point->nats,
                point->factor == 1 ? " (in force)" : "", 100 * point->changed_share,
                point->changes.labels_after, point->changes.labels_before,
                100 * point->changes.largest_share);
    }
    fputs("</table></div>\n", p->stream);
}

bool html_pictures_write(const page *p) {
    picture_set set = draw_pictures(p, p->shown);
    write_comparison(p, &set);
    const bool done = write_pictures(p, &set) && write_slices(p) && write_strip(p);
    free_pictures(&set);
    return done;
}
