/* Mean field on arrays on a device: the time per image, and the throughput with several in flight,
 * compared with the CPU.
 *
 *   dcrf-cuda-many [--device cuda:0] [--images 1000] [PHOTO.png ...]
 *   dcrf-cuda-many [--device cuda:0] --together
 *
 * For each photograph (or a drawn picture of 320 x 213 and one of 500 x 375): 21 labels, all alive,
 * as planar logits, and interleaved colours as bytes; spatial 3 and bilateral 80/13, 10 updates;
 * results are marginals and labels. Times are wall times of whole calls, including plans. The
 * arrays are on the device, or in pageable host memory. Images per second are for workers that each
 * have a single-threaded workspace, cycling through DISTINCT sets of arrays. `solver` is what
 * solve_many does per image: model, plan, solver with its candidates and energies, marginals.
 *
 * `--together`: throughput for small images, one by one and several per call. */
#include "core/timer.h"
#include "measure.h"
#include "photograph.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPDATES 10
#define DISTINCT 16
#define REPEATS 51
#define WARMING 4
#define MOST_WORKERS 64

static const char *device_name = "cuda";

static void *room(size_t count, size_t bytes) {
    return require(calloc(count, bytes));
}

/* ---- the arrays ----------------------------------------------------------------------------- */

enum place { HOST, DEVICE, PLACES };

/* One image: its arrays on the host, and the same on the device. */
struct image {
    float *logits[PLACES];
    uint8_t *colours[PLACES];
    dcrf_device_memory *memory[2];
};

struct subject {
    dcrf_grid grid;
    size_t variables, labels;
    struct image images[DISTINCT];
};

static void *put(dcrf_workspace *workspace, dcrf_device_memory **memory, const void *from,
                 size_t bytes) {
    dcrf_error error;
    must(dcrf_device_memory_new(memory, workspace, bytes, &error), &error);
    void *data = dcrf_device_memory_data(*memory);
    must(dcrf_device_copy(workspace, data, from, bytes, &error), &error);
    return data;
}

/* Logits that are mostly right, with different labels in each image. */
static void fill_image(struct subject *s, struct image *image, const uint8_t *colours,
                       const float *y, size_t shift, dcrf_workspace *workspace) {
    const size_t n = s->variables, labels = s->labels;
    image->logits[HOST] = room(n * labels, sizeof(float));
    image->colours[HOST] = room(n * 3, 1);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++)
            image->logits[HOST][(i + shift) % labels * n + a] =
                logf(0.7f * y[a * labels + i] + 0.3f / (float)labels);
    memcpy(image->colours[HOST], colours, n * 3);
    image->logits[DEVICE] =
        put(workspace, &image->memory[0], image->logits[HOST], n * labels * sizeof(float));
    image->colours[DEVICE] = put(workspace, &image->memory[1], image->colours[HOST], n * 3);
}

static void free_image(struct image *image) {
    for (size_t k = 0; k < 2; k++)
        dcrf_device_memory_free(&image->memory[k]);
    free(image->logits[HOST]);
    free(image->colours[HOST]);
}

/* ---- the calls ------------------------------------------------------------------------------ */

struct worker {
    const struct subject *subject;
    dcrf_workspace *workspace;
    enum place place;
    bool is_solver;
    size_t together;     /* images per call */
    dcrf_arrays *arrays; /* one per image of a call */
    dcrf_kernel (*kernels)[2];
    float *marginals; /* output, on the host or the device */
    int32_t *labels;
    dcrf_device_memory *memory[2];
    atomic_size_t *next;
    size_t images;
    dcrf_error error;
    dcrf_status status;
};

static void fill_kernels(dcrf_kernel kernels[2], const dcrf_grid *grid, const uint8_t *colours) {
    kernels[0] = dcrf_kernel_spatial(3, 3);
    kernels[1] = dcrf_kernel_bilateral(80, 13, dcrf_view_interleaved(colours, DCRF_U8, grid, 3), 5);
}

