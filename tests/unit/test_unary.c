/* Unary energies from energies, probabilities and logits: how they are recognized and converted. */
#include "unit.h"

#include "core/rng.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

#define WIDTH 9
#define HEIGHT 7
#define PIXELS (WIDTH * HEIGHT)
#define MOST_LABELS 21

typedef struct numbers {
    size_t labels;
    double x[PIXELS * MOST_LABELS]; /* interleaved: the labels of a pixel are adjacent */
} numbers;

/* Softmax of random logits: distributions, some of them nearly certain. */
static numbers random_probabilities(size_t labels, uint64_t seed) {
    numbers n = {.labels = labels};
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    for (size_t a = 0; a < PIXELS; a++) {
        double sum = 0;
        for (size_t i = 0; i < labels; i++)
            sum += n.x[a * labels + i] = exp(8 * dcrf_rng_uniform(&rng));
        for (size_t i = 0; i < labels; i++)
            n.x[a * labels + i] /= sum;
    }
    return n;
}

static numbers mapped(const numbers *n, double (*map)(double x, double parameter),
                      double parameter) {
    numbers result = {.labels = n->labels};
    for (size_t i = 0; i < PIXELS * n->labels; i++)
        result.x[i] = map(n->x[i], parameter);
    return result;
}

static double times(double x, double factor) {
    return factor * x;
}
static double times_and_rounded(double x, double factor) {
    return round(factor * x);
}
static double logarithm(double x, double factor) {
    return factor * log(x);
}
static double rounded_energy(double x, double factor) {
    return round(fmin(-factor * log(x), 255));
}
static double plus(double x, double term) {
    return x + term;
}

static dcrf_unary_traits look_at(const numbers *n, double scale) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view view = dcrf_view_interleaved(n->x, DCRF_F64, &grid, n->labels);
    dcrf_unary_traits traits;
    assert_int_equal(dcrf_unary_inspect(&view, &grid, scale, &traits, NULL), DCRF_OK);
    return traits;
}

/* The resolved kind for a claimed one, or DCRF_UNARY_AUTO if it is refused with this text. */
static dcrf_unary_kind settled(const dcrf_unary_traits *traits, dcrf_unary_kind claimed,
                               const char *refusal) {
    dcrf_unary_kind kind = DCRF_UNARY_AUTO;
    dcrf_error error;
    if (refusal) {
        assert_fails(DCRF_ERROR_ARGUMENT, refusal, error,
                     dcrf_unary_resolve_kind(traits, claimed, &kind, &error));
        return DCRF_UNARY_AUTO;
    }
    assert_int_equal(dcrf_unary_resolve_kind(traits, claimed, &kind, NULL), DCRF_OK);
    return kind;
}

/* ---- recognition ---------------------------------------------------------------------------- */

static void normalized_numbers_are_recognized(void **state) {
    (void)state;
    for (size_t labels = 2; labels <= MOST_LABELS; labels += 19)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            const numbers p = random_probabilities(labels, seed);
            const numbers energies = mapped(&p, logarithm, -1);
            const numbers logarithms = mapped(&p, logarithm, 1);
            dcrf_unary_traits traits = look_at(&p, 0);
            assert_int_equal(traits.kind, DCRF_UNARY_PROBABILITIES);
            assert_true(traits.is_certain && traits.scale == 1 && traits.labels == labels);
            assert_true(traits.smallest >= 0 && traits.largest <= 1);
            traits = look_at(&energies, 0);
            assert_int_equal(traits.kind, DCRF_UNARY_ENERGIES);
            assert_true(traits.is_certain);
            traits = look_at(&logarithms, 0);
            assert_int_equal(traits.kind, DCRF_UNARY_LOGITS);
            assert_true(traits.is_certain);
            /* Numbers are recognized after scaling. */
            const numbers many = mapped(&p, times, 200);
            assert_int_equal(look_at(&many, 0.005).kind, DCRF_UNARY_PROBABILITIES);
        }
}

