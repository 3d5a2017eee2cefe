/* How strong kernels should be for the unary energies of a model.
 *
 * Sample pairs (a, b) of grid neighbours, one or two steps apart along an axis, with similar
 * colours, and where both have an opinion (a single best label). With M labels and energies phi, at
 * the temperature T
 *
 *   e_a(T) = 1 - max_i p_a(i),   p_a(i) ~ exp(-phi_a(i) / T)          stated error probability
 *   X(T) = sum over pairs of 1 - ((1 - e_a)(1 - e_b) + e_a e_b / (M - 1))
 *   O    = number of pairs whose best labels differ
 *
 * X is the expected number of differing pairs if errors are independent and spread evenly over the
 * other labels. rho = O / X(1); T1 is the temperature where O = X.
 *
 *   strength = A T1 / (1 + B T1 / m),   m the geometric mean of the margins between the two best
 *                                       energies of a pixel.
 *
 * Errors that are independent and correctly stated have T1 = 1. Errors that come in patches make
 * neighbours agree more than their stated errors suggest: T1 is below 1, and the vote of the
 * neighbours, who repeat each other, is worth less; T1 / m is small there, and the strength is
 * nearly proportional to T1. Where T1 approaches or exceeds m, errors are everywhere, and the
 * strength saturates at a multiple of m, which suffices to overrule them. Scaling the energies by c
 * scales T1 and m by c, so the strength scales with the energies and the labelling of least energy
 * stays the same: unaries that are over- or underconfident by a factor do as well as others. The
 * measurements are in docs/notes/strength.md.
 *
 * X is needed at many temperatures. They are T_k = m 2^k, so that each step down squares
 * exp(-(phi_i - min phi) / T): one exponential per label for all of them. Between them ln X is
 * interpolated as a cubic in ln T.
 *
 * The sample consists of strips of pixels along the first axis, spread evenly; a small image is
 * sampled whole. Sums are added up strip by strip, regardless of the threads. */
#include "core/error.h"
#include "core/memory.h"
#include "core/workspace.h"
#include "model/model.h"
#include "model/view.h"

#include <dcrf/strength.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Chosen on validation data: docs/notes/strength.md. */
#define STRENGTH_PER_TEMPERATURE 14.0 /* A */
#define SATURATION 2.0                /* B */
/* In sigmas of the colour: 12 of 255 grey levels at the default. */
#define LIKE_COLOUR_SIGMAS 1.5

#define STRIP_LENGTH 64
#define STRIPS_AIMED_AT 128
#define FARTHEST 2 /* steps between the pixels of a pair */
#define STRIP_ROOM (STRIP_LENGTH + FARTHEST)

/* Labels processed together: squaring a single one repeatedly would be bound by latency. */
#define LANES 8

#define TEMPERATURES 20
#define LOWEST_POWER (-12)
#define BISECTIONS 40

/* ---- defaults ------------------------------------------------------------------------------- */

size_t dcrf_default_kernels(const dcrf_view *image, dcrf_kernel kernels[DCRF_DEFAULT_KERNELS]) {
    const double half = 0.5; /* a pair counts in both orders */
    const double share = image ? DCRF_DEFAULT_SPATIAL_SHARE : 1;
    kernels[0] = dcrf_kernel_spatial(DCRF_DEFAULT_SPATIAL_SIGMA, half * share);
    if (!image)
        return 1;
    kernels[1] = dcrf_kernel_bilateral(DCRF_DEFAULT_BILATERAL_SIGMA, DCRF_DEFAULT_COLOUR_SIGMA,
                                       *image, half * (1 - share));
    return 2;
}

double dcrf_default_gamma(const dcrf_model *model) {
    const double strength = dcrf_model_strength(model);
    return DCRF_DEFAULT_GAMMA_PER_STRENGTH * (strength > 0 ? strength : DCRF_FALLBACK_STRENGTH);
}

/* ---- setting -------------------------------------------------------------------------------- */

double dcrf_model_strength(const dcrf_model *model) {
    double sum = 0;
    for (size_t m = 0; model && m < model->kernel_count; m++)
        sum += model->kernels[m].given_weight;
    return 2 * sum;
}

