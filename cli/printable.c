#include "printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the UTF-8 character at `text` and its code point; 0: invalid (RFC 3629). */
static size_t decode(const unsigned char *text, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char lead = text[0];
    const size_t length = lead < 0x80         ? 1
                          : lead >> 5 == 0x06 ? 2
                          : lead >> 4 == 0x0e ? 3
                          : lead >> 3 == 0x1e ? 4
                                              : 0;
    if (length <= 1) {
        *code = lead;
        return length;
    }
    *code = lead & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) /* also true at the end of the text */
            return 0;
        *code = *code << 6 | (text[i] & 0x3f);
    }
    const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

static bool is_harmless(uint32_t code) {
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool direction = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    const bool line_end = code == 0x2028 || code == 0x2029;
    return !control && !direction && !line_end;
}

char *printable(const char *text, char *out, size_t bytes) {
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;
    while (*at) {
        uint32_t code;
        size_t length = decode(at, &code);
        const bool passes = length > 0 && is_harmless(code);
        const size_t wanted = passes ? length : sizeof "\\xNN" - 1;
        if (used + wanted >= bytes)
            break;
        if (passes) {
            memcpy(out + used, at, length);
        } else {
            length = 1;
            snprintf(out + used, bytes - used, "\\x%02x", *at);
        }
        used += wanted;
        at += length;
    }
    if (bytes > 0)
        out[used] = '\0';
    return out;
}

char *printable_copy(const char *text) {
    const size_t bytes = strlen(text) * (sizeof "\\xNN" - 1) + 1;
    char *copy = malloc(bytes);
    return copy ? printable(text, copy, bytes) : NULL;
}
