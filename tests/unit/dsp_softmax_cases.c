#include "dense.h"
#include "dsp_cases.h"

#include "core/memory.h"
#include "core/timer.h"

#include <math.h>
#include <stdlib.h>

/* The terms of an exponent are below 8 and 6 of them are rounded, the sum with the largest once
 * more: 100 roundings relative to the result; then come the exponential and a sum over the
 * labels. */
static size_t softmax_operations(size_t labels) {
    return 110 + labels;
}

static struct dsp_result run_softmax(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                     double *time_s) {
    const size_t labels = 1 + number % 83, stride = dcrf_padded(labels), rows = 1 + number % 43;
    const size_t block = rows * stride;
    float *unary = random_block(block, 1, 0, 8, number);
    float *message = random_block(block, 1, 0, 4, number + 1);
    float *extra = random_block(block, 1, -2, 2, number + 2);
    float *diagonal = random_block(rows, 1, 0, 1, number + 3);
    float *given = random_block(block, 1, 0, 1, number + 4);
    float *damped = random_block(block, 1, -8, 0, number + 5);
    for (size_t i = 0; i < block; i++)
        if (i % stride >= labels)
            given[i] = 0;
    /* q, the damped field, and the three sums. */
    struct dsp_result r = {.count = 2 * block + DCRF_SOFTMAX_SUMS,
                           .operations = softmax_operations(labels)};
    r.value = malloc(r.count * sizeof *r.value);
    r.size = malloc(r.count * sizeof *r.size);
    *time_s = 0;
    for (int set = 0; set < 2; set++) {
        float *q = set == 0 ? r.value : r.size;
        const struct dcrf_dsp *by = set == 0 ? dsp : dcrf_dsp_for(DCRF_CPU_C);
        float *scratch = malloc(block * sizeof *scratch);
        double sums[DCRF_SOFTMAX_SUMS];
        const struct dcrf_softmax softmax = {.labels = labels,
                                             .stride = stride,
                                             .unary = unary,
                                             .message = scratch,
                                             .diagonal = number % 2 ? diagonal : NULL,
                                             .extra = number / 2 % 2 ? extra : NULL,
                                             .factor = 2,
                                             .same_label_factor = number / 4 % 2 ? -1.0f : 1.0f,
                                             .all_factor = number / 4 % 2 ? 1.0f : 0.0f,
                                             .damping = 0.25f,
                                             .logits = number / 8 % 2 ? q + block : NULL,
                                             .q = q,
                                             .next = q};
        for (size_t i = 0; i < repeats; i++) {
            memcpy(scratch, message, block * sizeof *message);
            memcpy(q, given, block * sizeof *given);
            memcpy(q + block, damped, block * sizeof *damped);
            memset(sums, 0, sizeof sums);
            const double start_s = dcrf_time_s();
            by->softmax(&softmax, 0, rows / 2, sums);
            by->softmax(&softmax, rows / 2, rows, sums);
            *time_s += set == 0 ? (dcrf_time_s() - start_s) / (double)repeats : 0;
        }
        float *plain = malloc(2 * block * sizeof *plain); /* the same without sums */
        struct dcrf_softmax without = softmax;
        without.next = plain;
        without.q = given;
        without.logits = softmax.logits ? plain + block : NULL;
        memcpy(plain + block, damped, block * sizeof *damped);
        memcpy(scratch, message, block * sizeof *message);
        by->softmax(&without, 0, rows, NULL);
        assert_memory_equal(plain, q, block * sizeof *plain);
        free(plain);
        for (size_t i = 0; i < block; i++) /* the padding of the field may hold anything */
            q[block + i] = i % stride < labels ? q[block + i] : 0;
        for (size_t k = 0; k < DCRF_SOFTMAX_SUMS; k++)
            q[2 * block + k] = (float)sums[k];
        free(scratch);
    }
    /* Sizes: q itself; the terms of the field; those of the sums, with entropies of up to ln
     * labels. */
    for (size_t i = 0; i < block; i++)
        r.size[i] = fabsf(r.size[i]);
    for (size_t i = block; i < 2 * block; i++)
        r.size[i] = 1;
    for (size_t k = 0; k < DCRF_SOFTMAX_SUMS; k++)
        r.size[2 * block + k] = (float)(20 * rows * labels);
    free(unary);
    free(message);
    free(extra);
    free(diagonal);
    free(given);
    free(damped);
    return r;
}

