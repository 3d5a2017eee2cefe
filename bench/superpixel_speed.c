/* The speed of superpixels: mean shift and SLIC with default settings, on a photograph-like picture
 * in two sizes, with one thread and with two. Times are the best of several. */
#define _DEFAULT_SOURCE
#include "measure.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 5

struct subject {
    dcrf_grid grid;
    dcrf_view image;
    dcrf_superpixel_settings settings;
    int32_t *regions;
    size_t count; /* of regions */
};

/* The best time of several runs; negative after an error, which has been printed. */
static double best_s(struct subject *s, size_t threads) {
    dcrf_workspace *workspace = NULL;
    dcrf_error error;
    double best = INFINITY;
    dcrf_status status = dcrf_workspace_new(&workspace, threads, &error);
    for (int i = 0; i < RUNS && status >= 0; i++) {
        const double start = clock_s(CLOCK_MONOTONIC);
        status = dcrf_superpixels(&s->grid, &s->image, &s->settings, workspace, s->regions,
                                  s->grid.size[0] * s->grid.size[1], &s->count, &error);
        best = fmin(best, clock_s(CLOCK_MONOTONIC) - start);
    }
    dcrf_workspace_free(&workspace);
    if (status >= 0)
        return best;
    fprintf(stderr, "dcrf-superpixel-speed: %s\n", error.message);
    return -1;
}

static bool print_rows(size_t width, size_t height) {
    static const struct {
        dcrf_superpixel_method method;
        const char *name;
    } methods[] = {{DCRF_SUPERPIXEL_MEAN_SHIFT, "mean shift"}, {DCRF_SUPERPIXEL_SLIC, "SLIC"}};
    struct subject s = {.grid = dcrf_grid_2d(width, height)};
    uint8_t *rgb = picture_draw(width, height);
    s.regions = malloc(width * height * sizeof *s.regions);
    bool done = rgb && s.regions;
    s.image = dcrf_view_interleaved(rgb, DCRF_U8, &s.grid, 3);
    for (size_t i = 0; done && i < sizeof methods / sizeof methods[0]; i++) {
        dcrf_superpixel_settings_defaults(&s.settings);
        s.settings.method = methods[i].method;
        const double one_s = best_s(&s, 1), two_s = one_s < 0 ? -1 : best_s(&s, 2);
        done = two_s >= 0;
        if (done)
            printf("| %zu x %zu | %s | %.1f | %.1f | %.2f | %zu |\n", width, height,
                   methods[i].name, one_s * 1e3, two_s * 1e3, one_s / two_s, s.count);
    }
    free(s.regions);
    free(rgb);
    return done;
}

int main(void) {
    printf("| pixels | method | 1 thread, ms | 2 threads, ms | faster | regions |\n"
           "|---|---|---|---|---|---|\n");
    return print_rows(320, 213) && print_rows(500, 375) ? 0 : 1;
}
