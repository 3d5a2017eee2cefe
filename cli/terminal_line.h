/* A line at the bottom of the terminal that is redrawn repeatedly. */
#ifndef DCRF_CLI_TERMINAL_LINE_H
#define DCRF_CLI_TERMINAL_LINE_H

#include <stdbool.h>

#define TERMINAL_LINE_BYTES 256

typedef struct terminal_line {
    bool on; /* standard error is a terminal, and a line is wanted there */
    bool drawn;
    double began_s;
    double drawn_s;
} terminal_line;

void terminal_line_begin(terminal_line *line, bool wanted);

/* Is it time to draw? Short work draws nothing; long work draws only now and then. */
bool terminal_line_due(const terminal_line *line);

/* Begin a text with a bar that is full at 1, and append to it; what does not fit is truncated. */
void terminal_line_bar(char text[TERMINAL_LINE_BYTES], double fraction);
void terminal_line_add(char text[TERMINAL_LINE_BYTES], const char *format, double value);

/* Since the start. */
double terminal_line_seconds(const terminal_line *line);

void terminal_line_draw(terminal_line *line, const char *text);
void terminal_line_wipe(terminal_line *line);

#endif
