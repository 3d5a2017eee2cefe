/* Telling masks from label maps by their numbers (dcrf/masks.h). */
#include <dcrf/masks.h>
#include <stdbool.h>

#define BRIGHT 255
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

void dcrf_mask_inspect(dcrf_mask_traits *traits, const int32_t *numbers, size_t width,
                       size_t rows) {
    for (size_t i = 0; traits && numbers && i < width * rows; i++) {
        const int32_t number = numbers[i];
        if (number == DCRF_MASK_MISSING)
            continue;
        traits->pixels++;
        if (number < 0 || number > BRIGHT)
            traits->is_wide = 1;
        else
            traits->counts[number]++;
        traits->changes +=
            number > 0 && number < BRIGHT && (i + 1) % width != 0 && numbers[i + 1] != number;
    }
}

static size_t count_from(const dcrf_mask_traits *traits, size_t first, size_t last) {
    size_t sum = 0;
    for (size_t number = first; number <= last; number++)
        sum += traits->counts[number];
    return sum;
}

static size_t shades_from(const dcrf_mask_traits *traits, size_t first, size_t last) {
    size_t shades = 0;
    for (size_t number = first; number <= last; number++)
        shades += traits->counts[number] > 0;
    return shades;
}

static bool is_trimap(const dcrf_mask_traits *traits) {
    return shades_from(traits, 1, BRIGHT - 1) == 1 &&
           shades_from(traits, TRIMAP_FIRST, TRIMAP_LAST) == 1;
}

static bool is_soft(const dcrf_mask_traits *traits) {
    const size_t between = count_from(traits, 1, BRIGHT - 1);
    if (count_from(traits, 0, NEARLY) == 0 || count_from(traits, BRIGHT - NEARLY, BRIGHT) == 0)
        return false;
    if (traits->is_rounded)
        return (double)(count_from(traits, 0, ROUNDED_NEARLY) +
                        count_from(traits, BRIGHT - ROUNDED_NEARLY, BRIGHT)) >=
               ROUNDED_SHARE * (double)traits->pixels;
    if (count_from(traits, LABELS_USUAL + 1, BRIGHT - 1) == 0)
        return false;
    return is_trimap(traits) || 2 * traits->changes > between ||
           (shades_from(traits, 1, BRIGHT - 1) >= SHADES &&
            SHADE_WIDTH * traits->changes > between);
}

dcrf_mask_kind dcrf_mask_kind_of(const dcrf_mask_traits *traits) {
    if (!traits || traits->is_wide)
        return DCRF_MASK_LABELS;
    if (traits->counts[0] > 0 && traits->counts[BRIGHT] > 0 &&
        count_from(traits, 1, BRIGHT - 1) == 0)
        return DCRF_MASK_HARD;
    return !is_soft(traits)    ? DCRF_MASK_LABELS
           : is_trimap(traits) ? DCRF_MASK_TRIMAP
                               : DCRF_MASK_SOFT;
}

int32_t dcrf_mask_label(dcrf_mask_kind kind, int32_t number) {
    if (kind == DCRF_MASK_TRIMAP && number >= TRIMAP_FIRST && number <= TRIMAP_LAST)
        return -1;
    return kind == DCRF_MASK_LABELS ? number : number > BRIGHT / 2;
}
