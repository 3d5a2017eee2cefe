#include "prior/traits.h"

#include "io/label_map.h"

#include <dcrf/dcrf.h>
#include <math.h>

static bool is_unknown(const unary_options *options, int32_t number) {
    const unknown_value unknown = options->prior_unknown;
    return (unknown.kind == UNKNOWN_AUTO && number == PRIOR_VOID) ||
           (unknown.kind == UNKNOWN_NUMBER && number == unknown.value);
}

void prior_inspect(const unary_options *options, const cli_image *image, const int32_t *numbers,
                   size_t first, size_t count, prior_traits *traits) {
    dcrf_mask_inspect(&traits->numbers, numbers, image->width, count / image->width);
    for (size_t i = 0; i < count; i++) {
        const int32_t number = numbers[i];
        if (number == MAP_MISSING || is_unknown(options, number))
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

static dcrf_mask_kind kind_of(const unary_options *options, const prior_traits *traits) {
    return options->prior_unknown.kind == UNKNOWN_AUTO && options->label_count <= 2
               ? dcrf_mask_kind_of(&traits->numbers)
               : DCRF_MASK_LABELS;
}

bool prior_resolve(const unary_options *options, const cli_image *image, const prior_traits *traits,
                   size_t *labels, unary_facts *facts, cli_problem *problem) {
    const char *file = options->prior_file;
    char text[IMAGE_TEXT_BYTES];
    facts->map_kind = kind_of(options, traits);
    const bool is_mask = facts->map_kind != DCRF_MASK_LABELS;
    if (traits->numbers.is_rounded && !is_mask)
        return bad_input(problem, file,
                         "is a JPEG and no mask of black and white: it does not keep numbers as "
                         "they were; save it as a PNG");
    if (traits->has_bad && !is_mask)
        return bad_input(problem, file, "has the label %d at %s; labels run from 0 to %zu",
                         (int)traits->bad, image_place_text(image, traits->bad_pixel, text),
                         (options->label_count ? options->label_count : DCRF_MAX_LABELS) - 1);
    *labels = options->label_count ? options->label_count : is_mask ? 2 : (size_t)traits->end;
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
    return facts->map_kind == DCRF_MASK_LABELS && is_unknown(options, number)
               ? -1
               : dcrf_mask_label(facts->map_kind, number);
}

double prior_sureness(const unary_facts *facts, int32_t number) {
    return facts->map_kind >= DCRF_MASK_SOFT ? fabs(2.0 * number / PRIOR_VOID - 1) : 1;
}
