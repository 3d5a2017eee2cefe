#include "report/html_report.h"

#include "report/html.h"
#include "report/html_pictures.h"
#include "report/html_plot.h"
#include "report/left_out_text.h"
#include "report/solution_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what happened -------------------------------------------------------------------------- */

/* What the user wants to know: what changed, and whether to be suspicious. */
static void write_headline(const page *p) {
    const solution *found = p->results->found;
    const dcrf_changes *changes = &found->changes;
    const double share = found->pixels > 0 ? (double)changes->changed / (double)found->pixels : 0;
    char moved[MASK_TEXT_BYTES];
    if (*mask_text(p->results->built, found, moved))
        fprintf(p->stream, "<p class='verdict'>The mask: %s", moved);
    else
        fprintf(p->stream,
                "<p class='verdict'>%.1f %% of the %s have another label than the unaries alone "
                "give them",
                100 * share, image_is_volume(&p->results->built->image) ? "voxels" : "pixels");
    if (changes->labels_vanished > 0)
        fprintf(p->stream, "; %zu of %zu labels vanished", changes->labels_vanished,
                changes->labels_before);
    fputs(".</p>\n", p->stream);
    for (unsigned warning = 1; warning <= changes->warnings; warning *= 2)
        if (changes->warnings & warning) {
            fputs("<p class='note'>", p->stream);
            html_write_escaped(p->stream, dcrf_warning_text((dcrf_warning)warning));
            fputs(".</p>\n", p->stream);
        }
}

/* The labels: each one's share of the image before and after, and how certain the method is of
 * it. */