/* `count` images from `first` on. */
static dcrf_status infer(struct worker *w, size_t first, size_t count) {
    const struct subject *s = w->subject;
    size_t failed;
    for (size_t k = 0; k < count; k++) {
        const struct image *image = &s->images[(first + k) % DISTINCT];
        dcrf_arrays *arrays = &w->arrays[k];
        dcrf_arrays_defaults(arrays);
        fill_kernels(w->kernels[k], &s->grid, image->colours[w->place]);
        arrays->grid = s->grid;
        arrays->unary = dcrf_view_planar(image->logits[w->place], DCRF_F32, &s->grid, s->labels);
        arrays->unary_kind = DCRF_UNARY_LOGITS;
        arrays->kernels = w->kernels[k];
        arrays->kernel_count = 2;
        arrays->iterations = UPDATES;
        arrays->marginals = dcrf_output_planar(w->marginals + k * s->variables * s->labels,
                                               DCRF_F32, &s->grid, s->labels);
        arrays->labels = dcrf_output_planar(w->labels + k * s->variables, DCRF_I32, &s->grid, 1);
    }
    return dcrf_mean_field_arrays_many(w->workspace, w->arrays, count, &failed, &w->error);
}

static dcrf_status solve(struct worker *w, const struct image *image) {
    const dcrf_grid *grid = &w->subject->grid;
    const size_t labels = w->subject->labels;
    dcrf_model *model = NULL;
    dcrf_plan *plan = NULL;
    dcrf_solver *solver = NULL;
    dcrf_kernel kernels[2];
    dcrf_settings settings;
    dcrf_error *error = &w->error;
    const dcrf_view logits = dcrf_view_planar(image->logits[HOST], DCRF_F32, grid, labels);
    float *energies = room(w->subject->variables * labels, sizeof *energies);
    const dcrf_view view = dcrf_view_interleaved(energies, DCRF_F32, grid, labels);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = UPDATES;
    settings.stationarity = settings.damping = 0;
    fill_kernels(kernels, grid, image->colours[HOST]);
    dcrf_status status = dcrf_unary_energies(&logits, grid, DCRF_UNARY_LOGITS, 1, grid, NULL,
                                             energies, w->subject->variables * labels, error);
    if (status == DCRF_OK)
        status = dcrf_model_new(&model, grid, labels, error);
    if (status == DCRF_OK)
        status = dcrf_model_set_unary(model, &view, error);
    for (size_t m = 0; m < 2 && status == DCRF_OK; m++)
        status = dcrf_model_add_kernel(model, &kernels[m], error);
    if (status == DCRF_OK)
        status = dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, w->workspace, error);
    if (status == DCRF_OK)
        status = dcrf_solver_new(&solver, plan, w->workspace, &settings, error);
    if (status == DCRF_OK)
        status = dcrf_solver_run(solver, error);
    if (status >= 0)
        status = dcrf_solver_marginals(solver, w->marginals, w->subject->variables * labels, labels,
                                       error);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    free(energies);
    return status;
}

static void *work(void *argument) {
    struct worker *w = argument;
    w->status = DCRF_OK;
    for (size_t k; w->status >= 0 && (k = atomic_fetch_add(w->next, w->together)) < w->images;) {
        const size_t left = w->images - k;
        w->status = w->is_solver ? solve(w, &w->subject->images[k % DISTINCT])
                                 : infer(w, k, left < w->together ? left : w->together);
    }
    return NULL;
}

/* A configuration to measure. */
struct way {
    const char *device;
    enum place place;
    bool is_solver;
    size_t together;
};

static void start_worker(struct worker *w, const struct subject *subject, const struct way *way,
                         size_t threads) {
    const size_t n = subject->variables * way->together, labels = subject->labels;
    *w = (struct worker){.subject = subject,
                         .place = way->place,
                         .is_solver = way->is_solver,
                         .together = way->together,
                         .arrays = room(way->together, sizeof *w->arrays),
                         .kernels = room(way->together, sizeof *w->kernels)};
    must(dcrf_workspace_new(&w->workspace, threads, &w->error), &w->error);
    must(dcrf_workspace_set_device(w->workspace, way->device, &w->error), &w->error);
    if (way->place == HOST) {
        w->marginals = room(n * labels, sizeof(float));
        w->labels = room(n, sizeof(int32_t));
        return;
    }
    must(dcrf_device_memory_new(&w->memory[0], w->workspace, n * labels * sizeof(float), &w->error),
         &w->error);
    must(dcrf_device_memory_new(&w->memory[1], w->workspace, n * sizeof(int32_t), &w->error),
         &w->error);
    w->marginals = dcrf_device_memory_data(w->memory[0]);
    w->labels = dcrf_device_memory_data(w->memory[1]);
}

static void stop_worker(struct worker *w) {
    if (w->place == HOST) {
        free(w->marginals);
        free(w->labels);
    }
    for (size_t k = 0; k < 2; k++)
        dcrf_device_memory_free(&w->memory[k]);
    free(w->arrays);
    free(w->kernels);
    dcrf_workspace_free(&w->workspace);
}

