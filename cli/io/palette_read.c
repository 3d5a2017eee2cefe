#include "io/file.h"
#include "palette.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "#rrggbb" or "R G B", and then the end or a blank. */
static bool parse_colour(const char *line, uint8_t rgb[3]) {
    unsigned value[3];
    int used = 0;
    const bool hexadecimal = line[0] == '#' && strspn(line + 1, "0123456789abcdefABCDEF") == 6;
    const int count = hexadecimal
                          ? sscanf(line, "#%2x%2x%2x%n", &value[0], &value[1], &value[2], &used)
                          : sscanf(line, "%3u %3u %3u%n", &value[0], &value[1], &value[2], &used);
    if (count != 3 || (line[used] != '\0' && !isspace((unsigned char)line[used])))
        return false;
    for (int c = 0; c < 3; c++) {
        if (value[c] > 255)
            return false;
        rgb[c] = (uint8_t)value[c];
    }
    return true;
}

/* "LABEL NAME R G B": the colour of that label. */
static bool parse_numbered_colour(const char *line, palette *colours) {
    unsigned label;
    int used = 0;
    return sscanf(line, "%3u %*s %n", &label, &used) == 1 && used > 0 && label < PALETTE_COLOURS &&
           parse_colour(line + used, colours->rgb[label]);
}

/* Empty lines, comments and the head of a GIMP palette. */
static bool is_decoration(const char *line) {
    uint8_t rgb[3];
    return line[strspn(line, " \t\r")] == '\0' || (line[0] == '#' && !parse_colour(line, rgb)) ||
           strncmp(line, "GIMP Palette", 12) == 0 || strncmp(line, "Name:", 5) == 0 ||
           strncmp(line, "Columns:", 8) == 0;
}

static bool parse_lines(const char *path, char *text, palette *colours, cli_problem *problem) {
    size_t count = 0, number = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        line += strspn(line, " \t");
        if (is_decoration(line))
            continue;
        if (count == PALETTE_COLOURS)
            return bad_input(problem, path, "has more than %d colours", PALETTE_COLOURS);
        if (!parse_colour(line, colours->rgb[count]) && !parse_numbered_colour(line, colours))
            return bad_input(problem, path, "line %zu is not a colour: write #rrggbb or R G B",
                             number);
        count++;
    }
    return count > 0 || bad_input(problem, path, "has no colours: write one a line, #rrggbb");
}

bool palette_parse(const uint8_t *data, size_t size, const char *file, palette *colours,
                   cli_problem *problem) {
    char *text = malloc(size + 1);
    if (!text)
        return out_of_memory(problem, file);
    memcpy(text, data, size);
    text[size] = '\0';
    const bool done = memchr(text, '\0', size) == NULL
                          ? parse_lines(file, text, colours, problem)
                          : bad_input(problem, file, "is not a text file");
    free(text);
    return done;
}

bool palette_read(const char *path, palette *colours, cli_problem *problem) {
    file_bytes bytes;
    if (!file_read(path, &bytes, problem))
        return false;
    const bool done = palette_parse(bytes.data, bytes.size, path, colours, problem);
    file_free(&bytes);
    return done;
}
