/* The shortest text of a number that reads back exactly. */
#ifndef DCRF_CLI_REPORT_NUMBER_TEXT_H
#define DCRF_CLI_REPORT_NUMBER_TEXT_H

#define NUMBER_TEXT_BYTES 32

/* "0.1", "100", "1e-07"; parsing the text gives `value` again, bit for bit. */
const char *number_text(double value, char text[NUMBER_TEXT_BYTES]);

/* The nearest number with this many significant digits. */
double number_rounded(double value, int digits);

#endif
