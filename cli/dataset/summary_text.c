/* The summary as CSV and Markdown: for programs with all digits and fractions from 0 to 1, for
 * people with two digits and percentages. */
#include "dataset/summary.h"

#include "printable.h"

#include <math.h>
#include <string.h>

/* ---- CSV ------------------------------------------------------------------------------------ */

/* Longer than any displayed name of a file or a class. */
#define SHOWN_BYTES 2048

/* A field, quoted if its text needs it. */
static void write_field(FILE *stream, const char *prefix, const char *name) {
    char shown[SHOWN_BYTES];
    const char *text = printable(name, shown, sizeof shown);
    const bool plain = !strpbrk(text, ",\"\r\n");
    fprintf(stream, "%s%s", plain ? "" : "\"", prefix);
    for (; *text; text++)
        fprintf(stream, *text == '"' ? "\"%c" : "%c", *text);
    fputs(plain ? "" : "\"", stream);
}

static void write_number(FILE *stream, double value) {
    fputc(',', stream);
    if (isfinite(value))
        fprintf(stream, "%.12g", value);
}

static void write_csv_head(FILE *stream, const summary *found) {
    fputs("method,images,energy,energy_rounded,lower_bound,relative_gap,proven_share,iterations,"
          "constant,"
          "changed_share",
          stream);
    if (found->data->has_truth) {
        fputs(",pixel_accuracy,mean_class_accuracy,mean_iou", stream);
        for (size_t k = 1; k <= found->band_px; k++)
            fprintf(stream, ",band_accuracy_%zu", k);
        for (size_t i = 0; i < found->data->labels; i++) {
            fputc(',', stream);
            write_field(stream, "iou_", found->data->classes[i]);
        }
    }
    fputc('\n', stream);
}

void summary_write_csv(FILE *stream, const summary *found) {
    write_csv_head(stream, found);
    for (size_t m = 0; m < found->row_count; m++) {
        const summary_row *row = &found->rows[m];
        const score *counts = &row->counts;
        fprintf(stream, "%s,%zu", row->method, row->images);
        write_number(stream, row->energy);
        write_number(stream, row->rounded);
        write_number(stream, row->lower_bound);
        write_number(stream, row->relative_gap);
        write_number(stream, row->proven_share);
        write_number(stream, row->iterations);
        fprintf(stream, ",%zu", row->constant);
        write_number(stream, row->changed_share);
        if (found->data->has_truth) {
            write_number(stream, score_accuracy(counts));
            write_number(stream, score_mean_class_accuracy(counts));
            write_number(stream, score_mean_iou(counts));
            for (size_t k = 1; k <= found->band_px; k++)
                write_number(stream, score_band_accuracy(counts, k));
            for (size_t i = 0; i < found->data->labels; i++)
                write_number(stream, score_iou(counts, i));
        }
        fputc('\n', stream);
    }
}

void summary_write_times(FILE *stream, const summary *found) {
    fputs("method,images,setup_s,solve_s,polish_s,total_s\n", stream);
    for (size_t m = 0; m < found->row_count; m++) {
        const summary_row *row = &found->rows[m];
        fprintf(stream, "%s,%zu", row->method, row->images);
        write_number(stream, row->setup_s);
        write_number(stream, row->solve_s);
        write_number(stream, row->polish_s);
        write_number(stream, row->setup_s + row->solve_s + row->polish_s);
        fputc('\n', stream);
    }
}

/* ---- Markdown ------------------------------------------------------------------------------- */

/* Text, with characters escaped that have a meaning in Markdown or end a cell. */
static void write_words(FILE *stream, const char *words) {
    char shown[SHOWN_BYTES];
    for (const char *text = printable(words, shown, sizeof shown); *text; text++)
        fprintf(stream, strchr("\\`*_[]<>|&#~$", *text) ? "\\%c" : "%c", *text);
}

static void write_column(FILE *stream, const char *name) {
    fputs(" ", stream);
    write_words(stream, name);
    fputs(" |", stream);
}

static void write_rule(FILE *stream, size_t numbers) {
    fputs("\n|---|", stream);
    for (size_t i = 0; i < numbers; i++)
        fputs("---:|", stream);
    fputc('\n', stream);
}

static void write_cell(FILE *stream, double value, int decimals) {
    if (isfinite(value))
        fprintf(stream, " %.*f |", decimals, value);
    else
        fputs(" |", stream);
}

