/* Levenshtein distance (insert, delete, replace), one row of the table at a time. A name is near
 * if at most a third of its letters have to change, though one or two always may; a prefix of a
 * name is near too, of the shortest one if there are several. */
#include "args/nearest.h"

#include <stdbool.h>
#include <string.h>

#define LONGEST_NAME 63

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, const char *b) {
    const size_t a_length = strlen(a), b_length = strlen(b);
    size_t row[LONGEST_NAME + 1];
    if (a_length > LONGEST_NAME || b_length > LONGEST_NAME)
        return LONGEST_NAME + 1;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

/* Do two names begin alike and differ only at the end, as unaries and unary do? */
static bool have_one_stem(const char *a, const char *b) {
    const size_t a_length = strlen(a), b_length = strlen(b);
    size_t common = 0;
    while (a[common] && a[common] == b[common])
        common++;
    return common >= 4 && a_length - common <= 3 && b_length - common <= 3;
}

nearest_name nearest_start(const char *wanted) {
    const size_t third = strlen(wanted) / 3;
    return (nearest_name){wanted, NULL, (third > 2 ? third : 2) + 1};
}

void nearest_offer(nearest_name *nearest, const char *candidate) {
    const size_t length = strlen(nearest->wanted);
    if (length == 0)
        return;
    size_t distance = edit_distance(nearest->wanted, candidate);
    /* With every letter changed, it is a different name. */
    if (distance >= length || distance >= strlen(candidate))
        distance = LONGEST_NAME + 1;
    if (strncmp(nearest->wanted, candidate, length) == 0)
        distance = 0;
    else if (have_one_stem(nearest->wanted, candidate) && distance > 1)
        distance = 1;
    const bool is_shorter = distance == 0 && nearest->best_distance == 0 && nearest->best &&
                            strlen(candidate) < strlen(nearest->best);
    if (distance < nearest->best_distance || is_shorter) {
        nearest->best = candidate;
        nearest->best_distance = distance;
    }
}
