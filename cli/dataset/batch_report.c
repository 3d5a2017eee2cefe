#include "dataset/batch_report.h"

#include "dataset/method_style.h"
#include "dataset/picture_grid.h"
#include "report/html.h"
#include "report/svg_axis.h"

#include <math.h>

typedef struct batch_page {
    FILE *stream;
    const char *file;
    const summary *found;
    const method_list *methods;
} batch_page;

/* ---- cells ---------------------------------------------------------------------------------- */

/* A number, empty if unknown, bold if it is the best of its column. */
static void write_cell(const batch_page *p, double value, int decimals, bool best) {
    fputs(best ? "<td class='best'>" : "<td>", p->stream);
    if (isfinite(value))
        fprintf(p->stream, "%.*f", decimals, value);
    fputs("</td>", p->stream);
}

static void write_energy(const batch_page *p, double energy, bool best) {
    write_cell(p, energy, fabs(energy) < 1000 ? 2 : 1, best);
}

static void write_percent(const batch_page *p, double fraction, bool best) {
    write_cell(p, 100 * fraction, 2, best);
}

/* The name of a method after its colour. */
static void write_method(const batch_page *p, size_t method) {
    fprintf(p->stream, "<i class='chip m%zu'></i>%s", method, p->found->rows[method].method);
}

static double seconds_of(const summary_row *row) {
    return row->setup_s + row->solve_s + row->polish_s;
}

/* ---- the best ------------------------------------------------------------------------------- */

typedef double row_value(const summary_row *row);

static double accuracy_of(const summary_row *row) {
    return score_accuracy(&row->counts);
}

static double class_accuracy_of(const summary_row *row) {
    return score_mean_class_accuracy(&row->counts);
}

static double iou_of(const summary_row *row) {
    return score_mean_iou(&row->counts);
}

static double energy_below(const summary_row *row) {
    return -row->energy;
}

/* Is no other method better, to the digits shown in the table? Energies are only compared
 * between models of the same kind. */
static bool is_best(const batch_page *p, size_t method, row_value *value, double unit) {
    const bool of_kind = value == energy_below;
    const double mine = round(value(&p->found->rows[method]) / unit);
    for (size_t m = 0; m < p->found->row_count; m++)
        if ((!of_kind || p->methods->of[m].cliques == p->methods->of[method].cliques) &&
            round(value(&p->found->rows[m]) / unit) > mine)
            return false;
    return p->found->row_count > 1 && isfinite(mine);
}

/* ---- tables --------------------------------------------------------------------------------- */

static void write_row(const batch_page *p, size_t method) {
    const summary_row *row = &p->found->rows[method];
    fputs("<tr><td>", p->stream);
    write_method(p, method);
    fputs("</td>", p->stream);
    if (p->found->data->has_truth) {
        write_percent(p, accuracy_of(row), is_best(p, method, accuracy_of, 1e-4));
        write_percent(p, class_accuracy_of(row), is_best(p, method, class_accuracy_of, 1e-4));
        write_percent(p, iou_of(row), is_best(p, method, iou_of, 1e-4));
    }
    write_energy(p, row->energy, is_best(p, method, energy_below, 0.1));
    write_energy(p, row->rounded, false);
    write_energy(p, row->lower_bound, false);
    write_cell(p, 100 * row->relative_gap, 3, false);
    write_percent(p, row->proven_share, false);
    write_cell(p, row->is_unary ? (double)NAN : row->iterations, 1, false);
    write_cell(p, seconds_of(row), 3, false);
    fprintf(p->stream, "<td>%zu</td>", row->constant);
    write_percent(p, row->changed_share, false);
    fputs("</tr>\n", p->stream);
}

static void write_main_table(const batch_page *p) {
    fputs("<section><h2>Methods</h2><div class='scroll'><table>\n<tr><th>method</th>", p->stream);
    if (p->found->data->has_truth)
        fputs("<th>accuracy %</th><th>class accuracy %</th><th>mean IoU %</th>", p->stream);
    fputs("<th>energy</th><th>own rounding</th><th>lower bound</th><th>gap %</th><th>proven %</th>"
          "<th>iterations</th><th>seconds</th><th>constant</th><th>changed %</th></tr>\n",
          p->stream);
    for (size_t m = 0; m < p->found->row_count; m++)
        write_row(p, m);
    fputs(
        "</table></div><p class='soft'>Energies, gaps, iterations and seconds are means over the "
        "images. Own rounding is the energy of the labelling of a method's last iteration, "
        "unpolished; constant counts images that got one label everywhere; changed are the pixels "
        "that have another label than the unaries alone give them. Energies with and without "
        "cliques are those of different models.</p>\n",
        p->stream);
    char left_out[LEFT_OUT_TEXT_BYTES];
    if (*summary_left_out(p->found, left_out))
        fprintf(p->stream, "<p class='note'>Note: %s.</p>\n", left_out);
    fputs("</section>\n", p->stream);
}

