/* What the numbers of an array are, told from the numbers alone.
 *
 * With x_i the numbers of a variable,
 *
 *   probabilities              x_i in [0, 1],  sum_i x_i = 1
 *   energies of probabilities  x_i >= 0,       sum_i exp(-x_i) = 1
 *   log-probabilities          x_i <= 0,       sum_i exp(x_i) = 1
 *
 * and at most one of these holds for all variables, except for arrays of zeros and ones with two
 * labels: (0, 1) may be energies or probabilities, of opposite meaning. Other numbers are energies
 * if none is negative and some are above 1; numbers that stay below 1 without summing to it, and
 * negative ones, are ambiguous. A sample of the variables is examined, and one in a hundred of them
 * may be odd (void pixels, padding). */
#include "core/error.h"
#include "model/view.h"

#include <dcrf/unary.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SAMPLE_VARIABLES 65536
#define ODD_SHARE 0.01
/* For half precision, or bytes of 1/255 and many labels. */
#define SUM_TOLERANCE 0.02
/* For energies that were rounded to 1/20. */
#define EXPONENTIAL_TOLERANCE 0.05
/* If all stored numbers are below this, they take too few values to identify energies. */
#define STORED_ENERGY_MIN 8

/* ---- the sample ----------------------------------------------------------------------------- */

typedef struct sample {
    const dcrf_view *view;
    const dcrf_grid *grid;
    double scale;
    size_t step; /* one in `step` variables is examined */
    size_t variables;
} sample;

/* Variable k of the sample, scattered so that a step as wide as the image does not sample a single
 * column; false: there are no more. */
static bool next_variable(const sample *s, size_t k, size_t position[DCRF_MAX_AXES]) {
    const size_t begin = k * s->step;
    if (begin >= s->variables)
        return false;
    const size_t length = s->variables - begin < s->step ? s->variables - begin : s->step;
    /* Knuth's multiplicative hash. */
    dcrf_grid_position(s->grid, begin + (uint32_t)k * 2654435761u % length, position);
    return true;
}

/* A property that the numbers of a variable may have. */
typedef bool predicate(const sample *s, const size_t position[DCRF_MAX_AXES], double parameter);

static double number_at(const sample *s, const size_t position[DCRF_MAX_AXES], size_t label) {
    return s->scale * dcrf_view_element(s->view, position, label);
}

/* Does it hold for nearly all variables of the sample? Those that are not finite do not count. */
static bool nearly_all(const sample *s, predicate *holds, double parameter) {
    size_t finite = 0, holding = 0, position[DCRF_MAX_AXES];
    /* The most variables that may be odd, however many are finite. */
    const double most_odd = ODD_SHARE * (double)(s->variables / s->step + 1);
    for (size_t k = 0; next_variable(s, k, position); k++) {
        if ((double)(finite - holding) > most_odd)
            return false;
        bool is_finite = true;
        for (size_t i = 0; is_finite && i < s->view->channels; i++)
            is_finite = isfinite(number_at(s, position, i)) != 0;
        finite += is_finite;
        holding += is_finite && holds(s, position, parameter);
    }
    return finite > 0 && (double)holding >= (1 - ODD_SHARE) * (double)finite;
}

/* ---- what may hold of a variable ------------------------------------------------------------ */

/* The numbers times `unit` are probabilities. */
static bool sums_to_one(const sample *s, const size_t *position, double unit) {
    double sum = 0;
    for (size_t i = 0; i < s->view->channels; i++) {
        const double p = unit * number_at(s, position, i);
        if (!(p >= 0 && p <= DCRF_PROBABILITY_MAX))
            return false;
        sum += p;
    }
    return fabs(sum - 1) <= SUM_TOLERANCE;
}

/* The numbers times `unit` are the logarithms of probabilities. */
static bool exponentials_sum_to_one(const sample *s, const size_t *position, double unit) {
    double sum = 0;
    for (size_t i = 0; i < s->view->channels; i++) {
        const double logarithm = unit * number_at(s, position, i);
        if (logarithm > EXPONENTIAL_TOLERANCE)
            return false;
        sum += exp(logarithm);
    }
    return fabs(sum - 1) <= EXPONENTIAL_TOLERANCE;
}

