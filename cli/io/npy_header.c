/* The header of a .npy file: a Python dictionary with the three keys descr, fortran_order and
 * shape, as described in numpy.lib.format. The grammar read here is the subset of Python's that
 * NumPy writes:
 *
 *   header = "{" [ entry { "," entry } [ "," ] ] "}"
 *   entry  = string ":" ( string | "True" | "False" | shape )
 *   shape  = "(" [ number { "," number } [ "," ] ] ")"
 *
 * with spaces anywhere between tokens and a newline at the end; a number may end in L (Python
 * 2). */
#include "io/npy.h"

#include <string.h>

typedef struct header_reader {
    const char *at;
    const char *end;
    const char *file;
    npy_array *array;
    cli_problem *problem;
} header_reader;

static bool broken(const header_reader *r, const char *what) {
    return bad_input(r->problem, r->file, "its .npy header is broken: %s", what);
}

static void skip_blanks(header_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n'))
        r->at++;
}

static bool accept(header_reader *r, char wanted) {
    skip_blanks(r);
    if (r->at == r->end || *r->at != wanted)
        return false;
    r->at++;
    return true;
}

static bool accept_word(header_reader *r, const char *word) {
    const size_t length = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* A string without escapes; *text points into the header. */
static bool read_string(header_reader *r, const char **text, size_t *length) {
    skip_blanks(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return broken(r, "a string is missing");
    const char quote = *r->at++;
    const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (!close || memchr(r->at, '\\', (size_t)(close - r->at)))
        return broken(r, "a string does not end");
    *text = r->at;
    *length = (size_t)(close - r->at);
    r->at = close + 1;
    return true;
}

static bool known_type(char kind, size_t bytes) {
    switch (kind) {
    case 'b':
        return bytes == 1;
    case 'u':
    case 'i':
        return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f':
        return bytes == 2 || bytes == 4 || bytes == 8;
    default:
        return false;
    }
}

static bool read_type(header_reader *r) {
    const char *text;
    size_t length;
    skip_blanks(r);
    if (r->at < r->end && *r->at == '[')
        return bad_input(r->problem, r->file, "is a structured array; save one plain field of it");
    if (!read_string(r, &text, &length))
        return false;
    npy_array *array = r->array;
    if (length == 3 && (text[0] == '<' || text[0] == '>' || text[0] == '|') && text[2] >= '1' &&
        text[2] <= '8') {
        array->kind = text[1];
        array->item_bytes = (size_t)(text[2] - '0');
        array->big_endian = text[0] == '>';
        /* The byte order is irrelevant only for single bytes. */
        if (known_type(array->kind, array->item_bytes) &&
            (text[0] != '|' || array->item_bytes == 1))
            return true;
    }
    return bad_input(r->problem, r->file,
                     "its elements are of type '%.*s'; save booleans, integers or float16, "
                     "float32, float64",
                     (int)(length < 24 ? length : 24), text);
}

static bool read_order(header_reader *r) {
    if (accept_word(r, "True"))
        r->array->fortran_order = true;
    else if (accept_word(r, "False"))
        r->array->fortran_order = false;
    else
        return broken(r, "fortran_order is neither True nor False");
    return true;
}

static bool read_extent(header_reader *r, size_t *extent) {
    size_t number = 0;
    const char *first = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        const size_t digit = (size_t)(*r->at - '0');
        if (number > (SIZE_MAX - digit) / 10)
            return broken(r, "its shape is absurdly large");
        number = number * 10 + digit;
    }
    if (r->at == first)
        return broken(r, "the shape holds something that is not a number");
    if (r->at < r->end && *r->at == 'L')
        r->at++;
    *extent = number;
    return true;
}

static bool read_shape(header_reader *r) {
    npy_array *array = r->array;
    if (!accept(r, '('))
        return broken(r, "the shape is not a tuple");
    array->axes = 0;
    array->count = 1;
    while (!accept(r, ')')) {
        if (array->axes > 0 && !accept(r, ','))
            return broken(r, "the shape does not end");
        if (array->axes > 0 && accept(r, ')'))
            break;
        size_t extent = 0;
        if (!read_extent(r, &extent))
            return false;
        if (array->axes == NPY_MAX_AXES)
            return bad_input(r->problem, r->file, "has more than %d axes", NPY_MAX_AXES);
        if (extent == 0)
            return bad_input(r->problem, r->file, "is an empty array: axis %zu has size 0",
                             array->axes);
        if (array->count > SIZE_MAX / 8 / extent)
            return broken(r, "its shape is absurdly large");
        array->count *= extent;
        array->shape[array->axes++] = extent;
    }
    if (array->axes == 0)
        return bad_input(r->problem, r->file, "is a single number, not an array");
    return true;
}

static bool read_entries(header_reader *r) {
    static const struct {
        const char *name;
        bool (*read)(header_reader *);
    } keys[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    bool seen[KEYS] = {false};
    size_t count = 0;

    if (!accept(r, '{'))
        return broken(r, "it is not a dictionary");
    while (!accept(r, '}')) {
        const char *name;
        size_t length, k = 0;
        if (count > 0 && !accept(r, ','))
            return broken(r, "an entry does not end with a comma");
        if (count > 0 && accept(r, '}'))
            break;
        if (!read_string(r, &name, &length))
            return false;
        while (k < KEYS && (strlen(keys[k].name) != length || memcmp(keys[k].name, name, length)))
            k++;
        if (k == KEYS || seen[k])
            return broken(r, k == KEYS ? "it has an unknown key" : "a key occurs twice");
        if (!accept(r, ':'))
            return broken(r, "a colon is missing");
        if (!keys[k].read(r))
            return false;
        seen[k] = true;
        count++;
    }
    return count == KEYS || broken(r, "descr, fortran_order or shape is missing");
}

bool npy_parse_header(const char *text, size_t length, const char *file, npy_array *array,
                      cli_problem *problem) {
    header_reader reader = {text, text + length, file, array, problem};
    if (!read_entries(&reader))
        return false;
    skip_blanks(&reader);
    return reader.at == reader.end || broken(&reader, "something follows the dictionary");
}
