#include "dataset/search_plot.h"

#include "report/svg_axis.h"

#include <math.h>
#include <stdlib.h>

#define PERCENT 100.0
#define DOTS_THAT_ARE_MANY 150
/* Scores far below the start's belong to points that override the unaries: how bad they are
 * matters less than what happens at the top. At most this share of the height is below the
 * start. */
#define PART_BELOW_START 0.6
#define LEAST_HEIGHT_PERCENT 0.5
#define CURVE_POINTS_MAX 16

static double percent(const search_log *log, size_t k) {
    return PERCENT * search_score(log, &log->entries[k]);
}

static svg_axis score_axis(const search_log *log, double unary) {
    const double start = percent(log, 0);
    double low = fmin(start, unary), high = fmax(start, unary); /* these skip NaN */
    for (size_t k = 1; k < log->count; k++) {
        low = fmin(low, percent(log, k));
        high = fmax(high, percent(log, k));
    }
    const double above = fmax(high - start, LEAST_HEIGHT_PERCENT);
    const double below = fmin(start - low, above * PART_BELOW_START / (1 - PART_BELOW_START));
    const double margin = 0.08 * (above + below);
    return svg_axis_up(start - below - margin, start + above + margin);
}

/* Scores below the axis are small marks at its lower end. */
static void write_dots(FILE *stream, const search_log *log, const svg_axis *number,
                       const svg_axis *score) {
    const double radius_px = log->count > DOTS_THAT_ARE_MANY ? 2 : 3.5;
    for (size_t k = 0; k < log->count; k++) {
        const double value = percent(log, k);
        const bool below = value < score->from;
        fprintf(stream,
                "<circle class='%s%s' r='%.1f' cx='%.1f' cy='%.1f'><title>evaluation %zu, %s: "
                "%.3f %%</title></circle>\n",
                search_phase_name(log->entries[k].phase), below ? " below" : "",
                below ? radius_px / 2 : radius_px, svg_place(number, (double)(k + 1)),
                svg_place(score, fmax(value, score->from)), k + 1,
                search_phase_name(log->entries[k].phase), value);
    }
}

static void write_best(FILE *stream, const search_log *log, const svg_axis *number,
                       const svg_axis *score) {
    svg_stairs stairs = {stream, number, score, "energy", false, 0};
    double best = -HUGE_VAL;
    for (size_t k = 0; k < log->count; k++)
        if (percent(log, k) > best)
            svg_stairs_add(&stairs, (double)(k + 1), best = percent(log, k));
    svg_stairs_end(&stairs);
}

static void write_key(FILE *stream, const svg_axis *number) {
    static const char *const keys[][2] = {{"start", "the start"},
                                          {"sweep", "the strength alone"},
                                          {"global", "over the whole box"},
                                          {"local", "around the best"}};
    const double width_px = (number->to_px - number->from_px) / 5;
    double x_px = number->from_px + 10;
    fprintf(stream,
            "<path class='energy' d='M%.0f 16 h22'/><text x='%.0f' y='20'>best so far</text>\n",
            x_px - 4, x_px + 24);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        x_px += width_px;
        fprintf(stream,
                "<circle class='%s' r='3.5' cx='%.0f' cy='16'/><text x='%.0f' y='20'>%s</text>\n",
                keys[i][0], x_px, x_px + 9, keys[i][1]);
    }
}

/* A horizontal line with its name at the right end. */
static void write_level(FILE *stream, const svg_axis *number, const svg_axis *score, double value,
                        const char *name) {
    const double y_px = svg_place(score, value);
    fprintf(stream,
            "<path class='level' d='M%.1f %.1f H%.1f'/><text x='%.1f' y='%.1f' "
            "text-anchor='end'>%s</text>\n",
            number->from_px, y_px, number->to_px, number->to_px - 4, y_px - 4, name);
}

void search_plot_write(FILE *stream, const search_log *log, double unary_score,
                       const char *subject) {
    if (log->count == 0)
        return;
    svg_axis number = svg_axis_across(0, (double)log->count + 1);
    svg_axis score = score_axis(log, PERCENT * unary_score);
    score.to_px += 18; /* room for the legend */
    svg_begin(stream, "Score of every evaluation of the search, and the best so far", true);
    svg_write_ticks(stream, &number, &score, subject);
    write_key(stream, &number);
    write_level(stream, &number, &score, percent(log, 0), "start");
    if (PERCENT * unary_score >= score.from && PERCENT * unary_score <= score.to)
        write_level(stream, &number, &score, PERCENT * unary_score, "unaries alone");
    write_dots(stream, log, &number, &score);
    write_best(stream, log, &number, &score);
    svg_end(stream);
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static bool is_on_curve(const search_entry *entry) {
    return entry->phase == SEARCH_SWEEP || entry->phase == SEARCH_START;
}

static int compare_by_first(const void *a, const void *b) {
    const search_entry *one = *(const search_entry *const *)a;
    const search_entry *other = *(const search_entry *const *)b;
    return (one->values[0] > other->values[0]) - (one->values[0] < other->values[0]);
}

/* The entries of the curve in axis order. Returns their number. */
static size_t sort_curve(const search_log *log, const search_entry **curve) {
    size_t count = 0;
    for (size_t k = 0; k < log->count && count < CURVE_POINTS_MAX; k++)
        if (is_on_curve(&log->entries[k]))
            curve[count++] = &log->entries[k];
    qsort(curve, count, sizeof *curve, compare_by_first);
    return count;
}

bool search_has_curve(const search_log *log) {
    for (size_t k = 0; k < log->count; k++)
        if (log->entries[k].phase == SEARCH_SWEEP)
            return true;
    return false;
}

void search_curve_write(FILE *stream, const search_log *log, double unary_score,
                        const char *subject) {
    const search_entry *curve[CURVE_POINTS_MAX];
    const size_t count = sort_curve(log, curve);
    const search_axis *axis = &log->space->axes[0];
    double low = PERCENT * unary_score, high = low;
    for (size_t k = 0; k < count; k++) {
        low = fmin(low, PERCENT * search_score(log, curve[k]));
        high = fmax(high, PERCENT * search_score(log, curve[k]));
    }
    const double margin = fmax(0.08 * (high - low), LEAST_HEIGHT_PERCENT / 2);
    svg_axis across = svg_axis_across(axis->low, axis->high);
    across.logarithmic = axis->logarithmic;
    const svg_axis up = svg_axis_up(low - margin, high + margin);
    svg_begin(stream, "Score against strength, all else as at the start", true);
    svg_write_ticks(stream, &across, &up, subject);
    write_level(stream, &across, &up, PERCENT * unary_score, "unaries alone");
    fputs("<path class='energy' d='", stream);
    for (size_t k = 0; k < count; k++)
        fprintf(stream, "%c%.1f %.1f", k == 0 ? 'M' : 'L', svg_place(&across, curve[k]->values[0]),
                svg_place(&up, PERCENT * search_score(log, curve[k])));
    fputs("'/>\n", stream);
    for (size_t k = 0; k < count; k++)
        fprintf(stream,
                "<circle class='%s' r='3.5' cx='%.1f' cy='%.1f'><title>%s %g: %.3f "
                "%%</title></circle>\n",
                search_phase_name(curve[k]->phase), svg_place(&across, curve[k]->values[0]),
                svg_place(&up, PERCENT * search_score(log, curve[k])), axis->name,
                curve[k]->values[0], PERCENT * search_score(log, curve[k]));
    svg_end(stream);
}