static bool is_zero_or_one(const sample *s, const size_t *position, double unused) {
    (void)unused;
    for (size_t i = 0; i < s->view->channels; i++) {
        const double x = number_at(s, position, i);
        if (x != 0 && x != 1)
            return false;
    }
    return true;
}

static bool is_whole(const sample *s, const size_t *position, double unused) {
    (void)unused;
    for (size_t i = 0; i < s->view->channels; i++) {
        const double x = number_at(s, position, i);
        if (x != floor(x))
            return false;
    }
    return true;
}

static void find_range(const sample *s, double *smallest, double *largest) {
    size_t position[DCRF_MAX_AXES];
    *smallest = INFINITY;
    *largest = -INFINITY;
    for (size_t k = 0; next_variable(s, k, position); k++)
        for (size_t i = 0; i < s->view->channels; i++) {
            const double x = number_at(s, position, i);
            if (isfinite(x)) {
                *smallest = x < *smallest ? x : *smallest;
                *largest = x > *largest ? x : *largest;
            }
        }
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static void conclude(dcrf_unary_traits *traits, dcrf_unary_kind kind, bool is_certain, double scale,
                     const char *reason) {
    traits->kind = kind;
    traits->is_certain = is_certain;
    traits->scale = scale;
    snprintf(traits->reason, sizeof traits->reason, "%s", reason);
}

/* Probabilities that were stored as bytes or in percent. */
static bool find_stored_probabilities(const sample *s, dcrf_unary_traits *traits) {
    static const double wholes[] = {255, 65535, 100};
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        if (traits->largest <= wholes[i] * DCRF_PROBABILITY_MAX &&
            nearly_all(s, sums_to_one, 1 / wholes[i])) {
            char reason[DCRF_UNARY_REASON_BYTES];
            snprintf(reason, sizeof reason, "the numbers of a pixel sum to %.0f", wholes[i]);
            conclude(traits, DCRF_UNARY_PROBABILITIES, true, 1 / wholes[i], reason);
            return true;
        }
    return false;
}

/* The mean of ln sum_i exp(-unit x_i), which falls as the unit grows. */
static double mean_log_sum(const sample *s, double unit) {
    double total = 0;
    size_t count = 0, position[DCRF_MAX_AXES];
    for (; next_variable(s, count, position); count++) {
        double sum = 0;
        for (size_t i = 0; i < s->view->channels; i++)
            sum += exp(-unit * number_at(s, position, i));
        total += log(fmax(sum, DBL_MIN));
    }
    return total / (double)count;
}

/* Energies that were scaled and rounded: does exp(-unit x) sum to 1 everywhere for some unit? */
static bool find_stored_energies(const sample *s, dcrf_unary_traits *traits) {
    double low = 1e-4, high = 1;
    if (traits->largest < STORED_ENERGY_MIN || !nearly_all(s, is_whole, 0) ||
        !(mean_log_sum(s, low) > 0 && mean_log_sum(s, high) < 0))
        return false;
    for (int k = 0; k < 40; k++) {
        const double middle = sqrt(low * high);
        if (mean_log_sum(s, middle) > 0)
            low = middle;
        else
            high = middle;
    }
    /* Scale factors are usually integers. */
    const double unit = 1 / round(1 / low);
    if (!nearly_all(s, exponentials_sum_to_one, -unit))
        return false;
    char reason[DCRF_UNARY_REASON_BYTES];
    snprintf(reason, sizeof reason, "exp(-x / %.0f) sums to 1 over the labels", 1 / unit);
    conclude(traits, DCRF_UNARY_ENERGIES, true, unit, reason);
    return true;
}

static void recognize(const sample *s, dcrf_unary_traits *traits) {
    if (traits->labels == 1 || !(traits->smallest <= traits->largest))
        conclude(traits, DCRF_UNARY_ENERGIES, false, 1, "there is nothing to tell it by");
    else if (nearly_all(s, sums_to_one, 1) && traits->labels == 2 &&
             nearly_all(s, is_zero_or_one, 0))
        conclude(traits, DCRF_UNARY_AUTO, false, 1,
                 "with two labels, zeros and ones can be energies or probabilities");
    else if (nearly_all(s, sums_to_one, 1))
        conclude(traits, DCRF_UNARY_PROBABILITIES, true, 1, "the numbers of a pixel sum to 1");
    else if (nearly_all(s, exponentials_sum_to_one, -1))
        conclude(traits, DCRF_UNARY_ENERGIES, true, 1, "exp(-x) sums to 1 over the labels");
    else if (nearly_all(s, exponentials_sum_to_one, 1))
        conclude(traits, DCRF_UNARY_LOGITS, true, 1, "exp(x) sums to 1 over the labels");
    else if (traits->smallest < 0)
        conclude(traits, DCRF_UNARY_AUTO, false, 1,
                 "negative numbers can be logits (high is likely) or energies (low is likely)");
    else if (find_stored_probabilities(s, traits) || find_stored_energies(s, traits))
        return;
    else if (traits->largest > 0 && traits->largest <= DCRF_PROBABILITY_MAX)
        conclude(traits, DCRF_UNARY_AUTO, false, 1,
                 "numbers between 0 and 1 that do not sum to 1 can be scores or energies");
    else
        conclude(traits, DCRF_UNARY_ENERGIES, false, 1, "no number is negative");
}

dcrf_status dcrf_unary_inspect(const dcrf_view *view, const dcrf_grid *grid, double scale,
                               dcrf_unary_traits *traits, dcrf_error *error) {
    size_t variables = 0;
    if (!traits)
        return dcrf_fail_null(error, "the place for the traits");
    TRY(dcrf_grid_check(grid, &variables, error));
    TRY(dcrf_view_check(view, "the unary", error));
    const sample s = {view, grid, scale == 0 ? 1 : scale, (variables - 1) / SAMPLE_VARIABLES + 1,
                      variables};
    dcrf_unary_traits found = {.labels = view->channels};
    find_range(&s, &found.smallest, &found.largest);
    recognize(&s, &found);
    *traits = found;
    return DCRF_OK;
}

/* ---- the claim ------------------------------------------------------------------------------ */

static dcrf_status contradiction(const dcrf_unary_traits *traits, dcrf_unary_kind claimed,
                                 dcrf_error *error) {
    char times[32] = "", claim[32] = "";
    if (traits->scale != 1)
        snprintf(times, sizeof times, " times %.6g", 1 / traits->scale);
    if (claimed != DCRF_UNARY_AUTO && claimed != traits->kind)
        snprintf(claim, sizeof claim, ", not %s", dcrf_unary_kind_name(claimed));
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "these look like %s%s%s: %s",
                     traits->kind == DCRF_UNARY_LOGITS ? "log-probabilities"
                                                       : dcrf_unary_kind_name(traits->kind),
                     times, claim, traits->reason);
}

