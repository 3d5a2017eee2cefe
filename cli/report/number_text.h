/* A number in as few digits as give it back. */
#ifndef DCRF_CLI_REPORT_NUMBER_TEXT_H
#define DCRF_CLI_REPORT_NUMBER_TEXT_H

#define NUMBER_TEXT_BYTES 32

/* "0.1", "100", "1e-07"; reading the text gives `value` again, bit for bit. */
const char *number_text(double value, char text[NUMBER_TEXT_BYTES]);

/* The number with this many significant digits that is nearest. */
double number_rounded(double value, int digits);

#endif