static void write_labels(const page *p) {
    const solution *found = p->results->found;
    const double pixels = found->pixels > 0 ? (double)found->pixels : 1;
    const int32_t *mask = p->results->built->mask.map;
    double sureness[PALETTE_COLOURS] = {0}, before[PALETTE_COLOURS] = {0};
    for (size_t a = 0; a < found->pixels; a++) {
        sureness[found->labels[a] % PALETTE_COLOURS] += (double)found->confidence[a];
        if (mask && mask[a] >= 0)
            before[mask[a] % PALETTE_COLOURS]++;
    }
    for (size_t i = 0; !mask && i < found->label_count && i < PALETTE_COLOURS; i++)
        before[i] = (double)found->before[i];
    fprintf(p->stream,
            "<section><h2>Labels</h2><div class='scroll'><table>\n<tr><th>label</th><th>%s"
            "</th><th>in the result</th><th>how sure, on average</th></tr>\n",
            mask ? "in the mask" : "by the unaries");
    for (size_t i = 0; i < found->label_count && i < PALETTE_COLOURS; i++) {
        const uint8_t *rgb = p->colours->rgb[i];
        char name[CLASS_TEXT_BYTES];
        if (!(before[i] > 0) && found->after[i] == 0)
            continue;
        fprintf(p->stream, "<tr><td><i class='chip' style='background:#%02x%02x%02x'></i>", rgb[0],
                rgb[1], rgb[2]);
        html_write_escaped(p->stream, class_text(&p->results->built->classes, i, name));
        fprintf(p->stream, "</td><td>%.2f %%</td><td>%.2f %%</td><td>", 100 * before[i] / pixels,
                100 * (double)found->after[i] / pixels);
        if (found->after[i] > 0)
            fprintf(p->stream, "%.0f %%", 100 * sureness[i] / (double)found->after[i]);
        fputs("</td></tr>\n", p->stream);
    }
    fputs("</table></div></section>\n", p->stream);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void write_figure(const page *p, const char *value, const char *name) {
    fprintf(p->stream, "<div class='figure'><b>%s</b><span>%s</span></div>\n", value, name);
}

static void write_left_out(const page *p, const dcrf_left_out *left_out) {
    char text[LEFT_OUT_TEXT_BYTES];
    if (*left_out_text(left_out, "; ", text))
        fprintf(p->stream, "<p class='note'>Note: %s.</p>\n", text);
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
    const dcrf_proof_info *proven = &p->results->found->proven;
    if (p->results->found->has_proof) {
        char caption[96];
        snprintf(text, sizeof text, "%.4g %%",
                 100 * (double)proven->proven / (double)proven->variables);
        snprintf(caption, sizeof caption, "of the %s have their label in every optimal labelling",
                 image_unit_text(&p->results->built->image));
        write_figure(p, text, caption);
    }
    snprintf(text, sizeof text, "%zu", info->iterations);
    write_figure(p, text, "iterations");
    snprintf(text, sizeof text, "%.2f s", seconds_of_run(p->results->found));
    write_figure(p, text, "from setup to polishing");
    fputs("</div>\n", p->stream);
    write_left_out(p, &info->bound_left_out);
}

static void write_energy_row(const page *p, const char *name, const dcrf_energy *energy) {
    const double parts[] = {energy->total, energy->unary, energy->pairwise, energy->cliques};
    fprintf(p->stream, "<tr><td>%s</td>", name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char text[ENERGY_TEXT_BYTES];
        fprintf(p->stream, "<td>%s</td>", isnan(parts[i]) ? "" : energy_text(parts[i], text));
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
    write_energy_row(p, "unary minimum", &found->unary_minimum);
    write_energy_row(p, "best constant", &found->constant);
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

/* Separate the given settings from all settings. */
static json_t *given_settings(const option_record *record, json_t *settings) {
    json_t *chosen = json_object(), *value;
    const char *name;
    void *next;
    json_object_foreach_safe(settings, next, name, value) {
        const bool is_operand = strcmp(name, "image") == 0;
        if (chosen && (is_operand || option_was_given(record, name))) {
            json_object_set(chosen, name, value);
            json_object_del(settings, name);
        }
    }
    return chosen;
}

static bool write_settings(const page *p) {
    const option_record *record = p->results->record;
    json_t *settings = settings_to_json(record, no_part_of_settings);
    json_t *chosen = settings ? given_settings(record, settings) : NULL;
    char *arguments = settings_to_arguments(record, no_part_of_settings);
    const bool done = (chosen && arguments) || out_of_memory(p->problem, p->file);
    if (done) {
        html_write_settings(p->stream, "Settings", chosen);
        fputs("<details><summary>Settings that are as they usually are</summary>\n", p->stream);
        html_write_settings(p->stream, "Defaults", settings);
        fputs("</details>\n", p->stream);
        fputs("<section><h2>To repeat it</h2><pre>dcrf solve", p->stream);
        html_write_escaped(p->stream, arguments);
        fputs("</pre></section>\n", p->stream);
    }
    json_decref(settings);
    json_decref(chosen);
    free(arguments);
    return done;
}

static void write_explanation(const page *p) {
    fputs("<section><h2>What the settings mean here</h2>\n", p->stream);
    for (const char *line = p->results->explanation; line && *line;) {
        const size_t length = strcspn(line, "\n");
        if (line[0] != ' ') /* indented lines are the sweep, which gets a table of its own here */
            fprintf(p->stream, "<p>%.*s</p>\n", (int)length, line);
        else if (line > p->results->explanation + 1 && line[-2] == ':')
            html_write_sweep(p);
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
    fprintf(p->stream, "<p class='soft'>%s, %zu labels", image_size_text(&built->image, size),
            dcrf_model_labels(built->model));
    if (dcrf_model_cliques(built->model) > 0)
        fprintf(p->stream, ", %zu cliques", dcrf_model_cliques(built->model));
    fprintf(p->stream, "; method %s, %zu threads", dcrf_method_name(p->results->found->info.method),
            dcrf_workspace_threads(built->workspace));
    print_device(p->stream, built);
    fprintf(p->stream, ", dcrf %s</p>\n", dcrf_version());
}

static bool write_page(const page *p) {
    html_begin_style(p->stream, image_name(p));
    html_begin_body(p->stream, image_name(p));
    write_subtitle(p);
    write_headline(p);
    write_labels(p);
    if (!html_pictures_write(p))
        return false;
    write_figures(p);
    write_plot(p);
    write_energies(p);
    write_explanation(p);
    if (!write_settings(p))
        return false;
    html_end_page(p->stream, HTML_COMPARES | HTML_ZOOMS);
    return true;
}

bool html_report_write(FILE *stream, const char *file, const solve_results *results,
                       bool is_hurried, cli_problem *problem) {
    const cli_image *image = &results->built->image;
    scene shown;
    if (!scene_new(&shown, image, html_picture_step(image->width, image->height, is_hurried)))
        return out_of_memory(problem, file);
    const page p = {stream, file, results, &shown, results->colours, is_hurried, problem};
    const bool done = write_page(&p);
    scene_free(&shown);
    return done;
}
