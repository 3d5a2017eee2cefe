#include "io/json.h"

#include <math.h>

json_t *number_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_merge(json_t *root, json_t *added) {
    if (root && (!added || json_object_update(root, added) != 0)) {
        json_decref(root);
        root = NULL;
    }
    json_decref(added);
    return root;
}

json_t *json_with(json_t *object, const char *key, json_t *value) {
    /* It releases the value in any case. */
    if (json_object_set_new(object, key, value) == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *json_append(json_t *list, json_t *value) {
    if (json_array_append_new(list, value) == 0)
        return list;
    json_decref(list);
    return NULL;
}
