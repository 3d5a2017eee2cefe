/* One iteration of a trace as SVG: time across, threads down.
 *
 * An iteration is from one loop to the next of the kind that takes longest altogether; the fastest
 * one of the trace is drawn, the one that other programs disturbed least. */
#define _DEFAULT_SOURCE
#include "measure.h"
#include "symbol.h"
#include "trace.h"

#include <math.h>
#include <stdbool.h>

#define WIDTH 960.0
#define LEFT 78.0
#define TOP 40.0
#define ROW 34.0
#define LINE 19.0 /* of the legend */
#define LEAST_GAP 0.4
#define MOST_KINDS 10

static const char *const colours[MOST_KINDS] = {"#3b6fb6", "#d98c3f", "#5a9e5d", "#b65a86",
                                                "#8a7bc8", "#c9b037", "#4ea6a6", "#a0522d",
                                                "#7f7f7f", "#bcbd22"};

/* The loops of an iteration are the spans first .. last - 1. */
struct iteration {
    const struct trace_span *spans;
    size_t first, last;
    double begin_s, end_s;
    dcrf_work kinds[MOST_KINDS]; /* in order of appearance; the last stands for all others */
    size_t kind_count;
};

static double total_s(const struct trace_span *spans, size_t count, dcrf_work work) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += spans[i].work == work ? spans[i].loop_cpu_s : 0;
    return sum;
}

static dcrf_work longest_work(const struct trace_span *spans, size_t count) {
    dcrf_work longest = NULL;
    double most = 0;
    for (size_t i = 0; i < count; i++)
        if (spans[i].work && total_s(spans, count, spans[i].work) > most) {
            longest = spans[i].work;
            most = total_s(spans, count, longest);
        }
    return longest;
}

static bool find_iteration(struct iteration *it) {
    size_t count, before = SIZE_MAX;
    *it = (struct iteration){.spans = trace_spans(&count)};
    const dcrf_work work = longest_work(it->spans, count);
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (it->spans[i].work != work)
            continue;
        if (before != SIZE_MAX && it->spans[i].begin_s - it->spans[before].begin_s < least) {
            least = it->spans[i].begin_s - it->spans[before].begin_s;
            it->first = before;
            it->last = i;
        }
        before = i;
    }
    it->begin_s = it->spans[it->first].begin_s;
    it->end_s = it->begin_s + least;
    return it->last > 0;
}

static size_t kind_of(struct iteration *it, dcrf_work work) {
    size_t kind = 0;
    while (kind < it->kind_count && it->kinds[kind] != work)
        kind++;
    if (kind == it->kind_count && kind < MOST_KINDS)
        it->kinds[it->kind_count++] = work;
    return kind < MOST_KINDS ? kind : MOST_KINDS - 1;
}

/* What a thread does without a gap that could be seen. */
struct bar {
    double begin_s, end_s;
};

/* Returns its length. */
static double draw_bar(FILE *file, struct bar bar, size_t worker, const char *colour,
                       const struct iteration *it) {
    const double scale = WIDTH / (it->end_s - it->begin_s);
    if (bar.end_s > bar.begin_s)
        fprintf(file, "<rect x='%.1f' y='%g' width='%.1f' height='%g' fill='%s'/>\n",
                LEFT + scale * (bar.begin_s - it->begin_s), TOP + ROW * (double)worker,
                fmax(0.3, scale * (bar.end_s - bar.begin_s)), ROW - 6, colour);
    return bar.end_s - bar.begin_s;
}

/* Draw the chunks of a loop. Returns the time for which its threads worked. */
static double draw_loop(FILE *file, size_t loop, const char *colour, const struct iteration *it) {
    struct bar bars[TRACE_MOST_THREADS] = {{0}};
    size_t count;
    double busy_s = 0;
    const double gap_s = LEAST_GAP * (it->end_s - it->begin_s) / WIDTH;
    const struct trace_event *events = trace_events(&count);
    for (size_t i = 0; i < count; i++) {
        if (events[i].loop != loop)
            continue;
        struct bar *bar = &bars[events[i].worker];
        if (events[i].begin - bar->end_s > gap_s) {
            busy_s += draw_bar(file, *bar, events[i].worker, colour, it);
            bar->begin_s = events[i].begin;
        }
        bar->end_s = events[i].end;
    }
    for (size_t t = 0; t < TRACE_MOST_THREADS; t++)
        busy_s += draw_bar(file, bars[t], t, colour, it);
    return busy_s;
}

/* What all loops of a kind take, for the legend. */
struct kind {
    size_t loops, chunks;
    double loop_s, busy_s;
};

static void draw_legend(FILE *file, const struct iteration *it, const struct kind *kinds,
                        size_t threads) {
    double y = TOP + ROW * (double)threads + 34;
    for (size_t k = 0; k < it->kind_count; k++, y += LINE)
        fprintf(file,
                "<rect x='%g' y='%g' width='12' height='12' fill='%s'/>\n<text x='%g' y='%g'>%s: "
                "%zu loop%s, %zu chunks, %.0f µs, of which threads wait %.0f %%</text>\n",
                LEFT, y - 11, colours[k], LEFT + 20, y, symbol_name(it->kinds[k]), kinds[k].loops,
                kinds[k].loops == 1 ? "" : "s", kinds[k].chunks, 1e6 * kinds[k].loop_s,
                100 * fmax(0, 1 - kinds[k].busy_s / (kinds[k].loop_s * (double)threads)));
}

static void draw_axis(FILE *file, const struct iteration *it, size_t threads) {
    const double all_s = it->end_s - it->begin_s, y = TOP + ROW * (double)threads;
    for (size_t t = 0; t < threads; t++)
        fprintf(file, "<text x='6' y='%g'>thread %zu</text>\n", TOP + 18 + ROW * (double)t, t + 1);
    for (size_t i = 0; i <= 4; i++)
        fprintf(file, "<text x='%g' y='%g' text-anchor='%s'>%.0f µs</text>\n",
                LEFT + WIDTH * (double)i / 4, y + 10,
                i == 0   ? "start"
                : i == 4 ? "end"
                         : "middle",
                1e6 * all_s * (double)i / 4);
}

bool trace_draw(const char *path, const char *title, size_t threads) {
    struct iteration it;
    if (!find_iteration(&it))
        return false;
    FILE *file = require(fopen(path, "w"));
    struct kind kinds[MOST_KINDS] = {{0}};
    for (size_t i = it.first; i < it.last; i++)
        kind_of(&it, it.spans[i].work);
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' "
            "font-family='sans-serif' font-size='13'>\n<rect width='100%%' height='100%%' "
            "fill='white'/>\n<text x='%g' y='20'>%s. White: threads wait, or only the first one "
            "works.</text>\n",
            LEFT + WIDTH + 20, TOP + ROW * (double)threads + 40 + LINE * (double)it.kind_count,
            LEFT, title);
    for (size_t i = it.first; i < it.last; i++) {
        struct kind *kind = &kinds[kind_of(&it, it.spans[i].work)];
        kind->loops++;
        kind->chunks += it.spans[i].chunks;
        kind->loop_s += it.spans[i].loop_s;
        kind->busy_s += draw_loop(file, it.spans[i].number, colours[kind - kinds], &it);
    }
    draw_axis(file, &it, threads);
    draw_legend(file, &it, kinds, threads);
    fprintf(file, "</svg>\n");
    fclose(file);
    return true;
}