static void write_percent(FILE *stream, double fraction) {
    write_cell(stream, 100 * fraction, 2);
}

static void write_energy(FILE *stream, double energy) {
    write_cell(stream, energy, fabs(energy) < 1000 ? 2 : 1);
}

static void write_main_table(FILE *stream, const summary *found) {
    const bool scored = found->data->has_truth;
    fputs("| method | images | energy | own rounding | lower bound | gap % | proven % | iterations "
          "| constant "
          "| changed % |",
          stream);
    if (scored)
        fputs(" accuracy % | class accuracy % | mean IoU % |", stream);
    write_rule(stream, scored ? 12 : 9);
    for (size_t m = 0; m < found->row_count; m++) {
        const summary_row *row = &found->rows[m];
        fprintf(stream, "| %s | %zu |", row->method, row->images);
        write_energy(stream, row->energy);
        write_energy(stream, row->rounded);
        write_energy(stream, row->lower_bound);
        write_percent(stream, row->relative_gap);
        write_percent(stream, row->proven_share);
        write_cell(stream, row->iterations, 1);
        fprintf(stream, " %zu |", row->constant);
        write_percent(stream, row->changed_share);
        if (scored) {
            write_percent(stream, score_accuracy(&row->counts));
            write_percent(stream, score_mean_class_accuracy(&row->counts));
            write_percent(stream, score_mean_iou(&row->counts));
        }
        fputc('\n', stream);
    }
    fputs("\nMeans over the images. Own rounding: the labelling of a method's last iteration, "
          "unpolished.\nConstant: images that got one label everywhere. Changed: pixels with "
          "another label than the\nunaries alone give them. Proven: pixels whose label every "
          "optimal labelling has.\n",
          stream);
    char left_out[LEFT_OUT_TEXT_BYTES];
    if (*summary_left_out(found, left_out))
        fprintf(stream, "\nNote: %s.\n", left_out);
}

static void write_method_columns(FILE *stream, const summary *found, const char *first) {
    fprintf(stream, "| %s |", first);
    for (size_t m = 0; m < found->row_count; m++)
        write_column(stream, found->rows[m].method);
    write_rule(stream, found->row_count);
}

static void write_class_table(FILE *stream, const summary *found) {
    fputs("\n## IoU of each class, in percent\n\n", stream);
    write_method_columns(stream, found, "class");
    for (size_t i = 0; i < found->data->labels; i++) {
        fputc('|', stream);
        write_column(stream, found->data->classes[i]);
        for (size_t m = 0; m < found->row_count; m++)
            write_percent(stream, score_iou(&found->rows[m].counts, i));
        fputc('\n', stream);
    }
}

static void write_band_table(FILE *stream, const summary *found) {
    fputs("\n## Accuracy within some pixels of true boundaries, in percent\n\n", stream);
    write_method_columns(stream, found, "pixels");
    for (size_t k = 1; k <= found->band_px; k++) {
        fprintf(stream, "| %zu |", k);
        for (size_t m = 0; m < found->row_count; m++)
            write_percent(stream, score_band_accuracy(&found->rows[m].counts, k));
        fputc('\n', stream);
    }
}

static void write_failures(FILE *stream, const summary *found) {
    fputs("\n## Images that were skipped\n\n", stream);
    for (size_t i = 0; i < found->failure_count; i++) {
        fputs("* ", stream);
        write_words(stream, found->failures[i].image);
        fputs(": ", stream);
        write_words(stream, found->failures[i].message);
        fputc('\n', stream);
    }
}

void summary_write_markdown(FILE *stream, const summary *found) {
    fputs("# ", stream);
    write_words(stream, summary_title(found));
    if (found->split) {
        fputs(", split ", stream);
        write_words(stream, found->split);
    }
    fprintf(stream, ": %zu image%s\n\n", found->data->count, found->data->count == 1 ? "" : "s");
    char verdict[VERDICT_BYTES];
    if (*summary_verdict(found, verdict))
        fprintf(stream, "%s\n\n", verdict);
    write_main_table(stream, found);
    if (found->data->has_truth) {
        write_class_table(stream, found);
        if (found->band_px > 0)
            write_band_table(stream, found);
    }
    if (found->failure_count > 0)
        write_failures(stream, found);
}