dcrf_status dcrf_model_set_strength(dcrf_model *model, double strength, dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    const double now = dcrf_model_strength(model);
    if (!isfinite(strength))
        return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "the strength is %g", strength);
    if (strength < 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the strength is %g; it must not be negative",
                         strength);
    if (strength > 0 && !(now > 0))
        return dcrf_fail(
            error, DCRF_ERROR_ARGUMENT,
            "there is no kernel with a weight above zero, which a strength of %g could "
            "multiply",
            strength);
    for (size_t m = 0; m < model->kernel_count; m++)
        if (strength > 0 && model->kernels[m].given_weight / now * strength > (double)FLT_MAX)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "with a strength of %g the weight of kernel %zu is too large for a "
                             "float",
                             strength, m);
    for (size_t m = 0; m < model->kernel_count; m++)
        dcrf_model_kernel_weigh(&model->kernels[m],
                                strength > 0 ? model->kernels[m].given_weight / now * strength : 0);
    model->revision++;
    return DCRF_OK;
}

dcrf_status dcrf_model_apply_temperature(dcrf_model *model, double temperature, dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    const size_t count = model->variables * model->stride;
    if (!(temperature > 0) || !isfinite(temperature))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the temperature is %g; it must be positive and finite", temperature);
    if (temperature == 1)
        return DCRF_OK;
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)model->unary[i]) / temperature <= (double)FLT_MAX))
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "a unary energy of %g divided by the temperature %g is too large for "
                             "a float",
                             (double)model->unary[i], temperature);
    for (size_t i = 0; i < count; i++)
        model->unary[i] = (float)((double)model->unary[i] / temperature);
    model->revision++;
    return DCRF_OK;
}

/* ---- the sample ----------------------------------------------------------------------------- */

/* Every `step`-th strip of pixels. */
struct sample {
    const dcrf_model *model;
    const struct dcrf_features *colours; /* NULL: all neighbours are alike */
    size_t strips_per_line;
    size_t count; /* of sampled strips */
    size_t step;
    double base_temperature; /* m */
    struct strip_sums *sums; /* one per sampled strip */
};

struct strip_sums {
    double log_margins; /* of pixels that have an opinion */
    double opinions;    /* how many pixels have one */
    double differing;   /* O */
    double pairs;
    double expected[TEMPERATURES]; /* X */
};

/* The opinion of a pixel: its best label, and how sure it is. */
struct opinion {
    bool has_one;
    uint16_t label;
    float error[TEMPERATURES]; /* e at every temperature */
};

