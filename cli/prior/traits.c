/* A mask that was resized, blurred or saved as JPEG has numbers between 0 and 255, and must not
 * be taken for a map of 250 labels. In a label map most pixels have the same number as their
 * neighbour; across a soft border the numbers change from pixel to pixel, and there are many of
 * them. */
#include "prior/traits.h"

#include "io/label_map.h"

#include <dcrf/dcrf.h>
#include <math.h>

/* How far from 0 or 255 counts as dark or bright in a soft mask. */
#define NEARLY 16
/* More labels than data sets with a void of 255 usually have. */
#define LABELS_USUAL 64
/* This many numbers in one map are shades, not labels, unless they form large patches. */
#define SHADES 64
#define SHADE_WIDTH 16
/* The share of pixels that must be dark or bright in a mask rounded by its format. */
#define ROUNDED_SHARE 0.9
#define ROUNDED_NEARLY 48
/* The range of the one grey that means unknown in a trimap. */
#define TRIMAP_FIRST 96
#define TRIMAP_LAST 160

static bool is_unknown(const unary_options *options, int32_t number) {
    const unknown_value unknown = options->prior_unknown;
    return (unknown.kind == UNKNOWN_AUTO && number == PRIOR_VOID) ||
           (unknown.kind == UNKNOWN_NUMBER && number == unknown.value);
}

void prior_inspect(const unary_options *options, const cli_image *image, const int32_t *numbers,
                   size_t first, size_t count, prior_traits *traits) {
    for (size_t i = 0; i < count; i++) {
        const int32_t number = numbers[i];
        if (number == MAP_MISSING)
            continue;
        traits->pixels++;
        const bool is_narrow = number >= 0 && number < PRIOR_NUMBERS;
        if (is_narrow)
            traits->counts[number]++;
        traits->is_wide = traits->is_wide || !is_narrow;
        traits->changes += number > 0 && number < PRIOR_VOID && (i + 1) % image->width != 0 &&
                           i + 1 < count && numbers[i + 1] != number;
        if (is_unknown(options, number))
            continue;
        if (!traits->has_bad &&
            (number < 0 || number >= DCRF_MAX_LABELS ||
             (options->label_count && (size_t)number >= options->label_count))) {
            traits->has_bad = true;
            traits->bad = number;
            traits->bad_pixel = first + i;
        }
        traits->end = number >= traits->end ? number + 1 : traits->end;
    }
}

static size_t count_from(const prior_traits *traits, int32_t first, int32_t last) {
    size_t sum = 0;
    for (int32_t number = first; number <= last; number++)
        sum += traits->counts[number];
    return sum;
}

static size_t shades_from(const prior_traits *traits, int32_t first, int32_t last) {
    size_t shades = 0;
    for (int32_t number = first; number <= last; number++)
        shades += traits->counts[number] > 0;
    return shades;
}

static bool may_be_mask(const unary_options *options, const prior_traits *traits) {
    return options->prior_unknown.kind == UNKNOWN_AUTO && options->label_count <= 2 &&
           !traits->is_wide;
}

static bool is_trimap(const prior_traits *traits) {
    return shades_from(traits, 1, PRIOR_VOID - 1) == 1 &&
           shades_from(traits, TRIMAP_FIRST, TRIMAP_LAST) == 1;
}

static bool is_soft(const prior_traits *traits) {
    const size_t between = count_from(traits, 1, PRIOR_VOID - 1);
    const size_t dark = count_from(traits, 0, NEARLY);
    const size_t bright = count_from(traits, PRIOR_VOID - NEARLY, PRIOR_VOID);
    if (traits->is_rounded)
        return dark > 0 && bright > 0 &&
               (double)(count_from(traits, 0, ROUNDED_NEARLY) +
                        count_from(traits, PRIOR_VOID - ROUNDED_NEARLY, PRIOR_VOID)) >=
                   ROUNDED_SHARE * (double)traits->pixels;
    if (dark == 0 || bright == 0 || count_from(traits, LABELS_USUAL + 1, PRIOR_VOID - 1) == 0)
        return false;
    return is_trimap(traits) || 2 * traits->changes > between ||
           (shades_from(traits, 1, PRIOR_VOID - 1) >= SHADES &&
            SHADE_WIDTH * traits->changes > between);
}

bool prior_resolve(const unary_options *options, const cli_image *image, const prior_traits *traits,
                   size_t *labels, unary_facts *facts, cli_problem *problem) {
    const char *file = options->prior_file;
    char text[IMAGE_TEXT_BYTES];
    const bool is_two = traits->counts[0] > 0 && traits->counts[PRIOR_VOID] > 0 &&
                        count_from(traits, 1, PRIOR_VOID - 1) == 0;
    facts->is_mask = may_be_mask(options, traits) && is_two;
    facts->is_soft = may_be_mask(options, traits) && !facts->is_mask && is_soft(traits);
    facts->is_trimap = facts->is_soft && is_trimap(traits);
    if (traits->is_rounded && !facts->is_mask && !facts->is_soft)
        return bad_input(problem, file,
                         "is a JPEG and no mask of black and white: it does not keep numbers as "
                         "they were; save it as a PNG");
    if (traits->has_bad && !facts->is_mask && !facts->is_soft)
        return bad_input(problem, file, "has the label %d at %s; labels run from 0 to %zu",
                         (int)traits->bad, image_place_text(image, traits->bad_pixel, text),
                         (options->label_count ? options->label_count : DCRF_MAX_LABELS) - 1);
    *labels = options->label_count               ? options->label_count
              : facts->is_mask || facts->is_soft ? 2
                                                 : (size_t)traits->end;
    if (*labels < 2 || *labels > DCRF_MAX_LABELS)
        return bad_input(problem, options->label_count ? "--label-count" : file,
                         "gives %zu labels; 2 to %d are needed%s", *labels, DCRF_MAX_LABELS,
                         options->label_count ? "" : " (see --label-count)");
    if (options->confidence > 0 && options->confidence * (double)*labels <= 1)
        return bad_input(problem, "--confidence",
                         "%g is not more than chance among %zu labels; give more than %g",
                         options->confidence, *labels, 1 / (double)*labels);
    return true;
}

int32_t prior_label(const unary_options *options, const unary_facts *facts, int32_t number) {
    if (facts->is_trimap && number >= TRIMAP_FIRST && number <= TRIMAP_LAST)
        return -1;
    if (facts->is_mask || facts->is_soft)
        return number > PRIOR_VOID / 2;
    return is_unknown(options, number) ? -1 : number;
}

double prior_sureness(const unary_facts *facts, int32_t number) {
    return facts->is_soft ? fabs(2.0 * number / PRIOR_VOID - 1) : 1;
}
