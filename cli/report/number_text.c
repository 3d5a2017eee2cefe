#include "report/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DIGITS_OF_A_DOUBLE 17

const char *number_text(double value, char text[NUMBER_TEXT_BYTES]) {
    /* With fewer significant digits than integer digits, 100 would become 1e+02. */
    const double size = fabs(value);
    int digits = size >= 1 && size < 1e15 ? (int)floor(log10(size)) + 1 : 1;
    do
        snprintf(text, NUMBER_TEXT_BYTES, "%.*g", digits, value);
    while (strtod(text, NULL) != value && digits++ < DIGITS_OF_A_DOUBLE);
    return text;
}

double number_rounded(double value, int digits) {
    char text[NUMBER_TEXT_BYTES];
    snprintf(text, sizeof text, "%.*e", digits - 1, value);
    return strtod(text, NULL);
}