static void stored_numbers_show_their_scale(void **state) {
    (void)state;
    static const double wholes[] = {255, 65535, 100}, units[] = {20, 10, 50};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const numbers p = random_probabilities(3, seed);
        for (size_t k = 0; k < 3; k++) {
            const numbers stored = mapped(&p, times_and_rounded, wholes[k]);
            const dcrf_unary_traits traits = look_at(&stored, 0);
            assert_int_equal(traits.kind, DCRF_UNARY_PROBABILITIES);
            assert_true(fabs(traits.scale * wholes[k] - 1) < 1e-12);
            settled(&traits, DCRF_UNARY_AUTO, "probabilities times");
            settled(&traits, DCRF_UNARY_PROBABILITIES, "probabilities times");
            settled(&traits, DCRF_UNARY_ENERGIES, "not energies");
        }
        for (size_t k = 0; k < 3; k++) {
            const numbers stored = mapped(&p, rounded_energy, units[k]);
            const dcrf_unary_traits traits = look_at(&stored, 0);
            assert_int_equal(traits.kind, DCRF_UNARY_ENERGIES);
            assert_true(fabs(traits.scale * units[k] - 1) < 1e-12);
            settled(&traits, DCRF_UNARY_AUTO, "energies times");
        }
    }
}

static void claims_are_held_against_the_numbers(void **state) {
    (void)state;
    const numbers p = random_probabilities(3, 7), two = random_probabilities(2, 7);
    const numbers energies = mapped(&p, logarithm, -1), logarithms = mapped(&p, logarithm, 1);
    dcrf_unary_traits traits = look_at(&p, 0);
    assert_int_equal(settled(&traits, DCRF_UNARY_AUTO, NULL), DCRF_UNARY_PROBABILITIES);
    assert_int_equal(settled(&traits, DCRF_UNARY_PROBABILITIES, NULL), DCRF_UNARY_PROBABILITIES);
    settled(&traits, DCRF_UNARY_ENERGIES, "look like probabilities, not energies: the numbers");
    settled(&traits, DCRF_UNARY_LOGITS, "look like probabilities, not logits");
    /* 1 - p is an energy too, and for two labels it sums to 1. */
    traits = look_at(&two, 0);
    assert_int_equal(settled(&traits, DCRF_UNARY_AUTO, NULL), DCRF_UNARY_PROBABILITIES);
    assert_int_equal(settled(&traits, DCRF_UNARY_ENERGIES, NULL), DCRF_UNARY_ENERGIES);
    traits = look_at(&energies, 0);
    assert_int_equal(settled(&traits, DCRF_UNARY_AUTO, NULL), DCRF_UNARY_ENERGIES);
    settled(&traits, DCRF_UNARY_LOGITS, "look like energies, not logits");
    settled(&traits, DCRF_UNARY_PROBABILITIES, "look like energies, not probabilities");
    traits = look_at(&logarithms, 0);
    assert_int_equal(settled(&traits, DCRF_UNARY_AUTO, NULL), DCRF_UNARY_LOGITS);
    settled(&traits, DCRF_UNARY_ENERGIES, "look like log-probabilities, not energies");
}

static void what_cannot_be_told_must_be_said(void **state) {
    (void)state;
    const numbers p = random_probabilities(3, 3);
    numbers ambiguous[3] = {mapped(&p, plus, -0.3), mapped(&p, times, 0.7), {.labels = 2}};
    for (size_t a = 0; a < PIXELS; a++)
        ambiguous[2].x[2 * a + a % 2] = 1;
    static const char *const reasons[] = {"negative numbers", "between 0 and 1", "zeros and ones"};
    for (size_t k = 0; k < 3; k++) {
        const dcrf_unary_traits traits = look_at(&ambiguous[k], 0);
        assert_int_equal(traits.kind, DCRF_UNARY_AUTO);
        settled(&traits, DCRF_UNARY_AUTO, reasons[k]);
        for (dcrf_unary_kind kind = DCRF_UNARY_ENERGIES; kind <= DCRF_UNARY_LOGITS; kind++)
            assert_int_equal(settled(&traits, kind, NULL), kind);
    }
    /* Neither all negative nor all below 1, and nothing sums to one: energies by default. */
    const numbers large = mapped(&p, times, 3);
    dcrf_unary_traits traits = look_at(&large, 0);
    assert_true(traits.kind == DCRF_UNARY_ENERGIES && !traits.is_certain);
    assert_int_equal(settled(&traits, DCRF_UNARY_LOGITS, NULL), DCRF_UNARY_LOGITS);
    /* Without finite numbers there is nothing to contradict a claim. */
    numbers nothing = p;
    for (size_t i = 0; i < PIXELS * 3; i++)
        nothing.x[i] = NAN;
    traits = look_at(&nothing, 0);
    assert_int_equal(settled(&traits, DCRF_UNARY_AUTO, NULL), DCRF_UNARY_ENERGIES);
}