static struct dsp_result run_shared_softmax(const struct dcrf_dsp *dsp, uint64_t number,
                                            size_t repeats, double *time_s) {
    const size_t labels = 1 + number % 37, stride = dcrf_padded(labels), rows = 1 + number % 19;
    const size_t message_stride = stride + 8 * (number % 3);
    /* Unary energies in planes or in groups of eight rows, with labels in order or reversed. */
    const bool by_eights = number / 5 % 2, is_in_order = number % 3 == 0;
    float *unary = random_block((rows + 7) * labels, 1, 0, 8, number);
    size_t *plane = malloc(labels * sizeof *plane);
    for (size_t i = 0; i < labels; i++)
        plane[i] = is_in_order ? i : labels - 1 - i;
    float *work = dcrf_allocate(DCRF_SOFTMAX_WORK(labels), sizeof *work);
    /* Message totals: none, computed, or given in place of the last message. In the last case
     * messages are small enough that their sum is no larger than a single message otherwise, and
     * rounded to as many digits. */
    const bool has_total = number / 11 % 3 == 2 && labels > 1;
    const double most = has_total ? 1 / (double)labels : 8;
    float *message = random_block(rows * message_stride, 1, 0, most, number + 1);
    float *rest = random_block(rows, 1, -6, 0, number + 2);
    float *rest_top = random_block(rows, 1, -12, -6, number + 3);
    float *totals = random_block(rows, 1, 0, 8, number + 4);
    /* q, peak, rest_peak, shift, scale and totals, in this order. */
    const size_t block = rows * stride;
    struct dsp_result r = {.count = block + stride + 1 + 3 * rows,
                           .operations = softmax_operations(labels)};
    r.value = calloc(r.count, sizeof *r.value);
    r.size = calloc(r.count, sizeof *r.size);
    for (int set = 0; set < 2; set++) {
        float *q = set == 0 ? r.value : r.size;
        float *total = q + block + stride + 1 + 2 * rows;
        for (size_t i = 0; has_total && i < rows; i++)
            total[i] = totals[i];
        const struct dcrf_shared_softmax softmax = {.labels = labels,
                                                    .stride = stride,
                                                    .message_stride = message_stride,
                                                    .unary = unary,
                                                    .plane = plane,
                                                    .plane_step = by_eights ? 8 : rows,
                                                    .eight_step = by_eights ? 8 * labels : 8,
                                                    .message = number % 7 ? message : NULL,
                                                    .total = number / 11 % 3 ? total : NULL,
                                                    .has_total = has_total,
                                                    .rest = number % 2 ? rest : NULL,
                                                    .rest_top = rest_top,
                                                    .shift = q + block + stride + 1,
                                                    .scale = q + block + stride + 1 + rows,
                                                    .q = number % 4 != 2 ? q : NULL,
                                                    .q_planes = number % 4 == 2 ? q : NULL,
                                                    .q_plane_step = rows,
                                                    .peak = number % 13 ? q + block : NULL,
                                                    .rest_peak = q + block + stride,
                                                    .work = work};
        const double start_s = dcrf_time_s();
        for (size_t i = 0; i < repeats; i++)
            (set == 0 ? dsp : dcrf_dsp_for(DCRF_CPU_C))->shared_softmax(&softmax, rows);
        if (set == 0)
            *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    }
    for (size_t i = 0; i < r.count; i++)
        r.size[i] = fabsf(r.size[i]);
    free(totals);
    free(unary);
    free(plane);
    dcrf_release(work);
    free(message);
    free(rest);
    free(rest_top);
    return r;
}

static struct dsp_result run_negative_exponential(const struct dcrf_dsp *dsp, uint64_t number,
                                                  size_t repeats, double *time_s) {
    const size_t count = 1 + number % 70;
    float *in = random_block(count, 1, -10, 30, number);
    float *shift = random_block(count, 1, 10, 20, number + 1);
    float *scale = random_block(count, 1, 0, 2, number + 2);
    /* An exponent of up to 50 with two roundings, plus the error of the exponential. */
    struct dsp_result r = {.count = count + 3, .operations = 110};
    r.value = random_block(r.count, 1, 0, 1, 3);
    r.size = random_block(r.count, 1, 0, 1, 3);
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->negative_exponential(in, shift, scale, r.value, count);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    dcrf_dsp_for(DCRF_CPU_C)->negative_exponential(in, shift, scale, r.size, count);
    free(in);
    free(shift);
    free(scale);
    return r;
}

/* Rounded to floats here; test_dsp.c checks the precision. */
static struct dsp_result run_log_sums(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                      double *time_s) {
    const size_t labels = 1 + number % 45, rows = 1 + number % 50;
    float *in = random_block(rows, labels, -20, 20, number);
    double sums[2][50];
    struct dsp_result r = {.count = rows, .operations = 1};
    r.value = malloc(rows * sizeof *r.value);
    r.size = malloc(rows * sizeof *r.size);
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->log_sums(in, labels, rows, 1, sums[0]);
    *time_s = (dcrf_time_s() - start_s) / (double)repeats;
    dcrf_dsp_for(DCRF_CPU_C)->log_sums(in, labels, rows, 1, sums[1]);
    for (size_t k = 0; k < rows; k++) {
        r.value[k] = (float)sums[0][k];
        r.size[k] = (float)fabs(sums[1][k]);
    }
    free(in);
    return r;
}

const struct dsp_entry dsp_softmax_entries[DSP_SOFTMAX_ENTRIES] = {
    {"softmax", run_softmax},
    {"shared_softmax", run_shared_softmax},
    {"negative_exponential", run_negative_exponential},
    {"log_sums", run_log_sums},
};
