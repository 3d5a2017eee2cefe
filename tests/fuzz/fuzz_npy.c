/* Fuzz target: the .npy reader. For any bytes it must return, and what it accepts must be
 * consistent: as many elements as the shape says, in both conversions. */
#include "io/npy.h"
#include "target.h"

#include <stdlib.h>

static void fuzz_check(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cli_problem problem = {0, ""};
    npy_array array;
    float *floats = NULL;
    int32_t *integers = NULL;
    if (!npy_parse(data, size, "input", &array, &problem)) {
        fuzz_check(problem.exit_status == EXIT_STATUS_BAD_INPUT);
        return 0;
    }
    size_t count = 1;
    for (size_t axis = 0; axis < array.axes; axis++)
        count *= array.shape[axis];
    fuzz_check(array.axes >= 1 && count == array.count);
    fuzz_check(array.elements + count * array.item_bytes == data + size);
    const bool readable = npy_to_floats(&array, "input", &floats, &problem);
    if (npy_to_integers(&array, "input", &integers, &problem))
        for (size_t i = 0; readable && i < count; i++)
            fuzz_check(floats[i] == (float)integers[i]);
    free(floats);
    free(integers);
    return 0;
}
