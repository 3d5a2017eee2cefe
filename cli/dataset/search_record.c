#include "dataset/search_record.h"

#include "io/file.h"
#include "io/json.h"

#include <stdlib.h>
#include <unistd.h>

static bool read_record(const char *path, json_t **record, cli_problem *problem) {
    file_bytes bytes;
    json_error_t error;
    if (access(path, F_OK) != 0)
        return bad_input(problem, path,
                         "is missing, which says what log.csv is a search of; choose another "
                         "folder");
    if (!file_read(path, &bytes, problem))
        return false;
    *record = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    file_free(&bytes);
    return *record || bad_input(problem, path, "is not JSON: line %d: %s; choose another folder",
                                error.line, error.text);
}

/* Is everything the same, except for the budgets, which only `record` has? */
static bool same_search(const char *path, const json_t *record, json_t *subject,
                        cli_problem *problem) {
    const char *name;
    json_t *value;
    json_object_foreach(subject, name, value) {
        if (!json_equal(json_object_get(record, name), value))
            return bad_input(problem, path,
                             "the search in this folder has another '%s'; choose another folder",
                             name);
    }
    return true;
}

/* The budgets of the record, followed by `budget` if it is larger. */
static bool take_budgets(const char *path, const json_t *record, size_t budget, json_t *budgets,
                         cli_problem *problem) {
    const json_t *old = json_object_get(record, "budgets");
    size_t last = 0;
    for (size_t i = 0; i < json_array_size(old); i++) {
        const json_int_t wished = json_integer_value(json_array_get(old, i));
        if (wished <= (json_int_t)last)
            return bad_input(problem, path, "'budgets' do not rise; choose another folder");
        last = (size_t)wished;
        if (json_array_append_new(budgets, json_integer(wished)) != 0)
            return out_of_memory(problem, path);
    }
    if (budget < last)
        return bad_input(problem, path,
                         "the search in this folder has a budget of %zu; give as much or more, or "
                         "choose another folder",
                         last);
    return budget == last ||
           json_array_append_new(budgets, json_integer((json_int_t)budget)) == 0 ||
           out_of_memory(problem, path);
}

static bool list_budgets(const char *path, const json_t *array, size_t **budgets, size_t *count,
                         cli_problem *problem) {
    *count = json_array_size(array);
    *budgets = calloc(*count, sizeof **budgets);
    if (!*budgets)
        return out_of_memory(problem, path);
    for (size_t i = 0; i < *count; i++)
        (*budgets)[i] = (size_t)json_integer_value(json_array_get(array, i));
    return true;
}

bool search_record_claim(const char *path, json_t *subject, bool anew, size_t budget,
                         size_t **budgets, size_t *budget_count, cli_problem *problem) {
    json_t *record = NULL, *array = json_array();
    *budgets = NULL;
    bool done = (subject && array) || out_of_memory(problem, path);
    /* Evaluations without a record belong to an unknown search. */
    if (done && !anew)
        done = read_record(path, &record, problem) && same_search(path, record, subject, problem);
    done = done && take_budgets(path, record, budget, array, problem);
    if (done && json_object_set(subject, "budgets", array) != 0)
        done = out_of_memory(problem, path);
    if (done && !json_equal(record, subject))
        done = json_save_and_free(path, OUTPUT_IN_STORE, json_incref(subject), problem);
    done = done && list_budgets(path, array, budgets, budget_count, problem);
    json_decref(record);
    json_decref(array);
    json_decref(subject);
    return done;
}
