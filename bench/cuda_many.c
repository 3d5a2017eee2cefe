/* Mean field from arrays to arrays on a device: how long one image takes, and how many a second
 * there are with several in flight, next to the CPU.
 *
 *   dcrf-cuda-many [--device cuda:0] [--images 1000] [PHOTO.png ...]
 *
 * For each photograph (or a drawn picture of 320 x 213 and one of 500 x 375): 21 labels that are
 * all alive, as logits, plane by plane, and the colours as bytes, as networks give and take them;
 * spatial 3 and bilateral 80/13, 10 updates; marginals and labels come back. Times are by the clock
 * and of whole calls, plans included. The arrays are on the device, or in memory of the host that
 * nobody has pinned. Images per second are of workers with a workspace of one thread each, over
 * DISTINCT sets of arrays in turn. `solver` is what solve_many does for every image: model, plan,
 * solver with its candidates and energies, marginals. */
#include "core/timer.h"
#include "io/image.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS 21
#define UPDATES 10
#define DISTINCT 16
#define REPEATS 51
#define WARMING 4
#define MOST_WORKERS 64

static const char *device_name = "cuda";

static void must(dcrf_status status, const dcrf_error *error) {
    if (status < 0) {
        fprintf(stderr, "dcrf-cuda-many: %s\n", error->message);
        exit(status == DCRF_ERROR_DEVICE ? 77 : 1);
    }
}

static void *room(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory)
        exit(1);
    return memory;
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
    size_t variables;
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

/* Logits of labels that are right in most places; every image has other ones. */
static void fill_image(struct subject *s, struct image *image, const uint8_t *colours,
                       const float *y, size_t shift, dcrf_workspace *workspace) {
    const size_t n = s->variables;
    image->logits[HOST] = room(n * LABELS, sizeof(float));
    image->colours[HOST] = room(n * 3, 1);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < LABELS; i++)
            image->logits[HOST][(i + shift) % LABELS * n + a] =
                logf(0.7f * y[a * 24 + i] + 0.3f / LABELS);
    memcpy(image->colours[HOST], colours, n * 3);
    image->logits[DEVICE] =
        put(workspace, &image->memory[0], image->logits[HOST], n * LABELS * sizeof(float));
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
    float *marginals; /* where they are wanted */
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

static dcrf_status infer(struct worker *w, const struct image *image) {
    const dcrf_grid *grid = &w->subject->grid;
    dcrf_arrays arrays;
    dcrf_kernel kernels[2];
    dcrf_arrays_defaults(&arrays);
    fill_kernels(kernels, grid, image->colours[w->place]);
    arrays.grid = *grid;
    arrays.unary = dcrf_view_planar(image->logits[w->place], DCRF_F32, grid, LABELS);
    arrays.unary_kind = DCRF_UNARY_LOGITS;
    arrays.kernels = kernels;
    arrays.kernel_count = 2;
    arrays.iterations = UPDATES;
    arrays.marginals = dcrf_view_planar(w->marginals, DCRF_F32, grid, LABELS);
    arrays.labels = dcrf_view_planar(w->labels, DCRF_I32, grid, 1);
    return dcrf_mean_field_arrays(w->workspace, &arrays, &w->error);
}

static dcrf_status solve(struct worker *w, const struct image *image) {
    const dcrf_grid *grid = &w->subject->grid;
    dcrf_model *model = NULL;
    dcrf_plan *plan = NULL;
    dcrf_solver *solver = NULL;
    dcrf_kernel kernels[2];
    dcrf_settings settings;
    dcrf_error *error = &w->error;
    const dcrf_view logits = dcrf_view_planar(image->logits[HOST], DCRF_F32, grid, LABELS);
    float *energies = room(w->subject->variables * LABELS, sizeof *energies);
    const dcrf_view view = dcrf_view_interleaved(energies, DCRF_F32, grid, LABELS);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = UPDATES;
    settings.stationarity = settings.damping = 0;
    fill_kernels(kernels, grid, image->colours[HOST]);
    dcrf_status status =
        dcrf_unary_energies(&logits, grid, DCRF_UNARY_LOGITS, 1, grid, NULL, energies, error);
    if (status == DCRF_OK)
        status = dcrf_model_new(&model, grid, LABELS, error);
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
        status = dcrf_solver_marginals(solver, w->marginals, LABELS, error);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    free(energies);
    return status;
}

static void *work(void *argument) {
    struct worker *w = argument;
    w->status = DCRF_OK;
    for (size_t k; w->status >= 0 && (k = atomic_fetch_add(w->next, 1)) < w->images;) {
        const struct image *image = &w->subject->images[k % DISTINCT];
        w->status = w->is_solver ? solve(w, image) : infer(w, image);
    }
    return NULL;
}

