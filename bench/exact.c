/* The time of the exact operator, compared with plain loops and with the peak of the CPU.
 *
 *   dcrf-exact [PHOTO.png]
 *
 * 320 x 213 pixels (or those of the photograph), 21 labels, the default kernels, two threads. The
 * plain loops run over a sample of rows, in double; their time is extrapolated to all rows.
 * Operations are counted per pair that is not left out, for both of its variables: multiply-adds,
 * and others (without loads, stores and transposing). The peak is the rate of independent vector
 * multiply-adds in a loop of their own, in the same run. Other operations mostly use the same
 * pipelines, so the fraction of the peak over all operations shows what limits a loop; some
 * processors have a separate unit for minima and maxima, so it can be slightly above 1. CPU seconds
 * are summed over threads, so that other programs on the machine disturb them little. */
#include "filter/exact/exact.h"
#include "core/timer.h"
#include "io/image.h"
#include "measure.h"
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LABELS 21
#define STRIDE 24
#define SAMPLE 64

static dcrf_workspace *workspace;

/* ---- the peak ------------------------------------------------------------------------------- */

/* Scalar multiply-adds per second in one thread; 0 if unknown. */
#if defined(__x86_64__)
#define TURNS 3000000
#define CHAINS 12
#define PEAK(name, instructions, vector, set, multiply_add, lanes)                                 \
    __attribute__((target(instructions))) static double name(void) {                               \
        vector sum[CHAINS], factor = set(0.999f), term = set(0.001f);                              \
        float result[lanes];                                                                       \
        for (int k = 0; k < CHAINS; k++)                                                           \
            sum[k] = set((float)k);                                                                \
        const double start_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);                                  \
        for (int i = 0; i < TURNS; i++)                                                            \
            _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) sum[k] =                     \
                multiply_add(sum[k], factor, term);                                                \
        const double time_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_s;                         \
        for (int k = 1; k < CHAINS; k++)                                                           \
            sum[0] = multiply_add(sum[0], factor, sum[k]);                                         \
        memcpy(result, &sum[0], sizeof result);                                                    \
        return result[0] < 1e30f ? (double)TURNS * CHAINS * lanes / time_s : 0;                    \
    }
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16)
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8)
#endif

static double find_peak(void) {
    double best = 0;
#if defined(__x86_64__)
    for (int i = 0; i < 5; i++)
        best = fmax(best, dcrf_cpu_in_use() == DCRF_CPU_AVX512 ? peak_avx512()
                          : dcrf_cpu_in_use() == DCRF_CPU_AVX2 ? peak_avx2()
                                                               : 0);
#endif
    return best;
}

/* ---- plain loops ---------------------------------------------------------------------------- */

/* CPU seconds of K y by plain loops, and the operator's error relative to the row sum. */
static double naive(const dcrf_grid *grid, const float *colours, double sigma, double colour_sigma,
                    const float *y, const float *result, double *error) {
    const size_t n = grid->size[0] * grid->size[1], width = grid->size[0];
    const double start_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    *error = 0;
    for (size_t k = 0; k < SAMPLE; k++) {
        const size_t a = k * (n / SAMPLE);
        double sums[LABELS] = {0}, row_sum = 0;
        for (size_t b = 0; b < n; b++) {
            const double x = ((double)(a % width) - (double)(b % width)) / sigma;
            const double z = ((double)(a / width) - (double)(b / width)) / sigma;
            double squared = x * x + z * z;
            for (size_t c = 0; colour_sigma > 0 && c < 3; c++) {
                const double d =
                    ((double)colours[3 * a + c] - (double)colours[3 * b + c]) / colour_sigma;
                squared += d * d;
            }
            const double value = exp(-squared / 2);
            row_sum += value;
            for (size_t i = 0; i < LABELS; i++)
                sums[i] += value * (double)y[b * STRIDE + i];
        }
        for (size_t i = 0; i < LABELS; i++)
            *error = fmax(*error, fabs(sums[i] - (double)result[a * STRIDE + i]) / row_sum);
    }
    return (clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_s) * (double)n / SAMPLE;
}

/* ---- the table ------------------------------------------------------------------------------ */

struct measured {
    double wall_s, cpu_s;
};

#define REPEATS 3
#define MEASURE(result, call)                                                                      \
    do {                                                                                           \
        dcrf_error error;                                                                          \
        (result) = (struct measured){INFINITY, INFINITY};                                          \
        for (int i = 0; i < REPEATS; i++) {                                                        \
            const double wall_s = dcrf_time_s(), used_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);       \
            must(call, &error);                                                                    \
            (result).cpu_s = fmin((result).cpu_s, clock_s(CLOCK_PROCESS_CPUTIME_ID) - used_s);     \
            (result).wall_s = fmin((result).wall_s, dcrf_time_s() - wall_s);                       \
        }                                                                                          \
    } while (0)

static dcrf_status rebuild(dcrf_operator **op, const dcrf_grid *grid, const dcrf_kernel *kernel,
                           dcrf_error *error) {
    dcrf_operator_free(op);
    return dcrf_operator_new(op, grid, kernel, DCRF_OPERATOR_EXACT, workspace, error);
}