/* ---- figures -------------------------------------------------------------------------------- */

/* The median of single calls, in milliseconds. */
static double measure_call(const struct subject *subject, const struct way *way, size_t threads,
                           size_t repeats) {
    struct worker worker;
    double times[REPEATS];
    atomic_size_t next = 0;
    start_worker(&worker, subject, way, threads);
    worker.next = &next;
    worker.images = WARMING; /* the first calls allocate memory */
    work(&worker);
    for (size_t k = 0; k < repeats && worker.status >= 0; k++) {
        const double began_s = dcrf_time_s();
        worker.images = WARMING + k + 1;
        atomic_store(&next, WARMING + k);
        work(&worker);
        times[k] = 1e3 * (dcrf_time_s() - began_s);
    }
    must(worker.status, &worker.error);
    stop_worker(&worker);
    return median(times, repeats);
}

static double images_per_second(const struct subject *subject, const struct way *way,
                                size_t workers, size_t images) {
    static struct worker all[MOST_WORKERS];
    pthread_t threads[MOST_WORKERS];
    double began_s = 0;
    for (size_t w = 0; w < workers; w++)
        start_worker(&all[w], subject, way, 1);
    for (size_t round = 0; round < 2; round++) { /* the first round allocates memory */
        atomic_size_t next = 0;
        began_s = dcrf_time_s();
        for (size_t w = 0; w < workers; w++) {
            all[w].next = &next;
            all[w].images = round == 0 ? 2 * workers * way->together : images;
            if (pthread_create(&threads[w], NULL, work, &all[w]) != 0)
                exit(1);
        }
        for (size_t w = 0; w < workers; w++) {
            pthread_join(threads[w], NULL);
            must(all[w].status, &all[w].error);
        }
    }
    const double seconds = dcrf_time_s() - began_s;
    for (size_t w = 0; w < workers; w++)
        stop_worker(&all[w]);
    return (double)images / seconds;
}

static void measure_calls(const struct subject *s) {
    const struct way ways[] = {{device_name, DEVICE, false, 1},
                               {device_name, HOST, false, 1},
                               {device_name, HOST, true, 1},
                               {"cpu", HOST, false, 1}};
    printf("\n| one image | ms |\n|---|---|\n");
    printf("| arrays on the device | %.2f |\n", measure_call(s, &ways[0], 1, REPEATS));
    printf("| arrays on the host | %.2f |\n", measure_call(s, &ways[1], 1, REPEATS));
    printf("| by a solver, arrays on the host | %.2f |\n", measure_call(s, &ways[2], 0, 11));
    printf("| arrays, CPU, all threads | %.2f |\n", measure_call(s, &ways[3], 0, 5));
    fflush(stdout);
}

static void measure_many(const struct subject *s, size_t images) {
    static const size_t workers[] = {1, 4, 8, 16};
    const struct way there = {device_name, DEVICE, false, 1},
                     copied = {device_name, HOST, false, 1};
    const struct way solved = {device_name, HOST, true, 1}, here = {"cpu", HOST, false, 1};
    printf("\n| workers | images/s, arrays on the device | arrays on the host | by a solver | CPU, "
           "arrays |\n|---|---|---|---|---|\n");
    for (size_t k = 0; k < sizeof workers / sizeof workers[0]; k++) {
        const size_t count = workers[k], few = images / 8 > 2 * count ? images / 8 : 2 * count;
        printf("| %zu | %.0f | %.0f | %.1f | ", count, images_per_second(s, &there, count, images),
               images_per_second(s, &copied, count, images),
               images_per_second(s, &solved, count, few));
        if (count == 16)
            printf("%.1f |\n", images_per_second(s, &here, count, few));
        else
            printf("|\n");
        fflush(stdout);
    }
}

static dcrf_workspace *start_subject(struct subject *s, const uint8_t *colours, size_t width,
                                     size_t height, size_t labels) {
    dcrf_workspace *workspace;
    dcrf_error error;
    *s = (struct subject){.grid = dcrf_grid_2d(width, height), .variables = width * height};
    s->labels = labels;
    must(dcrf_workspace_new(&workspace, 1, &error), &error);
    must(dcrf_workspace_set_device(workspace, device_name, &error), &error);
    float *y = picture_labels(width, height, labels, labels);
    if (!y)
        exit(1);
    for (size_t k = 0; k < DISTINCT; k++)
        fill_image(s, &s->images[k], colours, y, k, workspace);
    free(y);
    return workspace;
}

