#include "report/json_text.h"

#include "printable.h"

#include <stdlib.h>

json_t *json_text(const char *text) {
    json_t *made = json_string(text);
    if (made)
        return made;
    char *shown = printable_copy(text);
    made = shown ? json_string(shown) : NULL;
    free(shown);
    return made;
}
