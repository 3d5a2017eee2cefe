/* The compatible mean field (used by the drop-in for pydensecrf) on a device, compared with the
 * CPU.
 *
 *   dcrf-cuda-densecrf [--device cuda:0] [PHOTO.png ...]
 *
 * For each photograph (or a drawn picture of 320 x 213 and one of 500 x 375), 21 labels, two
 * published settings, 10 updates. Either all labels are alive, or only four: the others have faded
 * everywhere, and the CPU skips them. Times are medians of the wall time of calls on host arrays.
 * 'whole' is what a program does per image: the object, energies, both kernels, inference. The CPU
 * column is the same call in the same run, with all cores. The line below each table says how much
 * the results differ, and whether all calls gave the same bytes. */
#include "core/timer.h"
#include "measure.h"
#include "photograph.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS 21
#define ALIVE 4
#define UPDATES 10
#define MOST_REPEATS 31

static const char *device_name = "cuda";

static const struct setting {
    double spatial, bilateral, colours;
    float spatial_weight, bilateral_weight;
} settings[] = {{3, 80, 13, 3, 10}, {1, 67, 3, 3, 4}};

struct problem {
    dcrf_grid grid;
    size_t variables;
    const uint8_t *colours;
    const float *unary;
    const struct setting *setting;
};

/* The parts of a call. */
enum part { ENERGIES, KERNELS, INFERENCE, WHOLE, STEP, PARTS };
static const char *const part_names[PARTS] = {"energies", "both kernels", "inference", "**whole**",
                                              "one more step, from and to the host"};

static void call(const struct problem *p, dcrf_workspace *workspace, float *q,
                 double times_ms[PARTS]) {
    const dcrf_view unary = dcrf_view_planar(p->unary, DCRF_F32, &p->grid, LABELS);
    const dcrf_view image = dcrf_view_interleaved(p->colours, DCRF_U8, &p->grid, 3);
    const dcrf_kernel spatial = dcrf_kernel_spatial(p->setting->spatial, 1);
    const dcrf_kernel bilateral =
        dcrf_kernel_bilateral(p->setting->bilateral, p->setting->colours, image, 1);
    dcrf_densecrf *crf;
    dcrf_error error;
    double at_s[PARTS + 1];
    at_s[ENERGIES] = dcrf_time_s();
    must(dcrf_densecrf_new(&crf, &p->grid, LABELS, &error), &error);
    must(dcrf_densecrf_set_device(crf, workspace, &error), &error);
    must(dcrf_densecrf_set_unary(crf, &unary, &error), &error);
    at_s[KERNELS] = dcrf_time_s();
    must(dcrf_densecrf_add_kernel(crf, workspace, &spatial, DCRF_DENSECRF_SYMMETRIC,
                                  DCRF_COMPATIBILITY_POTTS, &p->setting->spatial_weight, &error),
         &error);
    must(dcrf_densecrf_add_kernel(crf, workspace, &bilateral, DCRF_DENSECRF_SYMMETRIC,
                                  DCRF_COMPATIBILITY_POTTS, &p->setting->bilateral_weight, &error),
         &error);
    at_s[INFERENCE] = dcrf_time_s();
    must(dcrf_densecrf_infer(crf, workspace, UPDATES, q, p->variables * LABELS, NULL, NULL, &error),
         &error);
    at_s[WHOLE] = dcrf_time_s();
    float *once_more = malloc(p->variables * LABELS * sizeof *once_more);
    if (!once_more)
        exit(1);
    memcpy(once_more, q, p->variables * LABELS * sizeof *q);
    at_s[STEP] = dcrf_time_s();
    must(dcrf_densecrf_step(crf, workspace, once_more, p->variables * LABELS, &error), &error);
    at_s[PARTS] = dcrf_time_s();
    free(once_more);
    dcrf_densecrf_free(&crf);
    for (int part = ENERGIES; part < WHOLE; part++)
        times_ms[part] = 1e3 * (at_s[part + 1] - at_s[part]);
    times_ms[WHOLE] = 1e3 * (at_s[WHOLE] - at_s[ENERGIES]);
    times_ms[STEP] = 1e3 * (at_s[PARTS] - at_s[STEP]);
}

/* The median of each part; q is from the last call. Returns whether all calls gave the same
 * bytes. */
static bool measure(const struct problem *p, dcrf_workspace *workspace, size_t repeats, float *q,
                    double medians[PARTS]) {
    const size_t bytes = p->variables * LABELS * sizeof *q;
    double times[PARTS][MOST_REPEATS], one[PARTS];
    float *first = malloc(bytes);
    bool is_same = true;
    if (!first)
        exit(1);
    call(p, workspace, first, one); /* includes one-time initialization */
    for (size_t k = 0; k < repeats; k++) {
        call(p, workspace, q, one);
        is_same = is_same && memcmp(q, first, bytes) == 0;
        for (int part = 0; part < PARTS; part++)
            times[part][k] = one[part];
    }
    for (int part = 0; part < PARTS; part++)
        medians[part] = median(times[part], repeats);
    free(first);
    return is_same;
}

