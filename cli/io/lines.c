#include "io/lines.h"

#include "io/file.h"

#include <stdlib.h>
#include <string.h>

void lines_free(line_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->lines[i]);
    free(list->lines);
    *list = (line_list){0};
}

bool lines_add(line_list *list, const char *text, size_t length) {
    char **grown = realloc(list->lines, (list->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->lines = grown;
    grown[list->count] = strndup(text, length);
    return grown[list->count] != NULL && ++list->count;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without surrounding spaces, unless it is empty. */
static bool add_trimmed(line_list *list, const char *text, size_t length) {
    size_t begin = 0;
    while (begin < length && is_blank(text[begin]))
        begin++;
    while (length > begin && is_blank(text[length - 1]))
        length--;
    return begin == length || lines_add(list, text + begin, length - begin);
}

typedef bool line_adder(line_list *list, const char *text, size_t length);

static bool split_lines(const char *data, size_t size, line_adder *add, line_list *list) {
    for (size_t begin = 0; begin < size;) {
        const char *newline = memchr(data + begin, '\n', size - begin);
        const size_t end = newline ? (size_t)(newline - data) : size;
        if (!add(list, data + begin, end - begin))
            return false;
        begin = end + 1;
    }
    return true;
}

static bool read_lines(const char *path, line_adder *add, line_list *list, cli_problem *problem) {
    file_bytes bytes;
    *list = (line_list){0};
    if (!file_read(path, &bytes, problem))
        return false;
    const bool is_text = !bytes.size || !memchr(bytes.data, '\0', bytes.size);
    const bool done = is_text && split_lines((const char *)bytes.data, bytes.size, add, list);
    file_free(&bytes);
    if (!done)
        lines_free(list);
    return done || (is_text ? out_of_memory(problem, path)
                            : bad_input(problem, path, "is not a text file"));
}

bool lines_read(const char *path, line_list *list, cli_problem *problem) {
    return read_lines(path, add_trimmed, list, problem);
}

bool lines_read_all(const char *path, line_list *list, cli_problem *problem) {
    return read_lines(path, lines_add, list, problem);
}