/* Is the claim compatible with what the numbers look like? */
static bool may_be(const dcrf_unary_traits *traits, dcrf_unary_kind claimed) {
    if (!traits->is_certain)
        return true;
    switch (claimed) {
    case DCRF_UNARY_ENERGIES:
        /* With two labels, 1 - p sums to 1 too. */
        return traits->kind == DCRF_UNARY_ENERGIES ? traits->scale == 1
                                                   : traits->kind == DCRF_UNARY_PROBABILITIES &&
                                                         traits->labels == 2 && traits->scale == 1;
    case DCRF_UNARY_PROBABILITIES:
    case DCRF_UNARY_LOGITS:
        return traits->kind == claimed && traits->scale == 1;
    default:
        return traits->scale == 1;
    }
}

dcrf_status dcrf_unary_resolve_kind(const dcrf_unary_traits *traits, dcrf_unary_kind claimed,
                                    dcrf_unary_kind *kind, dcrf_error *error) {
    if (!traits || !kind)
        return dcrf_fail_null(error, "the traits or the place for the kind");
    if (!dcrf_unary_kind_name(claimed))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is no kind of numbers", (int)claimed);
    if (!may_be(traits, claimed))
        return contradiction(traits, claimed, error);
    if (claimed == DCRF_UNARY_AUTO && traits->kind == DCRF_UNARY_AUTO)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "say what the numbers are: %s",
                         traits->reason);
    *kind = claimed == DCRF_UNARY_AUTO ? traits->kind : claimed;
    return DCRF_OK;
}
