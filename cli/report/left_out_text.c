#include "report/left_out_text.h"

#include <math.h>
#include <stdio.h>

const char *left_out_text(const dcrf_left_out *left_out, const char *separator,
                          char text[LEFT_OUT_TEXT_BYTES]) {
    text[0] = '\0';
    if (!(left_out->fraction > 0))
        return text;
    const int length = snprintf(
        text, LEFT_OUT_TEXT_BYTES,
        "the cuts found for the compatibility do not add up to it: the bound leaves out up "
        "to %.4g of the cost of two labels, up to %.4g %% of it",
        left_out->distance, 100 * left_out->fraction);
    char *rest = text + length;
    const size_t room = LEFT_OUT_TEXT_BYTES - (size_t)length;
    if (left_out->energy > 0)
        snprintf(rest, room,
                 "%sof this labelling's energy it leaves out %.6g, so its gap stays above %.4f %%, "
                 "however long the LP runs",
                 separator, left_out->energy, 100 * left_out->gap);
    else if (!isnan(left_out->energy))
        snprintf(rest, room, "%sof this labelling's energy it leaves out nothing", separator);
    return text;
}