static void print(const char *what, struct measured m, double pairs, size_t multiply_adds,
                  size_t others, double peak, double naive_s) {
    printf("| %s | %.3f | %.3f | %.2f | %zu + %zu |", what, m.wall_s, m.cpu_s,
           m.cpu_s / pairs * 1e9, multiply_adds, others);
    if (peak > 0)
        printf(" %.0f, %.0f %% |", 100 * pairs * (double)multiply_adds / (m.cpu_s * peak),
               100 * pairs * (double)(multiply_adds + others) / (m.cpu_s * peak));
    else
        printf(" |");
    if (naive_s > 0)
        printf(" %.1f | %.0f |\n", naive_s, naive_s / m.cpu_s);
    else
        printf(" | |\n");
}

static void measure(const dcrf_grid *grid, const float *colours, double sigma, double colour_sigma,
                    const float *y, double peak) {
    const size_t n = grid->size[0] * grid->size[1];
    const dcrf_view view = dcrf_view_interleaved(colours, DCRF_F32, grid, 3);
    dcrf_kernel kernel = colour_sigma > 0 ? dcrf_kernel_bilateral(sigma, colour_sigma, view, 1)
                                          : dcrf_kernel_spatial(sigma, 1);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    dcrf_operator *op = NULL;
    float *out = malloc(n * STRIDE * sizeof *out);
    double *wide = malloc(n * LABELS * sizeof *wide), *ones = malloc(n * sizeof *ones), distance;
    struct measured built, applied, line, line_double, left_out;
    for (size_t a = 0; a < n; a++)
        ones[a] = 1;
    MEASURE(built, rebuild(&op, grid, &kernel, &error));
    const struct dcrf_exact *exact = (const struct dcrf_exact *)op;
    const double square = (double)DCRF_TILE * DCRF_TILE;
    const double pairs = (double)exact->near.pairs_of_tiles * square;
    const double pairs_double = (double)exact->near_double.pairs_of_tiles * square;
    const double all = (double)n * (double)n / 2;
    const struct dcrf_line what = {
        .epsilon = 0x1p-6, .y = y, .out = out, .channels = LABELS, .stride = STRIDE};
    MEASURE(line, op->methods->line(op, workspace, &what, &error));
    MEASURE(line_double, op->methods->line_double(op, workspace, &what, wide, &error));
    MEASURE(left_out, op->methods->left_out(op, workspace, false, ones, &error));
    MEASURE(applied, dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, y, out, n * STRIDE, LABELS,
                                         STRIDE, &error));
    const double naive_s = naive(grid, colours, sigma, colour_sigma, y, out, &distance);
    float *row_sums = malloc(n * sizeof *row_sums);
    dcrf_error failure;
    must(dcrf_operator_row_sums(op, workspace, row_sums, n, &failure), &failure);
    double most = 0;
    for (size_t a = 0; a < n; a++)
        most = fmax(most, ones[a] / (double)row_sums[a]);
    /* Operations per kernel value: differences and squares of features, groups, a polynomial of
     * degree 6; a maximum, three additions and two integer operations. */
    const size_t d = exact->metric.features, value = d + exact->metric.groups + 6, rest = d + 6;
    printf("\nSigma %g", sigma);
    if (colour_sigma > 0)
        printf(", colour sigma %g", colour_sigma);
    printf(": %.1f %% of all pairs count in float, %.1f %% in double; at most %.1e of a row sum is "
           "left out; error %.1e of the row sum.\n\n",
           100 * pairs / all, 100 * pairs_double / all, most, distance);
    puts("| | s on 2 threads | CPU s | ns a pair | operations a pair | of the peak: multiply-adds, "
         "all | plain loops, "
         "CPU s | times faster |");
    puts("|---|---|---|---|---|---|---|---|");
    print("made", built, pairs_double, value + 2, rest, 0, 0);
    print("applied, 21 labels", applied, pairs, value + 2 * LABELS, rest, peak, naive_s);
    print("clipped line, 21 labels", line, pairs, value + 2 * LABELS, rest + 3 * LABELS, peak, 0);
    print("clipped line in double", line_double, pairs_double, value + 5 + 2 * LABELS,
          rest + 3 * LABELS, peak / 2, 0);
    free(row_sums);
    free(ones);
    free(wide);
    free(out);
    dcrf_operator_free(&op);
}

int main(int count, char **arguments) {
    dcrf_error error;
    size_t width = 320, height = 213;
    float *colours = NULL;
    if (count > 1) {
        cli_image image;
        cli_problem problem;
        memset(&problem, 0, sizeof problem);
        if (!image_read(arguments[1], &image, &problem) || image.channels != 3) {
            fprintf(stderr, "dcrf-exact: cannot use %s\n", arguments[1]);
            return 1;
        }
        width = image.width;
        height = image.height;
        colours = image.colours;
    } else {
        uint8_t *picture = picture_draw(width, height);
        colours = malloc(width * height * 3 * sizeof *colours);
        for (size_t i = 0; i < width * height * 3; i++)
            colours[i] = picture[i];
        free(picture);
    }
    must(dcrf_workspace_new(&workspace, 2, &error), &error);
    const dcrf_grid grid = dcrf_grid_2d(width, height);
    float *y = picture_labels(width, height, LABELS, STRIDE);
    const double peak = find_peak();
    printf("%zu x %zu pixels, %d labels, instructions: %s", width, height, LABELS,
           dcrf_cpu_name(dcrf_cpu_in_use()));
    if (peak > 0)
        printf(", peak of one thread: %.1f thousand million multiply-adds a second", peak * 1e-9);
    puts(".");
    measure(&grid, colours, 3, 0, y, peak);
    measure(&grid, colours, 80, 13, y, peak);
    free(y);
    free(colours);
    dcrf_workspace_free(&workspace);
    return 0;
}