static void one_variable_in_a_hundred_may_be_odd(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static double x[2 * MANY];
    const dcrf_grid grid = dcrf_grid_1d(MANY);
    const dcrf_view view = dcrf_view_interleaved(x, DCRF_F64, &grid, 2);
    dcrf_unary_traits traits;
    for (size_t a = 0; a < MANY; a++)
        x[2 * a + 1] = 1 - (x[2 * a] = (double)(a % 10) / 10);
    for (size_t odd = 0; odd <= 20; odd += 10) {
        for (size_t a = 0; a < odd; a++)
            x[2 * a] = x[2 * a + 1] = 0;
        assert_int_equal(dcrf_unary_inspect(&view, &grid, 0, &traits, NULL), DCRF_OK);
        assert_int_equal(traits.kind, odd <= 10 ? DCRF_UNARY_PROBABILITIES : DCRF_UNARY_AUTO);
    }
}

/* There are as many rows as sampled variables, all equal: the sample must not be just the first
 * column. */
static void a_sample_is_no_column(void **state) {
    (void)state;
    enum { COLUMNS = 300, ROWS = 65536 };
    static double row[2 * COLUMNS];
    const dcrf_grid grid = dcrf_grid_2d(COLUMNS, ROWS);
    dcrf_view view = dcrf_view_interleaved(row, DCRF_F64, &grid, 2);
    dcrf_unary_traits traits;
    view.stride[1] = 0;
    for (size_t x = 1; x < COLUMNS; x++)
        row[2 * x + 1] = 1 - (row[2 * x] = (double)(x % 10) / 10);
    assert_int_equal(dcrf_unary_inspect(&view, &grid, 0, &traits, NULL), DCRF_OK);
    assert_int_equal(traits.kind, DCRF_UNARY_PROBABILITIES);
    assert_true(traits.largest == 1);
}

static void kinds_have_names(void **state) {
    (void)state;
    dcrf_unary_kind kind;
    for (dcrf_unary_kind k = DCRF_UNARY_AUTO; k <= DCRF_UNARY_LOGITS; k++) {
        assert_int_equal(dcrf_unary_kind_from_name(dcrf_unary_kind_name(k), &kind), 1);
        assert_int_equal(kind, k);
    }
    assert_null(dcrf_unary_kind_name((dcrf_unary_kind)99));
    assert_int_equal(dcrf_unary_kind_from_name("guess", &kind), 0);
}

/* ---- energies ------------------------------------------------------------------------------- */