static void say_difference(const float *there, const float *here, size_t n, bool is_same) {
    double largest = 0;
    size_t other_labels = 0;
    for (size_t a = 0; a < n; a++) {
        size_t best[2] = {0, 0};
        for (size_t i = 0; i < LABELS; i++) {
            largest = fmax(largest, fabs((double)there[i * n + a] - (double)here[i * n + a]));
            best[0] = there[i * n + a] > there[best[0] * n + a] ? i : best[0];
            best[1] = here[i * n + a] > here[best[1] * n + a] ? i : best[1];
        }
        other_labels += best[0] != best[1];
    }
    printf("\nlargest |dQ| %.1e, %zu of %zu labels differ; %s on every run\n", largest,
           other_labels, n, is_same ? "the same bytes" : "NOT the same bytes");
}

static void measure_setting(const struct problem *p, const char *name, bool all_alive,
                            dcrf_workspace *const workspaces[2]) {
    double medians[2][PARTS];
    float *q[2];
    bool is_same = true;
    for (size_t side = 0; side < 2; side++) {
        q[side] = malloc(p->variables * LABELS * sizeof *q[side]);
        if (!q[side])
            exit(1);
        is_same = measure(p, workspaces[side], side == 0 ? MOST_REPEATS : MOST_REPEATS / 6, q[side],
                          medians[side]) &&
                  is_same;
    }
    printf("\n%s, %zu x %zu, %d labels, %s; spatial %g, bilateral %g/%g; CPU with %zu threads\n\n"
           "| part | %s, ms | CPU, ms | ratio |\n|---|---|---|---|\n",
           name, p->grid.size[0], p->grid.size[1], LABELS,
           all_alive ? "all of them alive" : "four of them alive", p->setting->spatial,
           p->setting->bilateral, p->setting->colours, dcrf_workspace_threads(workspaces[1]),
           dcrf_workspace_device(workspaces[0]));
    for (int part = 0; part < PARTS; part++)
        printf("| %s | %.2f | %.2f | %.1f |\n", part_names[part], medians[0][part],
               medians[1][part], medians[1][part] / medians[0][part]);
    say_difference(q[0], q[1], p->variables, is_same);
    fflush(stdout);
    free(q[0]);
    free(q[1]);
}

static void measure_picture(const uint8_t *colours, size_t width, size_t height, const char *name) {
    const size_t n = width * height, stride = (LABELS + 7) / 8 * 8;
    struct problem p = {.grid = dcrf_grid_2d(width, height), .variables = n, .colours = colours};
    float *y = picture_labels(width, height, LABELS, stride);
    float *unary = malloc(n * LABELS * sizeof *unary);
    dcrf_workspace *workspaces[2];
    dcrf_error error;
    if (!y || !unary)
        exit(1);
    for (size_t side = 0; side < 2; side++)
        must(dcrf_workspace_new(&workspaces[side], 0, &error), &error);
    must(dcrf_workspace_set_device(workspaces[0], device_name, &error), &error);
    p.unary = unary;
    for (int all_alive = 1; all_alive >= 0; all_alive--) {
        for (size_t a = 0; a < n; a++)
            for (size_t i = 0; i < LABELS; i++)
                unary[i * n + a] =
                    all_alive || i < ALIVE ? -logf(0.7f * y[a * stride + i] + 0.3f / LABELS) : 20;
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
            p.setting = &settings[k];
            measure_setting(&p, name, all_alive, workspaces);
        }
    }
    for (size_t side = 0; side < 2; side++)
        dcrf_workspace_free(&workspaces[side]);
    free(unary);
    free(y);
}

static void measure_photograph(const char *path) {
    size_t width, height;
    uint8_t *rgb = photograph_read(path, &width, &height);
    if (!rgb)
        exit(1);
    measure_picture(rgb, width, height, path);
    free(rgb);
}

int main(int count, char **arguments) {
    int first = 1;
    if (count > 2 && strcmp(arguments[1], "--device") == 0) {
        device_name = arguments[2];
        first = 3;
    }
    for (int i = first; i < count; i++)
        measure_photograph(arguments[i]);
    const size_t sizes[2][2] = {{320, 213}, {500, 375}};
    for (size_t k = 0; k < 2 && first == count; k++) {
        uint8_t *picture = picture_draw(sizes[k][0], sizes[k][1]);
        if (!picture)
            return 1;
        measure_picture(picture, sizes[k][0], sizes[k][1], "a drawn picture");
        free(picture);
    }
    return 0;
}