static size_t greatest_common_divisor(size_t a, size_t b) {
    while (b != 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step that shares a factor with the strips per line would always hit the same columns. */
static void choose_strips(struct sample *s) {
    const dcrf_grid *grid = &s->model->grid;
    const size_t lines = grid->size[1] * grid->size[2];
    s->strips_per_line = (grid->size[0] + STRIP_LENGTH - 1) / STRIP_LENGTH;
    const size_t all = lines * s->strips_per_line;
    s->step = all / STRIPS_AIMED_AT > 1 ? all / STRIPS_AIMED_AT : 1;
    while (greatest_common_divisor(s->step, s->strips_per_line) > 1)
        s->step++;
    s->count = (all + s->step - 1) / s->step;
}

/* The position of the first pixel of a sampled strip; returns the length of the strip. */
static size_t strip_at(const struct sample *s, size_t index, size_t position[DCRF_MAX_AXES]) {
    const dcrf_grid *grid = &s->model->grid;
    const size_t strip = index * s->step, line = strip / s->strips_per_line;
    position[0] = strip % s->strips_per_line * STRIP_LENGTH;
    position[1] = line % grid->size[1];
    position[2] = line / grid->size[1];
    const size_t left = grid->size[0] - position[0];
    return left < STRIP_LENGTH ? left : STRIP_LENGTH;
}

static size_t variable_at(const dcrf_grid *grid, const size_t position[DCRF_MAX_AXES]) {
    return (position[2] * grid->size[1] + position[1]) * grid->size[0] + position[0];
}

/* ---- opinions ------------------------------------------------------------------------------- */

/* The best label, and its margin over the second best. */
static double margin_of(const dcrf_model *model, size_t variable, uint16_t *best) {
    const float *row = model->unary + variable * model->stride;
    float least = row[0], second = INFINITY;
    *best = 0;
    for (size_t i = 1; i < model->labels; i++) {
        if (row[i] < least) {
            second = least;
            least = row[i];
            *best = (uint16_t)i;
        } else if (row[i] < second) {
            second = row[i];
        }
    }
    return (double)second - (double)least;
}

static void state_errors(const struct sample *s, size_t variable, struct opinion *opinion) {
    const float *row = s->model->unary + variable * s->model->stride;
    const double least = (double)row[opinion->label];
    const double highest = s->base_temperature * ldexp(1, LOWEST_POWER + TEMPERATURES - 1);
    double sums[TEMPERATURES][LANES] = {{0}};
    for (size_t first = 0; first < s->model->labels; first += LANES) {
        double likeness[LANES] = {0};
        for (size_t i = first; i < s->model->labels && i < first + LANES; i++)
            if (i != opinion->label)
                likeness[i - first] = exp((least - (double)row[i]) / highest);
        for (size_t k = TEMPERATURES; k-- > 0;)
            for (size_t lane = 0; lane < LANES; lane++) {
                sums[k][lane] += likeness[lane];
                likeness[lane] *= likeness[lane];
            }
    }
    for (size_t k = 0; k < TEMPERATURES; k++) {
        double others = 0;
        for (size_t lane = 0; lane < LANES; lane++)
            others += sums[k][lane];
        opinion->error[k] = (float)(others / (1 + others));
    }
}

static void ask(const struct sample *s, size_t variable, struct opinion *opinion) {
    opinion->has_one = margin_of(s->model, variable, &opinion->label) > 0;
    if (opinion->has_one)
        state_errors(s, variable, opinion);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static bool are_alike(const struct sample *s, size_t a, size_t b) {
    if (!s->colours)
        return true;
    const struct dcrf_features *f = s->colours;
    for (size_t c = 0; c < f->channels; c++) {
        const double one = dcrf_features_channel(f, a * f->channels + c);
        const double other = dcrf_features_channel(f, b * f->channels + c);
        if (!(fabs(one - other) * f->channel_factor[c] < LIKE_COLOUR_SIGMAS))
            return false;
    }
    return true;
}

static void compare(const struct sample *s, size_t a, size_t b, const struct opinion *one,
                    const struct opinion *other, struct strip_sums *sums) {
    if (!one->has_one || !other->has_one || !are_alike(s, a, b))
        return;
    const float wrong_labels = (float)(s->model->labels - 1);
    sums->pairs++;
    sums->differing += one->label != other->label;
    for (size_t k = 0; k < TEMPERATURES; k++) {
        const float e = one->error[k], f = other->error[k];
        sums->expected[k] += (double)(e + f - e * f - e * f / wrong_labels);
    }
}

/* The pairs whose first pixel is in the strip. */
static void compare_strip(const struct sample *s, size_t index) {
    const dcrf_grid *grid = &s->model->grid;
    struct opinion opinions[STRIP_ROOM], beside;
    size_t position[DCRF_MAX_AXES];
    const size_t length = strip_at(s, index, position);
    const size_t first = variable_at(grid, position);
    const size_t beyond = grid->size[0] - position[0] - length;
    const size_t room = length + (beyond < FARTHEST ? beyond : FARTHEST);
    struct strip_sums *sums = &s->sums[index];
    for (size_t i = 0; i < room; i++)
        ask(s, first + i, &opinions[i]);
    for (size_t distance = 1; distance <= FARTHEST; distance++) {
        for (size_t i = 0; i < length && i + distance < room; i++)
            compare(s, first + i, first + i + distance, &opinions[i], &opinions[i + distance],
                    sums);
        for (size_t axis = 1; axis < grid->axes; axis++) {
            if (position[axis] + distance >= grid->size[axis])
                continue;
            const size_t stride = axis == 1 ? grid->size[0] : grid->size[0] * grid->size[1];
            for (size_t i = 0; i < length; i++) {
                if (!opinions[i].has_one || !are_alike(s, first + i, first + i + distance * stride))
                    continue;
                ask(s, first + i + distance * stride, &beside);
                compare(s, first + i, first + i + distance * stride, &opinions[i], &beside, sums);
            }
        }
    }
}

static void compare_strips(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t index = begin; index < end; index++)
        compare_strip(context, index);
}

static void add_margins(void *context, size_t begin, size_t end, size_t worker) {
    const struct sample *s = context;
    (void)worker;
    for (size_t index = begin; index < end; index++) {
        size_t position[DCRF_MAX_AXES];
        const size_t length = strip_at(s, index, position);
        const size_t first = variable_at(&s->model->grid, position);
        for (size_t i = 0; i < length; i++) {
            uint16_t label;
            const double margin = margin_of(s->model, first + i, &label);
            if (margin > 0) {
                s->sums[index].log_margins += log(margin);
                s->sums[index].opinions++;
            }
        }
    }
}

/* ---- the measurement ------------------------------------------------------------------------ */

static struct strip_sums add_up(const struct sample *s) {
    struct strip_sums all = {0};
    for (size_t index = 0; index < s->count; index++) {
        const struct strip_sums *strip = &s->sums[index];
        all.log_margins += strip->log_margins;
        all.opinions += strip->opinions;
        all.differing += strip->differing;
        all.pairs += strip->pairs;
        for (size_t k = 0; k < TEMPERATURES; k++)
            all.expected[k] += strip->expected[k];
    }
    return all;
}

/* ln X at a fractional power k: the cubic through the four temperatures around it. */
static double log_expected_at(const double log_expected[TEMPERATURES], double power) {
    const double place = fmin(fmax(power - LOWEST_POWER, 0), TEMPERATURES - 1);
    const double first = fmin(fmax(floor(place) - 1, 0), TEMPERATURES - 4);
    const double *y = log_expected + (size_t)first, t = place - first;
    return -y[0] * (t - 1) * (t - 2) * (t - 3) / 6 + y[1] * t * (t - 2) * (t - 3) / 2 -
           y[2] * t * (t - 1) * (t - 3) / 2 + y[3] * t * (t - 1) * (t - 2) / 6;
}

/* The power where X equals the observed number, by bisection between the two temperatures around
 * it. X rises with the temperature; numbers out of range get the first or the last power. */
static double power_where(const double log_expected[TEMPERATURES], double log_observed) {
    size_t k = 0;
    while (k < TEMPERATURES && log_expected[k] < log_observed)
        k++;
    if (k == 0 || k == TEMPERATURES)
        return LOWEST_POWER + (k == 0 ? 0 : TEMPERATURES - 1);
    double low = LOWEST_POWER + (double)k - 1, high = low + 1;
    for (int step = 0; step < BISECTIONS; step++) {
        const double middle = (low + high) / 2;
        if (log_expected_at(log_expected, middle) < log_observed)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Does the model have a neighbourhood, and if so, whose colours are compared? */
static bool find_neighbourhood(struct sample *s) {
    bool found = false;
    for (size_t m = 0; m < s->model->kernel_count; m++) {
        const struct dcrf_features *features = &s->model->kernels[m].features;
        found = found || features->axes > 0;
        if (!s->colours && features->kind == DCRF_KERNEL_BILATERAL)
            s->colours = features;
    }
    return found;
}

dcrf_status dcrf_model_measure_strength(const dcrf_model *model, dcrf_workspace *workspace,
                                        dcrf_measured_strength *measured, dcrf_error *error) {
    if (!model || !workspace || !measured)
        return dcrf_fail_null(error, "the model, the workspace or the place for the strength");
    DCRF_ENTER(workspace, error);
    struct sample s = {.model = model};
    *measured = (dcrf_measured_strength){
        .strength = DCRF_FALLBACK_STRENGTH, .rho = NAN, .temperature = NAN, .margin = NAN};
    const bool has_neighbours = find_neighbourhood(&s);
    if (model->labels < 2)
        return DCRF_OK;
    choose_strips(&s);
    s.sums = dcrf_allocate_zero(s.count, sizeof *s.sums);
    if (!s.sums)
        return dcrf_fail_memory(error, "measuring the strength");
    dcrf_parallel_for(dcrf_workspace_pool(workspace), s.count, 1, add_margins, &s);
    struct strip_sums all = add_up(&s);
    if (all.opinions > 0) {
        s.base_temperature = exp(all.log_margins / all.opinions);
        measured->margin = measured->strength = s.base_temperature;
    }
    if (all.opinions > 0 && has_neighbours) {
        dcrf_parallel_for(dcrf_workspace_pool(workspace), s.count, 1, compare_strips, &s);
        all = add_up(&s);
    }
    dcrf_release(s.sums);
    measured->pairs = (size_t)all.pairs;
    if (measured->pairs < DCRF_LEAST_STRENGTH_PAIRS)
        return DCRF_OK;
    double log_expected[TEMPERATURES];
    for (size_t k = 0; k < TEMPERATURES; k++)
        log_expected[k] = log(fmax(all.expected[k], DBL_MIN));
    measured->rho = all.differing / exp(log_expected_at(log_expected, -log2(s.base_temperature)));
    measured->temperature =
        s.base_temperature * exp2(power_where(log_expected, log(fmax(all.differing, DBL_MIN))));
    measured->strength = STRENGTH_PER_TEMPERATURE * measured->temperature /
                         (1 + SATURATION * measured->temperature / measured->margin);
    return DCRF_OK;
}