static void energies_follow_the_formulas(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const numbers p = random_probabilities(3, 11), logits = mapped(&p, logarithm, 1);
    const numbers shifted = mapped(&logits, plus, 40);
    static float energies[PIXELS * 3];
    const struct {
        const numbers *from;
        dcrf_unary_kind kind;
        double sign;
    } cases[] = {{&p, DCRF_UNARY_PROBABILITIES, 0},
                 {&logits, DCRF_UNARY_LOGITS, 0},
                 {&shifted, DCRF_UNARY_LOGITS, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const dcrf_view view = dcrf_view_interleaved(cases[k].from->x, DCRF_F64, &grid, 3);
        assert_int_equal(dcrf_unary_energies(&view, &grid, cases[k].kind, 0, &grid, NULL, energies,
                                             PIXELS * 3, NULL),
                         DCRF_OK);
        /* Logits near 40 are floats in steps of 4e-6. */
        for (size_t i = 0; i < PIXELS * 3; i++)
            assert_true(fabs((double)energies[i] + log(fmax(p.x[i], 1e-6))) < 1e-5);
    }
    /* Energies are unchanged except for the scale; zero probabilities are clamped. */
    const dcrf_view view = dcrf_view_interleaved(logits.x, DCRF_F64, &grid, 3);
    assert_int_equal(dcrf_unary_energies(&view, &grid, DCRF_UNARY_ENERGIES, 0.5, &grid, NULL,
                                         energies, PIXELS * 3, NULL),
                     DCRF_OK);
    for (size_t i = 0; i < PIXELS * 3; i++)
        assert_true(energies[i] == (float)(0.5 * logits.x[i]));
    const double certain[] = {1, 0};
    const dcrf_grid one = dcrf_grid_2d(1, 1);
    const dcrf_view row = dcrf_view_interleaved(certain, DCRF_F64, &one, 2);
    assert_int_equal(dcrf_unary_energies(&row, &one, DCRF_UNARY_PROBABILITIES, 0, &one, NULL,
                                         energies, PIXELS * 3, NULL),
                     DCRF_OK);
    assert_true(energies[0] == 0 && energies[1] == (float)-log(1e-6));
}

/* An oracle for one axis: the polygon through the cell centres, constant outside. */
static double polygon(const double *values, size_t count, double place) {
    if (place <= 0.5)
        return values[0];
    if (place >= (double)count - 0.5)
        return values[count - 1];
    size_t k = 0;
    while ((double)k + 1.5 < place)
        k++;
    return values[k] + (place - ((double)k + 0.5)) * (values[k + 1] - values[k]);
}

static void small_arrays_are_enlarged(void **state) {
    (void)state;
    enum { W = 4, H = 3, D = 2, LABELS = 2, BIG_W = 13, BIG_H = 9, BIG_D = 5 };
    static double x[D * H * W * LABELS];
    static float energies[BIG_D * BIG_H * BIG_W * LABELS];
    const dcrf_grid from = dcrf_grid_3d(W, H, D), to = dcrf_grid_3d(BIG_W, BIG_H, BIG_D);
    const dcrf_view view = dcrf_view_interleaved(x, DCRF_F64, &from, LABELS);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t i = 0; i < D * H * W * LABELS; i++)
        x[i] = 6 * dcrf_rng_uniform(&rng);
    for (int normalized = 0; normalized < 2; normalized++) {
        assert_int_equal(
            dcrf_unary_energies(&view, &from, normalized ? DCRF_UNARY_LOGITS : DCRF_UNARY_ENERGIES,
                                0, &to, NULL, energies, BIG_D * BIG_H * BIG_W * LABELS, NULL),
            DCRF_OK);
        for (size_t v = 0; v < BIG_D * BIG_H * BIG_W; v++) {
            const double px = ((double)(v % BIG_W) + 0.5) * (double)W / (double)BIG_W;
            const double py = ((double)(v / BIG_W % BIG_H) + 0.5) * (double)H / (double)BIG_H;
            const double pz = ((double)(v / (BIG_W * BIG_H)) + 0.5) * (double)D / (double)BIG_D;
            double wanted[LABELS], sum = 0;
            for (size_t i = 0; i < LABELS; i++) {
                double planes[D];
                for (size_t z = 0; z < D; z++) {
                    double lines[H];
                    for (size_t y = 0; y < H; y++) {
                        double cells[W];
                        for (size_t c = 0; c < W; c++)
                            cells[c] = x[((z * H + y) * W + c) * LABELS + i];
                        lines[y] = polygon(cells, W, px);
                    }
                    planes[z] = polygon(lines, H, py);
                }
                wanted[i] = polygon(planes, D, pz);
                sum += exp(wanted[i]);
            }
            /* Interpolating logits and then normalizing is the same as interpolating normalized
             * logits. */
            for (size_t i = 0; i < LABELS; i++)
                assert_true(fabs((double)energies[v * LABELS + i] -
                                 (normalized ? log(sum) - wanted[i] : wanted[i])) < 1e-5);
        }
    }
}

