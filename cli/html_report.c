#include "html_report.h"

#include "html.h"
#include "html_plot.h"
#include "pictures.h"
#include "solution_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
    FILE *stream;
    const char *file; /* for messages */
    const solve_results *results;
    const scene *shown;
    const palette *colours;
    cli_problem *problem;
} page;

/* ---- pictures ------------------------------------------------------------------------------- */

typedef struct page_picture {
    const char *id;
    const char *caption;
    size_t channels;         /* 0: labels */
    const uint16_t *samples; /* labels, grey or RGB */
} page_picture;

static bool write_picture(const page *p, const page_picture *picture) {
    const html_picture drawn = {p->shown->width, p->shown->height, picture->channels,
                                picture->samples, p->colours};
    fprintf(p->stream, "<figure><img id='picture-%s' class='%s' alt='", picture->id,
            picture->channels == 0 ? "pixels" : "");
    html_write_escaped(p->stream, picture->caption);
    fprintf(p->stream, "' width='%zu' height='%zu' src='", drawn.width, drawn.height);
    const bool done = html_write_picture(p->stream, p->file, &drawn, p->problem);
    fputs("'><figcaption>", p->stream);
    html_write_escaped(p->stream, picture->caption);
    fputs("</figcaption></figure>\n", p->stream);
    return done;
}

static void write_choice(const page *p, const char *side, const char *name, const char *chosen) {
    static const char *const names[][2] = {
        {"image", "image"},     {"unary", "unary minimum"},   {"result", "result"},
        {"overlay", "overlay"}, {"boundaries", "boundaries"}, {"confidence", "confidence"}};
    fprintf(p->stream, "<label>%s<select id='%s'>", name, side);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        fprintf(p->stream, "<option value='%s'%s>%s</option>", names[i][0],
                strcmp(names[i][0], chosen) == 0 ? " selected" : "", names[i][1]);
    fputs("</select></label>\n", p->stream);
}

static void write_comparison(const page *p) {
    fputs("<section><h2>Compare</h2><div class='choices'>\n", p->stream);
    write_choice(p, "left", "Left", "unary");
    write_choice(p, "right", "Right", "result");
    /* Tall pictures stay within the window. */
    fprintf(p->stream,
            "</div><div class='compare' id='compare' style='max-width:calc(85vh*%zu/%zu)'>",
            p->shown->width, p->shown->height);
    fputs("<img class='below' alt=''>"
          "<div class='above'><img alt=''></div><div class='cut'></div></div>\n"
          "<input class='slider' id='slider' type='range' min='0' max='100' value='50' step='0.1' "
          "aria-label='where the left picture ends'>\n",
          p->stream);
    const solution *found = p->results->found;
    bool seen[PALETTE_COLOURS] = {false};
    for (size_t a = 0; a < image_pixels(&p->results->built->image); a++)
        seen[found->labels[a] % PALETTE_COLOURS] = seen[found->unary_labels[a] % PALETTE_COLOURS] =
            true;
    fputs("<div class='legend'>", p->stream);
    for (size_t i = 0; i < PALETTE_COLOURS; i++)
        if (seen[i])
            fprintf(p->stream, "<span><i style='background:#%02x%02x%02x'></i>label %zu</span>",
                    p->colours->rgb[i][0], p->colours->rgb[i][1], p->colours->rgb[i][2], i);
    fputs("</div></section>\n", p->stream);
}