/* The header of a table with one column per method. */
static void begin_method_columns(const batch_page *p, const char *first) {
    fprintf(p->stream, "<div class='scroll'><table class='shaded'>\n<tr><th>%s</th>", first);
    for (size_t m = 0; m < p->found->row_count; m++)
        fprintf(p->stream, "<th>%s</th>", p->found->rows[m].method);
    fputs("</tr>\n", p->stream);
}

/* A cell whose shade darkens with the fraction. */
static void write_shaded(const batch_page *p, double fraction) {
    if (isfinite(fraction))
        fprintf(p->stream, "<td style='--part:%.3f'>%.1f</td>", fraction, 100 * fraction);
    else
        fputs("<td></td>", p->stream);
}

/* Does the truth contain this class? All methods were scored against the same truth. */
static bool is_present(const batch_page *p, size_t label) {
    return p->found->row_count > 0 && isfinite(score_iou(&p->found->rows[0].counts, label));
}

static void write_class_name(const batch_page *p, size_t label) {
    const uint8_t *rgb = p->found->data->colours.rgb[label % PALETTE_COLOURS];
    fprintf(p->stream, "<i class='chip' style='background:#%02x%02x%02x'></i>", rgb[0], rgb[1],
            rgb[2]);
    html_write_escaped(p->stream, p->found->data->classes[label]);
}

static void write_absent_classes(const batch_page *p) {
    bool any = false;
    for (size_t i = 0; i < p->found->data->labels; i++) {
        if (is_present(p, i))
            continue;
        fputs(any ? ", " : "<p class='soft'>Not in the truth: ", p->stream);
        html_write_escaped(p->stream, p->found->data->classes[i]);
        any = true;
    }
    fputs(any ? ".</p>" : "", p->stream);
}

static void write_class_table(const batch_page *p) {
    fputs("<section><h2>IoU of each class, in percent</h2>", p->stream);
    begin_method_columns(p, "class");
    for (size_t i = 0; i < p->found->data->labels; i++) {
        if (!is_present(p, i))
            continue;
        fputs("<tr><td>", p->stream);
        write_class_name(p, i);
        fputs("</td>", p->stream);
        for (size_t m = 0; m < p->found->row_count; m++)
            write_shaded(p, score_iou(&p->found->rows[m].counts, i));
        fputs("</tr>\n", p->stream);
    }
    fputs("</table></div>", p->stream);
    write_absent_classes(p);
    fputs("</section>\n", p->stream);
}

static void write_failures(const batch_page *p) {
    fputs("<section><h2>Images that were skipped</h2><div class='scroll'>"
          "<table class='settings'>\n",
          p->stream);
    for (size_t i = 0; i < p->found->failure_count; i++) {
        fputs("<tr><td>", p->stream);
        html_write_escaped(p->stream, p->found->failures[i].image);
        fputs("</td><td>", p->stream);
        html_write_escaped(p->stream, p->found->failures[i].message);
        fputs("</td></tr>\n", p->stream);
    }
    fputs("</table></div></section>\n", p->stream);
}

/* ---- bands ---------------------------------------------------------------------------------- */

static svg_axis band_axis(const batch_page *p) {
    double low = INFINITY, high = -INFINITY;
    for (size_t m = 0; m < p->found->row_count; m++)
        for (size_t k = 1; k <= p->found->band_px; k++) {
            const double percent = 100 * score_band_accuracy(&p->found->rows[m].counts, k);
            low = fmin(low, percent); /* fmin and fmax skip NaN */
            high = fmax(high, percent);
        }
    if (!(high >= low))
        return svg_axis_up(0, 100);
    const double margin = 0.06 * (high - low) + 0.5;
    return svg_axis_up(low - margin, high + margin);
}

static void draw_band_line(const batch_page *p, size_t method, const svg_axis *across,
                           const svg_axis *up) {
    bool begun = false;
    for (size_t k = 1; k <= p->found->band_px; k++) {
        const double percent = 100 * score_band_accuracy(&p->found->rows[method].counts, k);
        if (!isfinite(percent))
            continue;
        if (!begun)
            fprintf(p->stream, "<path class='m%zu%s' d='M", method,
                    p->methods->of[method].cliques ? " with-cliques" : "");
        fprintf(p->stream, "%s%.1f %.1f", begun ? " L" : "", svg_place(across, (double)k),
                svg_place(up, percent));
        begun = true;
    }
    fputs(begun ? "'/>\n" : "", p->stream);
}