/* The weighted means by the formula, in long double. */
static void images_guide(void **state) {
    (void)state;
    enum { W = 4, H = 3, LABELS = 3, BIG_W = 15, BIG_H = 11, CHANNELS = 2 };
    static double x[H * W * LABELS], image[BIG_H * BIG_W * CHANNELS];
    static float energies[BIG_H * BIG_W * LABELS];
    const dcrf_grid from = dcrf_grid_2d(W, H), to = dcrf_grid_2d(BIG_W, BIG_H);
    const dcrf_view view = dcrf_view_interleaved(x, DCRF_F64, &from, LABELS);
    const dcrf_view guide = dcrf_view_interleaved(image, DCRF_F64, &to, CHANNELS);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 9);
    for (size_t i = 0; i < H * W * LABELS; i++)
        x[i] = 6 * dcrf_rng_uniform(&rng);
    for (size_t i = 0; i < BIG_H * BIG_W * CHANNELS; i++)
        image[i] = 40 * dcrf_rng_uniform(&rng);
    assert_int_equal(dcrf_unary_energies(&view, &from, DCRF_UNARY_ENERGIES, 0, &to, &guide,
                                         energies, BIG_H * BIG_W * LABELS, NULL),
                     DCRF_OK);
    long double means[H * W][CHANNELS] = {{0}}, members[H * W] = {0}, centre[CHANNELS] = {0};
    for (size_t v = 0; v < BIG_W * BIG_H; v++) {
        const size_t cx = (size_t)(((double)(v % BIG_W) + 0.5) * (double)W / (double)BIG_W);
        const size_t cy = (size_t)(((double)(v / BIG_W) + 0.5) * (double)H / (double)BIG_H);
        members[cy * W + cx]++;
        for (size_t c = 0; c < CHANNELS; c++) {
            means[cy * W + cx][c] += (long double)image[v * CHANNELS + c];
            centre[c] += (long double)image[v * CHANNELS + c] / (BIG_W * BIG_H);
        }
    }
    long double variance = 0;
    for (size_t v = 0; v < BIG_W * BIG_H; v++)
        for (size_t c = 0; c < CHANNELS; c++)
            variance += powl((long double)image[v * CHANNELS + c] - centre[c], 2) / (BIG_W * BIG_H);
    for (size_t v = 0; v < BIG_W * BIG_H; v++) {
        const long double px =
            ((long double)(v % BIG_W) + 0.5L) * (long double)W / (long double)BIG_W;
        const long double py =
            ((long double)(v / BIG_W) + 0.5L) * (long double)H / (long double)BIG_H;
        long double sum[LABELS] = {0}, total = 0;
        for (size_t k = 0; k < W * H; k++) {
            const long double dx = (long double)(k % W) + 0.5L - px;
            const long double dy = (long double)(k / W) + 0.5L - py;
            /* Only the nearest cell and its direct neighbours count. */
            if (fabsl(floorl(px) - (long double)(k % W)) > 1 ||
                fabsl(floorl(py) - (long double)(k / W)) > 1)
                continue;
            long double distance = 0;
            for (size_t c = 0; c < CHANNELS; c++)
                distance +=
                    powl((long double)image[v * CHANNELS + c] - means[k][c] / members[k], 2);
            const long double weight = expl(-(dx * dx + dy * dy) / (2 * 0.5L * 0.5L) -
                                            distance / (2 * 0.3L * 0.3L * variance));
            total += weight;
            for (size_t i = 0; i < LABELS; i++)
                sum[i] += weight * (long double)x[k * LABELS + i];
        }
        /* Energies below 6, and float colours, whose differences are in the exponent. */
        for (size_t i = 0; i < LABELS; i++)
            assert_true(fabsl((long double)energies[v * LABELS + i] - sum[i] / total) < 1e-4L);
    }
    /* The scale of the image does not matter; an image of one colour has no effect. */
    static float again[BIG_H * BIG_W * LABELS];
    for (size_t i = 0; i < BIG_H * BIG_W * CHANNELS; i++)
        image[i] /= 256;
    assert_int_equal(dcrf_unary_energies(&view, &from, DCRF_UNARY_ENERGIES, 0, &to, &guide, again,
                                         BIG_H * BIG_W * LABELS, NULL),
                     DCRF_OK);
    assert_memory_equal(energies, again, sizeof energies);
    memset(image, 0, sizeof image);
    assert_int_equal(dcrf_unary_energies(&view, &from, DCRF_UNARY_LOGITS, 0, &to, &guide, again,
                                         BIG_H * BIG_W * LABELS, NULL),
                     DCRF_OK);
    for (size_t v = 0; v < BIG_W * BIG_H; v++) {
        double sum = 0;
        for (size_t i = 0; i < LABELS; i++)
            sum += exp(-(double)again[v * LABELS + i]);
        assert_true(fabs(sum - 1) < 1e-5);
    }
}