static bool write_pictures(const page *p) {
    const solution *found = p->results->found;
    const size_t first = p->shown->first;
    uint16_t *overlay = picture_overlay(p->shown, found->labels, p->colours);
    uint16_t *boundaries = picture_boundaries(p->shown, found->labels);
    uint16_t *confidence = picture_grey(p->shown, found->confidence);
    const page_picture pictures[] = {
        {"image", "the image", IMAGE_CHANNELS, p->shown->colours},
        {"unary", "the unary minimum: every pixel for itself", 0, found->unary_labels + first},
        {"result", "the result", 0, found->labels + first},
        {"overlay", "the result over the image", IMAGE_CHANNELS, overlay},
        {"boundaries", "where labels meet", IMAGE_CHANNELS, boundaries},
        {"confidence", "how sure the method is: white is sure", 1, confidence},
    };
    fprintf(p->stream, "<section><h2>%s</h2><div class='pictures'>\n",
            image_is_volume(&p->results->built->image) ? "Pictures of the middle slice"
                                                       : "Pictures");
    bool done = true;
    for (size_t i = 0; done && i < sizeof pictures / sizeof pictures[0]; i++)
        done = write_picture(p, &pictures[i]);
    fputs("</div></section>\n", p->stream);
    free(overlay);
    free(boundaries);
    free(confidence);
    return done;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void write_figure(const page *p, const char *value, const char *name) {
    fprintf(p->stream, "<div class='figure'><b>%s</b><span>%s</span></div>\n", value, name);
}

static void write_figures(const page *p) {
    const dcrf_solver_info *info = &p->results->found->info;
    char text[ENERGY_TEXT_BYTES];
    fputs("<div class='figures'>\n", p->stream);
    write_figure(p, energy_text(info->energy.total, text), "energy");
    if (!isnan(info->lower_bound)) {
        write_figure(p, energy_text(info->lower_bound, text), "lower bound");
        snprintf(text, sizeof text, "%.3g %%", 100 * info->relative_gap);
        write_figure(p, text, "proven gap: no labelling is better by more");
    }
    snprintf(text, sizeof text, "%zu", info->iterations);
    write_figure(p, text, "iterations");
    snprintf(text, sizeof text, "%.2f s", seconds_of_run(p->results->found));
    write_figure(p, text, "from setup to polishing");
    fputs("</div>\n", p->stream);
    if (info->is_constant)
        fputs("<p class='note'>One label wins everywhere: the weights of kernels and cliques drown "
              "the unaries. Try smaller weights, or symmetric normalization.</p>\n",
              p->stream);
}

static void write_energy_row(const page *p, const char *name, const dcrf_energy *energy) {
    const double parts[] = {energy->total, energy->unary, energy->pairwise, energy->cliques};
    fprintf(p->stream, "<tr><td>%s</td>", name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char text[ENERGY_TEXT_BYTES];
        fprintf(p->stream, "<td>%s</td>", energy_text(parts[i], text));
    }
    fputs("</tr>\n", p->stream);
}

static void write_energies(const page *p) {
    const solution *found = p->results->found;
    fputs("<section><h2>Energies</h2><div class='scroll'><table>\n"
          "<tr><th>labelling</th><th>total</th><th>unary</th><th>pairwise</th><th>cliques</th>"
          "</tr>\n",
          p->stream);
    write_energy_row(p, "result", &found->info.energy);
    write_energy_row(p, "before polishing", &found->info.unpolished);
    write_energy_row(p, "unary minimum", &found->unary_minimum.energy);
    write_energy_row(p, "best constant", &found->constant.energy);
    fputs("</table></div></section>\n", p->stream);
}

static void write_plot(const page *p) {
    fputs("<section><h2>Energy against time</h2>\n", p->stream);
    html_plot_write(p->stream, p->results->found);
    fputs("<div class='legend'><span><i class='energy-key'></i>best labelling so far</span>"
          "<span><i class='dot-key'></i>labelling of the iteration</span>"
          "<span><i class='final-key'></i>after polishing</span>",
          p->stream);
    if (!isnan(p->results->found->info.lower_bound))
        fputs("<span><i class='bound-key'></i>lower bound</span>", p->stream);
    fputs("</div></section>\n", p->stream);
}

/* ---- settings ------------------------------------------------------------------------------- */

static bool write_settings(const page *p) {
    const option_record *record = p->results->record;
    json_t *settings = settings_to_json(record, no_part_of_settings);
    char *arguments = settings_to_arguments(record, no_part_of_settings);
    const bool done = (settings && arguments) || out_of_memory(p->problem, p->file);
    if (done) {
        html_write_settings(p->stream, settings);
        fputs("<section><h2>To repeat it</h2><pre>dcrf solve", p->stream);
        html_write_escaped(p->stream, arguments);
        fputs("</pre></section>\n", p->stream);
    }
    json_decref(settings);
    free(arguments);
    return done;
}

static void write_explanation(const page *p) {
    fputs("<section><h2>What the settings mean here</h2>\n", p->stream);
    for (const char *line = p->results->explanation; line && *line;) {
        const size_t length = strcspn(line, "\n");
        fprintf(p->stream, "<p>%.*s</p>\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    fputs("</section>\n", p->stream);
}

/* ---- the page ------------------------------------------------------------------------------- */

static const char *image_name(const page *p) {
    const char *path = option_text(p->results->record, "IMAGE");
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

static void write_subtitle(const page *p) {
    const built_model *built = p->results->built;
    char size[IMAGE_TEXT_BYTES];
    fprintf(p->stream,
            "<p class='soft'>%s, %zu labels, %zu cliques; method %s, %zu threads, dcrf %s</p>\n",
            image_size_text(&built->image, size), dcrf_model_labels(built->model),
            dcrf_model_cliques(built->model), dcrf_method_name(p->results->found->info.method),
            dcrf_workspace_threads(built->workspace), dcrf_version());
}

bool html_report_write(FILE *stream, const char *file, const solve_results *results,
                       const scene *shown, const palette *colours, cli_problem *problem) {
    const page p = {stream, file, results, shown, colours, problem};
    html_begin_style(stream, image_name(&p));
    html_begin_body(stream, image_name(&p));
    write_subtitle(&p);
    write_figures(&p);
    write_comparison(&p);
    if (!write_pictures(&p))
        return false;
    write_plot(&p);
    write_energies(&p);
    write_explanation(&p);
    if (!write_settings(&p))
        return false;
    html_end_page(stream, HTML_COMPARES | HTML_ZOOMS);
    return true;
}