static void stop_subject(struct subject *s, dcrf_workspace *workspace) {
    for (size_t k = 0; k < DISTINCT; k++)
        free_image(&s->images[k]);
    dcrf_workspace_free(&workspace);
}

static void measure_picture(const uint8_t *colours, size_t width, size_t height, const char *name,
                            size_t images) {
    struct subject s;
    dcrf_workspace *workspace = start_subject(&s, colours, width, height, 21);
    printf("\n%s, %zu x %zu x %zu, %d updates, %s\n", name, width, height, s.labels, UPDATES,
           dcrf_workspace_device(workspace));
    measure_calls(&s);
    if (images > 0)
        measure_many(&s, images);
    stop_subject(&s, workspace);
}

/* ---- small images ---------------------------------------------------------------------------- */

#define MOST_TOGETHER 1024

/* One row: several images per call, with one and four workers, arrays on the device and on the
 * host. */
static void measure_together(const struct subject *s, size_t together, size_t images) {
    printf("| %zu |", together);
    for (size_t k = 0; k < 4; k++) {
        const struct way way = {device_name, k < 2 ? DEVICE : HOST, false, together};
        const size_t workers = k % 2 ? 4 : 1, least = 2 * workers * together;
        printf(" %.0f |", images_per_second(s, &way, workers, least > images ? least : images));
    }
    printf("\n");
    fflush(stdout);
}

static void measure_small(size_t width, size_t height, size_t labels) {
    struct subject s;
    uint8_t *picture = picture_draw(width, height);
    if (!picture)
        exit(1);
    dcrf_workspace *workspace = start_subject(&s, picture, width, height, labels);
    const struct way here = {"cpu", HOST, false, 1};
    const size_t most = dcrf_arrays_batch(&s.grid, labels);
    printf("\n%zu x %zu x %zu, %d updates, %s; a batch has %zu\n\n", width, height, labels, UPDATES,
           dcrf_workspace_device(workspace), most);
    printf("| images in a call | arrays on the device, 1 worker | 4 | on the host, 1 | 4 "
           "|\n|---|---|---|---|---|\n");
    for (size_t together = 1; together <= MOST_TOGETHER && together / 4 < most; together *= 4)
        measure_together(&s, together < most ? together : most, 128);
    printf("| CPU, 16 workers, one by one | %.0f |\n",
           images_per_second(&s, &here, 16, labels > 2 && width > 200 ? 32 : 512));
    fflush(stdout);
    stop_subject(&s, workspace);
    free(picture);
}

static void measure_file(const char *path, size_t images) {
    size_t width, height;
    uint8_t *rgb = photograph_read(path, &width, &height);
    if (!rgb)
        exit(1);
    measure_picture(rgb, width, height, path, images);
    free(rgb);
}

int main(int count, char **arguments) {
    size_t images = 1000;
    int first = 1;
    if (count == 4 && strcmp(arguments[1], "--device") == 0)
        device_name = arguments[2];
    if (count > 1 && strcmp(arguments[count - 1], "--together") == 0) {
        static const size_t small[][3] = {
            {41, 41, 2}, {100, 100, 2}, {224, 224, 21}, {320, 213, 21}, {500, 375, 21}};
        for (size_t k = 0; k < sizeof small / sizeof small[0]; k++)
            measure_small(small[k][0], small[k][1], small[k][2]);
        return 0;
    }
    for (; first + 1 < count && strncmp(arguments[first], "--", 2) == 0; first += 2) {
        if (strcmp(arguments[first], "--device") == 0)
            device_name = arguments[first + 1];
        else if (strcmp(arguments[first], "--images") == 0)
            images = (size_t)strtoul(arguments[first + 1], NULL, 10);
        else
            return 2;
    }
    for (int i = first; i < count; i++)
        measure_file(arguments[i], images);
    if (first < count)
        return 0;
    static const size_t sizes[2][2] = {{320, 213}, {500, 375}};
    for (size_t k = 0; k < 2; k++) {
        uint8_t *picture = picture_draw(sizes[k][0], sizes[k][1]);
        if (!picture)
            return 1;
        measure_picture(picture, sizes[k][0], sizes[k][1], "a drawn picture", k == 1 ? images : 0);
        free(picture);
    }
    return 0;
}
