/* Distances between labels in the check of a certificate.
 *
 * If the lengths of the cuts between i and j sum to at most mu(i, j), and |alpha_ab:c| <= K_ab,
 * then the cuts bound the cost of all pairs from below:
 *
 *   sum_{a != b} K_ab mu(x_a, x_b) >= sum_c length_c sum_{a != b} K_ab |S_c(x_a) - S_c(x_b)|
 *                                  >= -sum_a (A alpha)_a(x_a),
 *   (A alpha)_ai = sum_{c holds i} 2 length_c sum_b alpha_ab:c.
 *
 * Lengths are summed in double, with the rounding error of a few thousand additions. So a sum may
 * exceed mu by a fraction SLACK, and the lengths in use are reduced by twice that. */
#include "core/error.h"
#include "verify/check.h"

#include <math.h>
#include <string.h>

#define SLACK 0x1p-39

static double length_of(const struct dcrf_check *check, size_t cut) {
    return check->content->cut_lengths[cut] * (1 - 2 * SLACK);
}

/* The distances of label i to those before it. */
static bool is_below(const struct dcrf_check *check, size_t i) {
    const struct dcrf_certificate_content *content = check->content;
    const size_t labels = check->model->labels;
    for (size_t j = 0; j < i; j++) {
        double sum = 0;
        for (size_t c = 0; c < content->cut_count; c++)
            if (content->cut_sets[c * labels + i] != content->cut_sets[c * labels + j])
                sum += content->cut_lengths[c];
        if (!(sum <= (double)check->distance[i * labels + j] * (1 + SLACK)))
            return false;
    }
    return true;
}

dcrf_status dcrf_check_cuts(struct dcrf_check *check, dcrf_error *error) {
    TRY(dcrf_model_find_distance(check->model, "a certificate", &check->distance, error));
    if (check->content->has_cuts != (check->distance != NULL))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the certificate is about another problem: it is %s",
                         check->distance ? "for Potts" : "for a distance between labels");
    for (size_t i = 0; check->distance && i < check->model->labels; i++) {
        TRY(dcrf_go_on(check->workspace, "checking a certificate", error));
        if (!is_below(check, i))
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the certificate does not prove what it claims: its cuts are longer "
                             "than the distance between two labels");
    }
    return DCRF_OK;
}

double dcrf_check_cuts_scale(const struct dcrf_certificate_content *content, const float *distance,
                             size_t labels) {
    double total = 1;
    for (size_t c = 0; c < content->cut_count; c++)
        total += 2 * content->cut_lengths[c];
    for (size_t k = 0; distance && k < labels * labels; k++)
        total = dcrf_check_most(total, fabs((double)distance[k]));
    return distance ? 4 * total * (1 + (double)content->cut_count / 64) : 1;
}

/* Integer arithmetic: no rounding. */
void dcrf_check_fill_column(const struct dcrf_check *check, size_t p, size_t cut,
                            uint32_t *column) {
    const struct dcrf_certificate_mixture *mixture = check->mixture;
    const struct dcrf_certificate_point *point = &mixture->points[p];
    const size_t labels = check->model->labels;
    const uint8_t *set = check->content->cut_sets + cut * labels;
    memset(column, 0, mixture->size * sizeof *column);
    for (size_t i = 0; i < labels; i++)
        if (set[i] && point->plane[i] != 0) {
            const uint32_t *values = point->values + (point->plane[i] - (size_t)1) * mixture->size;
            for (size_t k = 0; k < mixture->size; k++) /* both are below 2^24: no overflow */
                column[k] =
                    column[k] + values[k] < point->levels ? column[k] + values[k] : point->levels;
        }
}

void dcrf_check_spread(const struct dcrf_check *check, size_t cut, double value, double *sums) {
    const size_t labels = check->model->labels;
    const uint8_t *set = check->content->cut_sets + cut * labels;
    for (size_t i = 0; i < labels; i++)
        sums[i] += set[i] ? 2 * length_of(check, cut) * value : 0;
}
