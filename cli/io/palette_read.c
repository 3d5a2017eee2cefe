#include "io/file.h"
#include "io/json.h"
#include "model/palette.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "#rrggbb" or "R G B", followed by the end or a space; *rest is what follows. */
static bool parse_colour(const char *line, uint8_t rgb[3], const char **rest) {
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
    *rest = line + used;
    return true;
}

/* "LABEL NAME R G B": the colour of that label, and the position of its name. */
static bool parse_numbered_colour(const char *line, palette *colours, size_t *label,
                                  const char **name, size_t *name_length) {
    unsigned number;
    int name_begin = 0, name_end = 0, used = 0;
    const char *rest;
    if (sscanf(line, "%3u %n%*s%n %n", &number, &name_begin, &name_end, &used) != 1 || used <= 0 ||
        number >= PALETTE_COLOURS || !parse_colour(line + used, colours->rgb[number], &rest))
        return false;
    *label = number;
    *name = line + name_begin;
    *name_length = (size_t)(name_end - name_begin);
    return true;
}

/* Names as they are read: of labels in any order, some of which may have none. */
typedef struct name_table {
    const char *name[PALETTE_COLOURS];
    size_t length[PALETTE_COLOURS];
} name_table;

/* The text after a colour; GIMP writes a placeholder if there is no name. */
static void note_name(name_table *table, size_t label, const char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length > 0 && !(length == 8 && memcmp(text, "Untitled", 8) == 0)) {
        table->name[label] = text;
        table->length[label] = length;
    }
}

static bool take_names(const name_table *table, size_t count, class_names *names) {
    for (size_t label = 0; label < count; label++)
        if (!table->name[label])
            return true;
    for (size_t label = 0; label < count; label++)
        if (!lines_add(names, table->name[label], table->length[label])) {
            lines_free(names);
            return false;
        }
    return true;
}

/* Empty lines, comments and the header of a GIMP palette. */
static bool is_decoration(const char *line) {
    uint8_t rgb[3];
    const char *rest;
    return line[strspn(line, " \t\r")] == '\0' ||
           (line[0] == '#' && !parse_colour(line, rgb, &rest)) ||
           strncmp(line, "GIMP Palette", 12) == 0 || strncmp(line, "Name:", 5) == 0 ||
           strncmp(line, "Columns:", 8) == 0;
}

static bool parse_lines(const char *path, char *text, palette *colours, class_names *names,
                        cli_problem *problem) {
    size_t count = 0, number = 0;
    name_table table = {{NULL}, {0}};
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
        size_t label = count, name_length = 0;
        const char *name = NULL;
        if (parse_colour(line, colours->rgb[count], &name)) {
            note_name(&table, label, name);
        } else if (parse_numbered_colour(line, colours, &label, &name, &name_length)) {
            table.name[label] = name;
            table.length[label] = name_length;
        } else {
            return bad_input(problem, path, "line %zu is not a colour: write #rrggbb or R G B",
                             number);
        }
        count++;
    }
    if (count == 0)
        return bad_input(problem, path, "has no colours: write one per line, #rrggbb");
    return !names || take_names(&table, count, names) || out_of_memory(problem, path);
}

/* The labels of saved settings, {"labels": [{"name": "sky", "colour": "#rrggbb"}, ...]}, as
 * lines of a palette; the caller frees them. */
static char *lines_of_settings(const char *json, const char *file, cli_problem *problem) {
    char *lines = NULL;
    size_t bytes;
    json_error_t error;
    json_t *root = json_loads(json, 0, &error);
    json_t *label, *labels = json_object_get(root, "labels");
    size_t index;
    FILE *stream = open_memstream(&lines, &bytes);
    bool is_written = stream != NULL;
    json_array_foreach(labels, index, label) {
        const char *colour = json_string_value(json_object_get(label, "colour"));
        const char *name = json_string_value(json_object_get(label, "name"));
        if (stream)
            fprintf(stream, "%s %.*s\n", colour ? colour : "?",
                    name ? (int)strcspn(name, "\r\n") : 0, name ? name : "");
    }
    if (stream && fclose(stream) != 0)
        is_written = false;
    const bool has_labels = json_array_size(labels) > 0;
    json_decref(root);
    if (is_written && has_labels)
        return lines;
    free(lines);
    if (!is_written)
        out_of_memory(problem, file);
    else
        bad_input(problem, file,
                  "has no \"labels\" with colours: write one colour per line, #rrggbb");
    return NULL;
}

bool palette_parse(const uint8_t *data, size_t size, const char *file, palette *colours,
                   class_names *names, cli_problem *problem) {
    if (names)
        *names = (class_names){0};
    char *text = malloc(size + 1);
    if (!text)
        return out_of_memory(problem, file);
    memcpy(text, data, size);
    text[size] = '\0';
    bool done = memchr(text, '\0', size) == NULL || bad_input(problem, file, "is not a text file");
    if (done && text[strspn(text, " \t\r\n")] == '{') {
        char *lines = lines_of_settings(text, file, problem);
        free(text);
        text = lines;
        done = text != NULL;
    }
    done = done && parse_lines(file, text, colours, names, problem);
    free(text);
    return done;
}

bool palette_read(const char *path, palette *colours, class_names *names, cli_problem *problem) {
    file_bytes bytes;
    if (!file_read(path, &bytes, problem))
        return false;
    const bool done = palette_parse(bytes.data, bytes.size, path, colours, names, problem);
    file_free(&bytes);
    return done;
}