static void start_worker(struct worker *w, const struct subject *subject, const char *device,
                         size_t threads, enum place place, bool is_solver) {
    const size_t n = subject->variables;
    *w = (struct worker){.subject = subject, .place = place, .is_solver = is_solver};
    must(dcrf_workspace_new(&w->workspace, threads, &w->error), &w->error);
    must(dcrf_workspace_set_device(w->workspace, device, &w->error), &w->error);
    if (place == HOST) {
        w->marginals = room(n * LABELS, sizeof(float));
        w->labels = room(n, sizeof(int32_t));
        return;
    }
    must(dcrf_device_memory_new(&w->memory[0], w->workspace, n * LABELS * sizeof(float), &w->error),
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
    dcrf_workspace_free(&w->workspace);
}

/* ---- figures -------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* The median of single calls, in milliseconds. */
static double measure_call(const struct subject *subject, const char *device, size_t threads,
                           enum place place, bool is_solver, size_t repeats) {
    struct worker worker;
    double times[REPEATS];
    atomic_size_t next = 0;
    start_worker(&worker, subject, device, threads, place, is_solver);
    worker.next = &next;
    worker.images = WARMING; /* the first ones take memory */
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
    qsort(times, repeats, sizeof *times, compare);
    return times[repeats / 2];
}

static double images_per_second(const struct subject *subject, const char *device, size_t workers,
                                enum place place, bool is_solver, size_t images) {
    static struct worker all[MOST_WORKERS];
    pthread_t threads[MOST_WORKERS];
    double began_s = 0;
    for (size_t w = 0; w < workers; w++)
        start_worker(&all[w], subject, device, 1, place, is_solver);
    for (size_t round = 0; round < 2; round++) { /* the first one takes memory */
        atomic_size_t next = 0;
        began_s = dcrf_time_s();
        for (size_t w = 0; w < workers; w++) {
            all[w].next = &next;
            all[w].images = round == 0 ? 2 * workers : images;
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
    printf("\n| one image | ms |\n|---|---|\n");
    printf("| arrays on the device | %.2f |\n",
           measure_call(s, device_name, 1, DEVICE, false, REPEATS));
    printf("| arrays on the host | %.2f |\n",
           measure_call(s, device_name, 1, HOST, false, REPEATS));
    printf("| by a solver, arrays on the host | %.2f |\n",
           measure_call(s, device_name, 0, HOST, true, 11));
    printf("| arrays, CPU, all threads | %.2f |\n", measure_call(s, "cpu", 0, HOST, false, 5));
    fflush(stdout);
}

static void measure_many(const struct subject *s, size_t images) {
    static const size_t workers[] = {1, 4, 8, 16};
    printf("\n| workers | images/s, arrays on the device | arrays on the host | by a solver | CPU, "
           "arrays |\n|---|---|---|---|---|\n");
    for (size_t k = 0; k < sizeof workers / sizeof workers[0]; k++) {
        const size_t count = workers[k], few = images / 32 > count ? images / 32 : count;
        const double there = images_per_second(s, device_name, count, DEVICE, false, images);
        const double copied = images_per_second(s, device_name, count, HOST, false, images);
        const double solved = images_per_second(s, device_name, count, HOST, true, few);
        printf("| %zu | %.0f | %.0f | %.1f | ", count, there, copied, solved);
        if (count == 16)
            printf("%.1f |\n", images_per_second(s, "cpu", count, HOST, false, few));
        else
            printf("|\n");
        fflush(stdout);
    }
}

static void measure_picture(const uint8_t *colours, size_t width, size_t height, const char *name,
                            size_t images) {
    struct subject s = {.grid = dcrf_grid_2d(width, height), .variables = width * height};
    dcrf_workspace *workspace;
    dcrf_error error;
    must(dcrf_workspace_new(&workspace, 1, &error), &error);
    must(dcrf_workspace_set_device(workspace, device_name, &error), &error);
    float *y = picture_labels(width, height, LABELS, 24);
    if (!y)
        exit(1);
    for (size_t k = 0; k < DISTINCT; k++)
        fill_image(&s, &s.images[k], colours, y, k, workspace);
    printf("\n%s, %zu x %zu x %d, %d updates, %s\n", name, width, height, LABELS, UPDATES,
           dcrf_workspace_device(workspace));
    measure_calls(&s);
    if (images > 0)
        measure_many(&s, images);
    for (size_t k = 0; k < DISTINCT; k++)
        free_image(&s.images[k]);
    dcrf_workspace_free(&workspace);
    free(y);
}

static void measure_file(const char *path, size_t images) {
    cli_image image;
    cli_problem problem;
    memset(&problem, 0, sizeof problem);
    if (!image_read(path, &image, &problem) || image.channels != 3) {
        fprintf(stderr, "dcrf-cuda-many: %s is not a photograph that can be read\n", path);
        exit(1);
    }
    const size_t values = image.width * image.height * 3;
    uint8_t *colours = room(values, 1);
    for (size_t k = 0; k < values; k++)
        colours[k] = (uint8_t)image.colours[k];
    measure_picture(colours, image.width, image.height, path, images);
    free(colours);
    image_free(&image);
}

int main(int count, char **arguments) {
    size_t images = 1000;
    int first = 1;
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
