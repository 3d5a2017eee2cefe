/* The LP of ordered labels over given pairs, for script/study-cuts: no code of the library.
 *
 *   pair-steps FOLDER STEPS
 *
 * minimizes phi'y + sum_{a < b} K_ab sum_c |z_ac - z_bc| over distributions y, z_c the share of a
 * window of TRUNCATION labels, by the primal-dual steps of Chambolle and Pock (2011) with the step
 * lengths of Pock and Chambolle (2011):
 *
 *   y'    = P( y - tau_a (phi + sum of the windows' sum_b alpha_ab) ), tau_a = 1 / (s T D_a)
 *   alpha = clip( alpha + s K_ab / (2 T) (z(2 y' - y)_a - z(2 y' - y)_b), -K_ab, K_ab ).
 *
 * FOLDER holds phi and y, a row of LABELS floats per variable, and for every pair its variables,
 * first (ascending) and second, as 32-bit integers, and weight. y is overwritten. */
#include "pair_files.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 60, TRUNCATION = 4, WINDOWS = LABELS + TRUNCATION - 1, STRIDE = 64 };
#define STRETCH 2.0F /* s: dual steps are longer by this, primal ones shorter */

static void sum_windows(const float *y, float *z) {
    float until[LABELS + 1] = {0};
    for (int i = 0; i < LABELS; i++)
        until[i + 1] = until[i] + y[i];
    for (int c = 0; c < WINDOWS; c++)
        z[c] = until[c < LABELS ? c + 1 : LABELS] - until[c < TRUNCATION ? 0 : c + 1 - TRUNCATION];
}

/* Onto the simplex (Michelot 1986): entries below the level leave, none comes back. */
static void project(float *v) {
    int left = LABELS + 1, before;
    float level = -1e30F;
    do {
        double sum = -1;
        before = left;
        left = 0;
        for (int i = 0; i < LABELS; i++)
            if (v[i] > level) {
                sum += (double)v[i];
                left++;
            }
        level = (float)(sum / left);
    } while (left < before);
    for (int i = 0; i < LABELS; i++)
        v[i] = v[i] > level ? v[i] - level : 0;
}

/* y of one variable, and the window sums of 2 y' - y. */
static void step_variable(float *y, const float *phi, const float *pull, float length, float *z) {
    float next[LABELS], ahead[LABELS];
    for (int i = 0; i < LABELS; i++) {
        float gradient = phi[i];
        for (int c = i; c < i + TRUNCATION; c++)
            gradient += pull[c];
        next[i] = y[i] - length * gradient;
    }
    project(next);
    for (int i = 0; i < LABELS; i++) {
        ahead[i] = 2 * next[i] - y[i];
        y[i] = next[i];
    }
    sum_windows(ahead, z);
}

static void step_pair(float *restrict dual, float weight, const float *restrict za,
                      const float *restrict zb, float *restrict pull_a, float *restrict pull_b) {
    const float length = STRETCH * weight / (2 * TRUNCATION);
    for (int c = 0; c < STRIDE; c++) {
        float value = dual[c] + length * (za[c] - zb[c]);
        value = value > weight ? weight : value;
        value = value < -weight ? -weight : value;
        dual[c] = value;
        pull_a[c] += value;
        pull_b[c] -= value;
    }
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: pair-steps FOLDER STEPS\n");
        return 2;
    }
    const char *folder = words[1];
    size_t entries, pairs;
    const float *phi = pair_read(folder, "phi", &entries);
    float *y = pair_read(folder, "y", &entries);
    const int32_t *first = pair_read(folder, "first", &pairs);
    const int32_t *second = pair_read(folder, "second", &pairs);
    const float *weight = pair_read(folder, "weight", &pairs);
    const size_t variables = entries / LABELS;
    float *z = pair_require(calloc(variables * STRIDE + 1, sizeof *z));
    float *pull = pair_require(calloc(variables * STRIDE + 1, sizeof *pull));
    float *dual = pair_require(calloc(pairs * STRIDE + 1, sizeof *dual));
    float *row_sums = pair_require(calloc(variables + 1, sizeof *row_sums));
    for (size_t e = 0; e < pairs; e++) {
        row_sums[first[e]] += weight[e];
        row_sums[second[e]] += weight[e];
    }
    for (size_t a = 0; a < variables; a++)
        sum_windows(y + a * LABELS, z + a * STRIDE);
    for (size_t e = 0; e < pairs; e++) /* the dual of the labelling that y is */
        for (size_t c = 0; c < STRIDE; c++)
            dual[e * STRIDE + c] =
                weight[e] * (z[(size_t)first[e] * STRIDE + c] - z[(size_t)second[e] * STRIDE + c]);
    for (long step = strtol(words[2], NULL, 10); step > 0; step--) {
        memset(pull, 0, variables * STRIDE * sizeof *pull);
        for (size_t e = 0; e < pairs; e++) {
            const size_t a = (size_t)first[e] * STRIDE, b = (size_t)second[e] * STRIDE;
            step_pair(dual + e * STRIDE, weight[e], z + a, z + b, pull + a, pull + b);
        }
        for (size_t a = 0; a < variables; a++)
            step_variable(y + a * LABELS, phi + a * LABELS, pull + a * STRIDE,
                          1 / (STRETCH * TRUNCATION * fmaxf(row_sums[a], 1e-3F)), z + a * STRIDE);
    }
    pair_write(folder, "y", y, entries);
    return 0; /* the system takes the memory back */
}
