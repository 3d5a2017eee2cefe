#include "dataset/method_style.h"

#define SHADES 3

/* Colours for light and dark backgrounds, from Okabe and Ito's set or close to it. */
typedef struct shade {
    const char *on_light;
    const char *on_dark;
} shade;

static const shade unary_shades[SHADES] = {
    {"#6b7280", "#9aa3af"}, {"#6b7280", "#9aa3af"}, {"#6b7280", "#9aa3af"}};
static const shade solver_shades[][SHADES] = {
    [DCRF_METHOD_MF] = {{"#0072b2", "#56b4e9"}, {"#56a8dd", "#b5dffa"}, {"#003a5c", "#2f86c4"}},
    [DCRF_METHOD_QP] = {{"#d55e00", "#e69f00"}, {"#e69f00", "#ffd98a"}, {"#863b00", "#d4701c"}},
    [DCRF_METHOD_LP] = {{"#009e73", "#2fc79a"}, {"#66cdae", "#a6ecd6"}, {"#005c43", "#128a67"}},
};
static const char *const dashes[] = {"none", "2 3", "9 3 2 3", "12 5", "5 2", "9 3 2 3 2 3"};

/* How many methods of the same solver precede this one? Each has its own style, with cliques or
 * without. */
static size_t variant_of(const method_list *methods, size_t index) {
    const method_choice *method = &methods->of[index];
    size_t variant = 0;
    for (size_t m = 0; m < index; m++) {
        const method_choice *other = &methods->of[m];
        variant +=
            other->unary == method->unary && (method->unary || other->solver == method->solver);
    }
    return variant;
}

static void write_colours(FILE *stream, const char *scope, const method_list *methods, bool dark) {
    for (size_t m = 0; m < methods->count; m++) {
        const method_choice *method = &methods->of[m];
        const shade *chosen = method->unary ? unary_shades : solver_shades[method->solver];
        chosen += variant_of(methods, m) % SHADES;
        const char *colour = dark ? chosen->on_dark : chosen->on_light;
        fprintf(stream, ".%s .m%zu { stroke: %s; background: %s; } .%s .end.m%zu { fill: %s; }\n",
                scope, m, colour, colour, scope, m, colour);
    }
}

void method_write_styles(FILE *stream, const char *scope, const method_list *methods) {
    write_colours(stream, scope, methods, false);
    for (size_t m = 0; m < methods->count; m++) {
        const size_t dash = variant_of(methods, m) / SHADES;
        fprintf(stream, ".%s path.m%zu { stroke-dasharray: %s; }\n", scope, m,
                dashes[dash % (sizeof dashes / sizeof dashes[0])]);
    }
    fputs("@media (prefers-color-scheme: dark) {\n", stream);
    write_colours(stream, scope, methods, true);
    fputs("}\n", stream);
}
