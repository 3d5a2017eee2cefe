#include "html_plot.h"

#include <math.h>

#define WIDTH_PX 720
#define HEIGHT_PX 320
#define LEFT_PX 84
#define RIGHT_PX 16
#define TOP_PX 14
#define BOTTOM_PX 44
#define TICKS_WANTED 5
#define DOTS_THAT_ARE_MANY 50

typedef struct axis {
    double from;
    double to;
    double from_px;
    double to_px;
} axis;

static double place(const axis *a, double value) {
    /* A bound can begin at -1e300: far outside is far enough. */
    const double part = fmin(fmax((value - a->from) / (a->to - a->from), -9), 9);
    return a->from_px + part * (a->to_px - a->from_px);
}

/* The round number (1, 2 or 5 times a power of ten) that divides a range into about as many parts
 * as wanted. */
static double tick_step(const axis *a) {
    const double rough = (a->to - a->from) / TICKS_WANTED;
    const double power = pow(10, floor(log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

static int decimals_of(double step) {
    const double digits = ceil(-log10(step) - 1e-9);
    return digits > 0 ? (int)digits : 0;
}

/* ---- the ranges ----------------------------------------------------------------------------- */

/* Energies from a little below the last bound to a little above the first energy. A bound that
 * begins far below is cut off: what matters is where the two curves meet. */
static axis energy_axis(const solution *found) {
    const dcrf_solver_info *info = &found->info;
    double high = info->energy.total, low = info->energy.total;
    for (size_t k = 0; k < found->moment_count; k++) {
        high = fmax(high, found->moments[k].best_energy); /* fmax and fmin skip NaN */
        low = fmin(low, found->moments[k].best_energy);
    }
    double first_bound = low, last_bound = low;
    for (size_t k = found->moment_count; k-- > 0;)
        first_bound = fmin(first_bound, found->moments[k].lower_bound);
    last_bound = fmin(last_bound, info->lower_bound);
    const double middle_height = fmax(high - last_bound, 1e-6 * fabs(high) + 1e-12);
    low = fmax(first_bound, last_bound - middle_height);
    const double margin = 0.06 * (high - low) + 1e-9 * fabs(high) + 1e-12;
    return (axis){low - margin, high + margin, HEIGHT_PX - BOTTOM_PX, TOP_PX};
}

static axis time_axis(const solution *found) {
    const double last_s = found->moments[found->moment_count - 1].time_s;
    return (axis){0, fmax(last_s, 1e-6) * 1.02, LEFT_PX, WIDTH_PX - RIGHT_PX};
}

/* ---- drawing -------------------------------------------------------------------------------- */

static void write_ticks(FILE *stream, const axis *time, const axis *energy) {
    const double energy_step = tick_step(energy), time_step = tick_step(time);
    for (double v = ceil(energy->from / energy_step) * energy_step; v <= energy->to;
         v += energy_step)
        fprintf(stream,
                "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>"
                "<text x='%d' y='%.1f' text-anchor='end'>%.*f</text>\n",
                LEFT_PX, WIDTH_PX - RIGHT_PX, place(energy, v), place(energy, v), LEFT_PX - 8,
                place(energy, v) + 4, decimals_of(energy_step), v);
    for (double v = 0; v <= time->to; v += time_step)
        fprintf(stream, "<text x='%.1f' y='%d' text-anchor='middle'>%.*f</text>\n", place(time, v),
                HEIGHT_PX - BOTTOM_PX + 18, decimals_of(time_step), v);
    fprintf(stream, "<text x='%d' y='%d' text-anchor='middle'>seconds</text>\n",
            (LEFT_PX + WIDTH_PX - RIGHT_PX) / 2, HEIGHT_PX - 6);
}

/* A staircase: a value holds until the next one is known. */
static void write_stairs(FILE *stream, const solution *found, const axis *time, const axis *energy,
                         const char *name, bool bound) {
    bool begun = false;
    double y = 0;
    for (size_t k = 0; k < found->moment_count; k++) {
        const dcrf_moment *moment = &found->moments[k];
        const double value = bound ? moment->lower_bound : moment->best_energy;
        if (!isfinite(value))
            continue;
        if (!begun)
            fprintf(stream, "<path class='%s' d='M", name);
        else
            fprintf(stream, " L%.1f %.1f L", place(time, moment->time_s), y);
        begun = true;
        y = place(energy, value);
        fprintf(stream, "%.1f %.1f", place(time, moment->time_s), y);
    }
    if (begun)
        fprintf(stream, " L%.1f %.1f'/>\n", time->to_px, y);
}

static void write_dots(FILE *stream, const solution *found, const axis *time, const axis *energy) {
    for (size_t k = 0; k < found->moment_count; k++) {
        const dcrf_moment *moment = &found->moments[k];
        if (isfinite(moment->energy))
            fprintf(stream,
                    "<circle class='dot' r='%.1f' cx='%.1f' cy='%.1f'><title>iteration %zu: %.6g"
                    "</title></circle>\n",
                    found->moment_count > DOTS_THAT_ARE_MANY ? 1.5 : 3.0,
                    place(time, moment->time_s), place(energy, moment->energy), moment->iteration,
                    moment->energy);
    }
}

void html_plot_write(FILE *stream, const solution *found) {
    if (found->moment_count == 0)
        return;
    const axis time = time_axis(found), energy = energy_axis(found);
    fprintf(stream,
            "<svg viewBox='0 0 %d %d' role='img' aria-label='Energy and lower bound against "
            "time'>\n",
            WIDTH_PX, HEIGHT_PX);
    write_ticks(stream, &time, &energy);
    fprintf(stream,
            "<clipPath id='inside'><rect x='%d' y='%d' width='%d' height='%d'/></clipPath>"
            "<g clip-path='url(#inside)'>\n",
            LEFT_PX, TOP_PX, WIDTH_PX - RIGHT_PX - LEFT_PX, HEIGHT_PX - BOTTOM_PX - TOP_PX);
    write_stairs(stream, found, &time, &energy, "bound", true);
    write_stairs(stream, found, &time, &energy, "energy", false);
    write_dots(stream, found, &time, &energy);
    fprintf(stream,
            "</g><circle class='final' r='5' cx='%.1f' cy='%.1f'><title>after polishing: %.9g"
            "</title></circle>\n</svg>\n",
            time.to_px, place(&energy, found->info.energy.total), found->info.energy.total);
}
