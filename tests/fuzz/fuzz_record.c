/* search.json: refused with a message, or a search that continues with increasing budgets. */
#include "check.h"
#include "dataset/search_record.h"
#include "memory_file.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t *budgets, count;
    cli_problem problem = {0, ""};
    json_t *subject = json_pack("{s:i, s:s}", "seed", 1, "method", "qp");
    /* The smallest possible budget, so that a valid record is not rewritten. */
    const char *path = memory_file(0, data, size);
    if (!path) {
        json_decref(subject);
        return 0;
    }
    if (search_record_claim(path, subject, false, 1, &budgets, &count, &problem))
        fuzz_check(count >= 1 && budgets[count - 1] == 1);
    else
        fuzz_check_refused(&problem);
    free(budgets);
    return 0;
}