static void draw_bands(const batch_page *p) {
    const svg_axis across = svg_axis_across(0.8, (double)p->found->band_px + 0.2);
    const svg_axis up = band_axis(p);
    svg_begin(p->stream, "Accuracy in bands around true boundaries", false);
    svg_write_ticks(p->stream, &across, &up, "pixels from a boundary, at most");
    svg_begin_inside(p->stream, &across, &up);
    for (size_t m = 0; m < p->found->row_count; m++)
        draw_band_line(p, m, &across, &up);
    svg_end_inside(p->stream);
    svg_end(p->stream);
    fputs("<div class='legend'>", p->stream);
    for (size_t m = 0; m < p->found->row_count; m++) {
        fputs("<span>", p->stream);
        write_method(p, m);
        fputs(p->methods->of[m].cliques ? " (dotted)</span>" : "</span>", p->stream);
    }
    fputs("</div>", p->stream);
}

static void write_bands(const batch_page *p) {
    fputs("<section><h2>Accuracy near true boundaries, in percent</h2>\n<div class='columns'><div>",
          p->stream);
    begin_method_columns(p, "pixels");
    for (size_t k = 1; k <= p->found->band_px; k++) {
        fprintf(p->stream, "<tr><td>%zu</td>", k);
        for (size_t m = 0; m < p->found->row_count; m++)
            write_shaded(p, score_band_accuracy(&p->found->rows[m].counts, k));
        fputs("</tr>\n", p->stream);
    }
    fputs("</table></div></div><div>", p->stream);
    draw_bands(p);
    fputs("</div></div></section>\n", p->stream);
}

/* ---- the page ------------------------------------------------------------------------------- */

static void write_subtitle(const batch_page *p) {
    const dataset *data = p->found->data;
    const size_t skipped = p->found->failure_count;
    fprintf(p->stream, "<p class='soft'>%zu image%s", data->count, data->count == 1 ? "" : "s");
    if (p->found->split) {
        fputs(" of split ", p->stream);
        html_write_escaped(p->stream, p->found->split);
    }
    fprintf(p->stream, ", %zu labels; %zu method%s</p>\n", data->labels, p->found->row_count,
            p->found->row_count == 1 ? "" : "s");
    char verdict[VERDICT_BYTES];
    if (*summary_verdict(p->found, verdict))
        fprintf(p->stream, "<p class='verdict'>%s</p>\n", verdict);
    if (skipped > 0)
        fprintf(p->stream, "<p class='note'>%zu image%s skipped and count%s for no method.</p>\n",
                skipped, skipped == 1 ? " was" : "s were", skipped == 1 ? "s" : "");
}

static void write_scores(const batch_page *p) {
    if (!p->found->data->has_truth)
        return;
    write_class_table(p);
    if (p->found->band_px > 0)
        write_bands(p);
}

static void write_curves(const batch_page *p, const curve_sheet *curves) {
    if (curves->count == 0)
        return;
    fputs("<section><h2>Energy against time</h2><div class='scroll'>\n", p->stream);
    curves_write(p->stream, curves, false);
    fputs(
        "</div><p class='soft'>Energies before polishing, in a run of its own that looks at every "
        "iteration: of the best labelling so far or, with --rounded, of each iteration's. A dot "
        "is where a method ends.</p></section>\n",
        p->stream);
}

static bool write_pictures(const batch_page *p, const store *results, size_t pictures,
                           cli_problem *problem) {
    if (pictures == 0 || p->found->failure_count == p->found->data->count)
        return true;
    fputs("<section><h2>Pictures</h2><div class='scroll'>\n", p->stream);
    const bool done = picture_grid_write(p->stream, p->file, p->found, results, p->methods,
                                         pictures, false, problem);
    fputs(
        "</div><p class='soft'>The images that change most come first. Choose a picture to see it "
        "large.</p></section>\n",
        p->stream);
    return done;
}

bool batch_report_write(FILE *stream, const char *file, const summary *found, const store *results,
                        const method_list *methods, const curve_sheet *curves, size_t pictures,
                        cli_problem *problem) {
    const batch_page p = {stream, file, found, methods};
    html_begin_style(stream, summary_title(found));
    method_write_styles(stream, "report", methods);
    /* Many columns need space. */
    fputs("main { max-width: 1400px; }\n"
          ".report path.with-cliques { stroke-dasharray: 1 6; stroke-linecap: round; }\n",
          stream);
    html_begin_body(stream, summary_title(found));
    fputs("<div class='report'>\n", stream);
    write_subtitle(&p);
    write_main_table(&p);
    write_scores(&p);
    write_curves(&p, curves);
    if (!write_pictures(&p, results, pictures, problem))
        return false;
    if (found->failure_count > 0)
        write_failures(&p);
    if (found->settings)
        html_write_settings(stream, "Settings", (json_t *)found->settings);
    fputs("</div>\n", stream);
    html_end_page(stream, HTML_ZOOMS);
    return true;
}
