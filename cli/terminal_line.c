#include "terminal_line.h"

#include "clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_DRAWN_AFTER_S 1.0
#define DRAWN_EVERY_S 0.1
#define BAR_CELLS 20

void terminal_line_begin(terminal_line *line, bool wanted) {
    *line = (terminal_line){.on = wanted && isatty(STDERR_FILENO), .began_s = seconds_now()};
}

bool terminal_line_due(const terminal_line *line) {
    const double now_s = seconds_now();
    return line->on && now_s - line->began_s >= FIRST_DRAWN_AFTER_S &&
           (!line->drawn || now_s - line->drawn_s >= DRAWN_EVERY_S);
}

double terminal_line_seconds(const terminal_line *line) {
    return seconds_now() - line->began_s;
}

void terminal_line_bar(char text[TERMINAL_LINE_BYTES], double fraction) {
    char cells[BAR_CELLS + 1];
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', (size_t)(fraction * BAR_CELLS));
    cells[BAR_CELLS] = '\0';
    snprintf(text, TERMINAL_LINE_BYTES, "[%s]", cells);
}

void terminal_line_add(char text[TERMINAL_LINE_BYTES], const char *format, double value) {
    const size_t used = strlen(text);
    snprintf(text + used, TERMINAL_LINE_BYTES - used, format, value);
}

static int terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void terminal_line_draw(terminal_line *line, const char *text) {
    fprintf(stderr, "\r%.*s\033[K", terminal_columns() - 1, text);
    fflush(stderr);
    line->drawn = true;
    line->drawn_s = seconds_now();
}

void terminal_line_wipe(terminal_line *line) {
    if (line->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    line->drawn = false;
}
