/* dataset.json: refused with a message, or it satisfies what the rest of the command relies on. */
#include "check.h"
#include "dataset/dataset.h"
#include "target.h"

#include <dcrf/model.h>
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dataset first = {0}, again = {0};
    cli_problem problem = {0, ""};
    const bool done = dataset_parse_description(data, size, "file", &first, &problem);
    if (!done) {
        fuzz_check(problem.exit_status == EXIT_STATUS_BAD_INPUT);
        fuzz_check(problem.text[0] != '\0' && !strchr(problem.text, '\n'));
        return 0;
    }
    fuzz_check(first.labels >= 1 && first.labels <= DCRF_MAX_LABELS);
    fuzz_check(first.void_value >= 0 && first.void_value <= 65535);
    fuzz_check(isfinite(first.unary.scale) && first.unary.scale > 0);
    fuzz_check(first.unary.kind >= DCRF_UNARY_AUTO && first.unary.kind <= DCRF_UNARY_LOGITS);
    fuzz_check(dataset_parse_description(data, size, "file", &again, &problem));
    fuzz_check(first.labels == again.labels && first.void_value == again.void_value &&
               first.unary.scale == again.unary.scale && first.unary.kind == again.unary.kind);
    return 0;
}
