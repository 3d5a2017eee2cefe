/* What the LP's bound leaves out of a compatibility, in words. */
#ifndef DCRF_CLI_REPORT_LEFT_OUT_TEXT_H
#define DCRF_CLI_REPORT_LEFT_OUT_TEXT_H

#include <dcrf/compatibility.h>

/* One or two sentences without a full stop, or an empty text if nothing is left out. `separator`
 * is between the two: ";\n      " or "; ". */
#define LEFT_OUT_TEXT_BYTES 320
const char *left_out_text(const dcrf_left_out *left_out, const char *separator,
                          char text[LEFT_OUT_TEXT_BYTES]);

#endif