static void sizes_of_networks_fit(void **state) {
    (void)state;
    const dcrf_grid image = dcrf_grid_2d(481, 321);
    for (size_t stride = 1; stride <= 32; stride *= 2)
        for (size_t more = 0; more < 2; more++) {
            const dcrf_grid floor_or_ceil = dcrf_grid_2d((481 + more * (stride - 1)) / stride,
                                                         (321 + more * (stride - 1)) / stride);
            assert_int_equal(dcrf_unary_fits(&floor_or_ceil, &image), 1);
            const dcrf_grid turned = dcrf_grid_2d(floor_or_ceil.size[1], floor_or_ceil.size[0]);
            assert_int_equal(dcrf_unary_fits(&turned, &image), 0);
        }
    const dcrf_grid larger = dcrf_grid_2d(482, 321), square = dcrf_grid_2d(64, 64),
                    line = dcrf_grid_1d(481), volume = dcrf_grid_3d(60, 40, 1);
    assert_int_equal(dcrf_unary_fits(&larger, &image), 0);
    assert_int_equal(dcrf_unary_fits(&square, &image), 0);
    assert_int_equal(dcrf_unary_fits(&line, &image), 0);
    assert_int_equal(dcrf_unary_fits(&volume, &image), 0);
    assert_int_equal(dcrf_unary_fits(NULL, &image), 0);
}

static void bad_calls_are_refused(void **state) {
    (void)state;
    dcrf_error error;
    dcrf_unary_traits traits;
    dcrf_unary_kind kind;
    double x[] = {0.5, 1.5, 0.5, 0.5};
    float energies[4];
    const dcrf_grid grid = dcrf_grid_2d(2, 1), line = dcrf_grid_1d(2);
    const dcrf_view view = dcrf_view_interleaved(x, DCRF_F64, &grid, 2);
    dcrf_view empty = view;
    empty.data = NULL;
    assert_fails(DCRF_ERROR_ARGUMENT, "no data", error,
                 dcrf_unary_inspect(&empty, &grid, 0, &traits, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "traits", error,
                 dcrf_unary_inspect(&view, &grid, 0, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "traits", error,
                 dcrf_unary_resolve_kind(NULL, DCRF_UNARY_AUTO, &kind, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "holds 1.5 at x = 0, y = 0, label 1", error,
                 dcrf_unary_energies(&view, &grid, DCRF_UNARY_PROBABILITIES, 0, &grid, NULL,
                                     energies, 4, &error));
    assert_fails(
        DCRF_ERROR_ARGUMENT, "must be said", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_AUTO, 0, &grid, NULL, energies, 4, &error));
    assert_fails(
        DCRF_ERROR_ARGUMENT, "NULL", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, 0, &grid, NULL, NULL, 4, &error));
    assert_fails(
        DCRF_ERROR_ARGUMENT, "scale", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, -1, &grid, NULL, energies, 4, &error));
    assert_fails(
        DCRF_ERROR_SIZE, "1 axes and the image 2", error,
        dcrf_unary_energies(&view, &line, DCRF_UNARY_LOGITS, 0, &grid, NULL, energies, 4, &error));
    const dcrf_grid small = dcrf_grid_2d(1, 1);
    assert_fails(
        DCRF_ERROR_SIZE, "larger than the image", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, 0, &small, NULL, energies, 4, &error));
    const dcrf_grid wide = dcrf_grid_2d(4, 1);
    float room[8];
    assert_fails(
        DCRF_ERROR_ARGUMENT, "the image: no data", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, 0, &wide, &empty, room, 8, &error));
    /* One float less than needed, with and without enlarging. */
    energies[0] = room[0] = 9;
    assert_fails(
        DCRF_ERROR_SIZE, "the energies: the array holds 3 elements, 4 are needed", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, 0, &grid, NULL, energies, 3, &error));
    assert_fails(
        DCRF_ERROR_SIZE, "the energies: the array holds 7 elements, 8 are needed", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, 0, &wide, NULL, room, 7, &error));
    assert_true(energies[0] == 9 && room[0] == 9);
    x[2] = NAN;
    assert_fails(
        DCRF_ERROR_NOT_FINITE, "x = 1, y = 0, channel 0", error,
        dcrf_unary_energies(&view, &grid, DCRF_UNARY_LOGITS, 0, &grid, NULL, energies, 4, &error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalized_numbers_are_recognized),
        cmocka_unit_test(stored_numbers_show_their_scale),
        cmocka_unit_test(claims_are_held_against_the_numbers),
        cmocka_unit_test(what_cannot_be_told_must_be_said),
        cmocka_unit_test(one_variable_in_a_hundred_may_be_odd),
        cmocka_unit_test(a_sample_is_no_column),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(energies_follow_the_formulas),
        cmocka_unit_test(small_arrays_are_enlarged),
        cmocka_unit_test(images_guide),
        cmocka_unit_test(sizes_of_networks_fit),
        cmocka_unit_test(bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
