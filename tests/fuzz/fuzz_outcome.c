/* The JSON of a stored result: refused, or an outcome that produces the same JSON. */
#include "check.h"
#include "dataset/outcome.h"
#include "target.h"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_error_t error;
    outcome read, again;
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    if (root && outcome_from_json(&read, root)) {
        json_t *written = outcome_to_json(&read);
        fuzz_check(written && outcome_from_json(&again, written));
        json_t *once_more = outcome_to_json(&again);
        fuzz_check(json_equal(written, once_more));
        json_decref(once_more);
        json_decref(written);
        outcome_free(&again);
    }
    if (root)
        outcome_free(&read);
    json_decref(root);
    return 0;
}
