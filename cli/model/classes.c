#include "model/classes.h"

#include "io/json.h"
#include "printable.h"
#include "report/json_text.h"

#include <stdio.h>

const char *class_text(const class_names *names, size_t label, char text[CLASS_TEXT_BYTES]) {
    if (label < names->count && names->lines[label][0])
        return printable(names->lines[label], text, CLASS_TEXT_BYTES);
    snprintf(text, CLASS_TEXT_BYTES, "label %zu", label);
    return text;
}

const char *class_text_with_number(const class_names *names, size_t label,
                                   char text[CLASS_TEXT_BYTES]) {
    char name[CLASS_TEXT_BYTES - 32];
    if (label < names->count && names->lines[label][0])
        snprintf(text, CLASS_TEXT_BYTES, "label %zu (%s)", label,
                 printable(names->lines[label], name, sizeof name));
    else
        snprintf(text, CLASS_TEXT_BYTES, "label %zu", label);
    return text;
}

json_t *class_names_to_json(const class_names *names) {
    json_t *list = json_array();
    for (size_t i = 0; i < names->count; i++)
        list = json_append(list, json_text(names->lines[i]));
    return list;
}

bool classes_check(const class_names *names, const char *file, size_t labels,
                   cli_problem *problem) {
    return names->count == 0 || names->count == labels ||
           bad_input(problem, file, "names %zu classes, and the model has %zu labels", names->count,
                     labels);
}
