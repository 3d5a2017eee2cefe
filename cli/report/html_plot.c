#include "report/html_plot.h"

#include "report/svg_axis.h"

#include <math.h>

#define DOTS_THAT_ARE_MANY 50

/* ---- the ranges ----------------------------------------------------------------------------- */

/* Energies from a little below the last bound to a little above the first energy. A bound that
 * starts far below is clipped: what matters is where the two curves meet. */
static svg_axis energy_axis(const solution *found) {
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
    return svg_axis_up(low - margin, high + margin);
}

/* Of the trace, what begins with the iterations: the energies of first candidates are far above
 * those that follow. */
static solution after_candidates(const solution *found) {
    solution rest = *found;
    for (; rest.moment_count > 0 && rest.moments->stage == DCRF_STAGE_CANDIDATES;
         rest.moment_count--)
        rest.moments++;
    return rest;
}

/* There is nothing to show before the first moment: the axis begins a little before it. */
static svg_axis time_axis(const solution *found) {
    const double first_s = found->moments[0].time_s;
    const double last_s = found->moments[found->moment_count - 1].time_s;
    const double width_s = fmax(last_s - first_s, 1e-6);
    return svg_axis_across(fmax(first_s - 0.02 * width_s, 0), last_s + 0.02 * width_s);
}

/* ---- drawing -------------------------------------------------------------------------------- */

static void write_stairs(FILE *stream, const solution *found, const svg_axis *time,
                         const svg_axis *energy, const char *css_class, bool bound) {
    svg_stairs stairs = {stream, time, energy, css_class, false, 0};
    for (size_t k = 0; k < found->moment_count; k++) {
        const dcrf_moment *moment = &found->moments[k];
        svg_stairs_add(&stairs, moment->time_s, bound ? moment->lower_bound : moment->best_energy);
    }
    svg_stairs_end(&stairs);
}

static void write_dots(FILE *stream, const solution *found, const svg_axis *time,
                       const svg_axis *energy) {
    for (size_t k = 0; k < found->moment_count; k++) {
        const dcrf_moment *moment = &found->moments[k];
        if (isfinite(moment->energy) && moment->stage <= DCRF_STAGE_SOLVE)
            fprintf(stream,
                    "<circle class='dot' r='%.1f' cx='%.1f' cy='%.1f'><title>iteration %zu: %.6g"
                    "</title></circle>\n",
                    found->moment_count > DOTS_THAT_ARE_MANY ? 1.5 : 3.0,
                    svg_place(time, moment->time_s), svg_place(energy, moment->energy),
                    moment->iteration, moment->energy);
    }
}

void html_plot_write(FILE *stream, const solution *whole) {
    const solution rest = after_candidates(whole), *found = &rest;
    if (found->moment_count == 0)
        return;
    const svg_axis time = time_axis(found), energy = energy_axis(found);
    svg_begin(stream, "Energy and lower bound against time", false);
    svg_write_ticks(stream, &time, &energy, "seconds");
    svg_begin_inside(stream, &time, &energy);
    write_stairs(stream, found, &time, &energy, "bound", true);
    write_stairs(stream, found, &time, &energy, "energy", false);
    write_dots(stream, found, &time, &energy);
    svg_end_inside(stream);
    fprintf(stream,
            "<circle class='final' r='5' cx='%.1f' cy='%.1f'><title>after polishing: %.9g"
            "</title></circle>\n",
            time.to_px, svg_place(&energy, found->info.energy.total), found->info.energy.total);
    svg_end(stream);
}
