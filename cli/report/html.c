#include "report/html.h"

#include "io/file.h"
#include "io/picture.h"
#include "io/png_format.h"
#include "report/svg_axis.h"
#include "report_assets.h"

#include <dcrf/dcrf.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ----------------------------------------------------------------------------------- */

/* The length of the UTF-8 character at `text`; 0: invalid, or not allowed in XML. */
static size_t character_bytes(const unsigned char *text) {
    /* The smallest code point of each length: overlong encodings are not valid UTF-8. */
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = text[0] < 0x80         ? 1
                         : text[0] >> 5 == 0x06 ? 2
                         : text[0] >> 4 == 0x0e ? 3
                         : text[0] >> 3 == 0x1e ? 4
                                                : 0;
    if (bytes == 0)
        return 0;
    if (bytes == 1)
        return text[0] >= ' ' || text[0] == '\t' || text[0] == '\n' ? 1 : 0;
    uint32_t code = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (text[i] >> 6 != 0x02)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    const bool special = code == 0xfffe || code == 0xffff || code > 0x10ffff;
    return code >= smallest[bytes] && !surrogate && !special ? bytes : 0;
}

void html_write_escaped(FILE *stream, const char *text) {
    while (*text) {
        const size_t bytes = character_bytes((const unsigned char *)text);
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        case '\'':
            fputs("&#39;", stream);
            break;
        default:
            fwrite(bytes ? text : "?", 1, bytes ? bytes : 1, stream);
        }
        text += bytes ? bytes : 1;
    }
}

/* ---- the page ------------------------------------------------------------------------------- */

static void write_lines(FILE *stream, const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        fputs(lines[i], stream);
}

void html_begin_style(FILE *stream, const char *title) {
    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>dcrf: ",
          stream);
    html_write_escaped(stream, title);
    fputs("</title>\n<style>\n", stream);
    svg_write_style(stream);
    write_lines(stream, style_lines, sizeof style_lines / sizeof style_lines[0]);
}

void html_begin_body(FILE *stream, const char *title) {
    fputs("</style>\n</head>\n<body>\n<main>\n<h1>", stream);
    html_write_escaped(stream, title);
    fputs("</h1>\n", stream);
}

static void write_script(FILE *stream, const char *const *lines, size_t count) {
    fputs("<script>\n", stream);
    write_lines(stream, lines, count);
    fputs("</script>\n", stream);
}

void html_end_page(FILE *stream, int abilities) {
    fprintf(stream,
            "<footer>Written by dcrf %s. This page needs no other file.</footer>\n</main>\n",
            dcrf_version());
    if (abilities & HTML_COMPARES)
        write_script(stream, compare_lines, sizeof compare_lines / sizeof compare_lines[0]);
    if (abilities & HTML_ZOOMS)
        write_script(stream, zoom_lines, sizeof zoom_lines / sizeof zoom_lines[0]);
    fputs("</body>\n</html>\n", stream);
}

void html_write_settings(FILE *stream, const char *title, json_t *settings) {
    const char *name;
    json_t *value;
    fprintf(stream, "<section><h2>%s</h2><div class='scroll'><table class='settings'>\n", title);
    json_object_foreach(settings, name, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        fprintf(stream, "<tr><td>%s</td><td>", name);
        html_write_escaped(stream, json_is_string(value) ? json_string_value(value)
                                   : text                ? text
                                                         : "");
        fputs("</td></tr>\n", stream);
        free(text);
    }
    fputs("</table></div></section>\n", stream);
}

/* ---- pictures ------------------------------------------------------------------------------- */

static void write_data(FILE *stream, const char *type, const uint8_t *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fprintf(stream, "data:%s;base64,", type);
    for (size_t i = 0; i < size; i += 3) {
        const size_t given = size - i < 3 ? size - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < given ? data[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            fputc(k <= given ? digits[bits >> (18 - 6 * k) & 63] : '=', stream);
    }
}

size_t html_picture_step(size_t width, size_t height, bool is_small) {
    const size_t most = is_small ? HTML_SMALL_PICTURE_PIXELS : HTML_PICTURE_PIXELS;
    size_t step = 1;
    while (((width - 1) / step + 1) * ((height - 1) / step + 1) > most)
        step++;
    return step;
}

/* Every `step`th row and column; false if out of memory. */
static bool thin_out(html_picture *shown, size_t step, uint16_t **samples) {
    const size_t values = shown->channels > 0 ? shown->channels : 1;
    const size_t width = (shown->width - 1) / step + 1, height = (shown->height - 1) / step + 1;
    uint16_t *to = *samples = calloc(width * height, values * sizeof *to);
    if (!to)
        return false;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++, to += values)
            memcpy(to, shown->samples + (y * shown->width + x) * step * values,
                   values * sizeof *to);
    shown->width = width;
    shown->height = height;
    shown->samples = *samples;
    return true;
}

static bool encode(FILE *stream, const char *file, const html_picture *shown,
                   cli_problem *problem) {
    const bool is_labels = shown->channels == 0;
    const png_layout layout = {.width = shown->width,
                               .height = shown->height,
                               .channels = is_labels ? 1 : shown->channels,
                               .palette = is_labels ? shown->colours->rgb : NULL,
                               .is_fast = shown->is_fast};
    return png_write(stream, file, shown->samples, layout, problem);
}

bool html_write_picture(FILE *stream, const char *file, const html_picture *given,
                        cli_problem *problem) {
    char *png = NULL;
    size_t bytes = 0;
    uint16_t *fewer = NULL;
    html_picture shown = *given;
    const size_t step = html_picture_step(given->width, given->height, false);
    if (!shown.samples || (step > 1 && !thin_out(&shown, step, &fewer)))
        return out_of_memory(problem, file);
    FILE *memory = open_memstream(&png, &bytes);
    bool done = memory ? encode(memory, file, &shown, problem) : out_of_memory(problem, file);
    free(fewer);
    if (memory && fclose(memory) != 0 && done)
        done = out_of_memory(problem, file);
    if (done)
        write_data(stream, "image/png", (const uint8_t *)png, bytes);
    free(png);
    return done;
}

static bool begins_with(const file_bytes *bytes, const char *begin, size_t size) {
    return bytes->size >= size && memcmp(bytes->data, begin, size) == 0;
}

/* Scale samples to 8 bits and write them as a PNG. */
static bool write_decoded(FILE *stream, const char *file, const char *photograph,
                          const file_bytes *bytes, cli_problem *problem) {
    picture decoded;
    if (!picture_decode(bytes->data, bytes->size, PICTURE_AS_COLOURS, photograph, &decoded,
                        problem))
        return false;
    for (size_t i = 0; i < decoded.width * decoded.height * decoded.channels; i++)
        decoded.samples[i] = (uint16_t)(decoded.samples[i] * 255u / decoded.largest);
    const html_picture shown = {decoded.width,   decoded.height, decoded.channels,
                                decoded.samples, NULL,           false};
    const bool done = html_write_picture(stream, file, &shown, problem);
    picture_free(&decoded);
    return done;
}

bool html_write_photograph(FILE *stream, const char *file, const char *photograph,
                           cli_problem *problem) {
    file_bytes bytes;
    if (!file_read(photograph, &bytes, problem))
        return false;
    bool done = true;
    if (begins_with(&bytes, "\x89PNG", 4))
        write_data(stream, "image/png", bytes.data, bytes.size);
    else if (begins_with(&bytes, "\xff\xd8\xff", 3))
        write_data(stream, "image/jpeg", bytes.data, bytes.size);
    else
        done = write_decoded(stream, file, photograph, &bytes, problem);
    file_free(&bytes);
    return done;
}
