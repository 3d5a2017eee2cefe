#include "dataset/methods.h"

#include <stdlib.h>
#include <string.h>

#define CLIQUES_SUFFIX "+cliques"
#define METHOD_EXAMPLES "unary, mf, mf5, qp, lp, mf5+cliques, qp+cliques, lp+cliques"

const method_choice unary_method = {.name = "unary", .unary = true};

/* The number of iterations at the end of a name; false if it is not a number. */
static bool take_iterations(const char *digits, size_t length, size_t *iterations) {
    *iterations = 0;
    if (length > 9 || (length > 0 && digits[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        *iterations = 10 * *iterations + (size_t)(digits[i] - '0');
    }
    return true;
}

bool method_from_name(const char *name, method_choice *method) {
    const size_t suffix = strlen(CLIQUES_SUFFIX);
    size_t length = strlen(name);
    char solver[3];
    *method = (method_choice){0};
    if (length >= sizeof method->name)
        return false;
    memcpy(method->name, name, length);
    if (length > suffix && strcmp(name + length - suffix, CLIQUES_SUFFIX) == 0) {
        method->cliques = true;
        length -= suffix;
    }
    method->unary = length == 5 && memcmp(name, "unary", 5) == 0;
    if (method->unary)
        return true;
    if (length < 2)
        return false;
    snprintf(solver, sizeof solver, "%.2s", name);
    return dcrf_method_from_name(solver, &method->solver) &&
           take_iterations(name + 2, length - 2, &method->iterations);
}

bool methods_have(const method_list *list, dcrf_method solver) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->of[i].unary && list->of[i].solver == solver)
            return true;
    return false;
}

bool parse_method(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    char subject[64];
    if (method_from_name(text, value))
        return true;
    snprintf(subject, sizeof subject, "--%s", option->name);
    return bad_input(problem, subject, "'%s' is not a method; methods are " METHOD_EXAMPLES, text);
}

static bool is_listed(const method_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->of[i].name, name) == 0)
            return true;
    return false;
}

static bool add_method(const cli_option *option, const char *name, method_list *list,
                       cli_problem *problem) {
    method_choice method;
    if (!parse_method(option, name, &method, problem))
        return false;
    if (is_listed(list, name))
        return bad_input(problem, "--methods", "'%s' stands there twice", name);
    if (list->count == METHODS_MAX - 1)
        return bad_input(problem, "--methods", "more than %d are too many", METHODS_MAX - 1);
    list->of[list->count++] = method;
    return true;
}

bool parse_methods(const cli_option *option, const char *text, void *value, cli_problem *problem) {
    method_list *list = value;
    char *names = strdup(text);
    if (!names)
        return out_of_memory(problem, "--methods");
    list->count = 0;
    bool done = true;
    for (char *name = names; done && name;) {
        char *comma = strchr(name, ',');
        if (comma)
            *comma = '\0';
        done = add_method(option, name, list, problem);
        name = comma ? comma + 1 : NULL;
    }
    free(names);
    if (done && !is_listed(list, unary_method.name)) {
        memmove(list->of + 1, list->of, list->count * sizeof *list->of);
        list->of[0] = unary_method;
        list->count++;
    }
    return done;
}
