/* Trees (even first byte) and cuts in files of text: refused with a message, or something that the
 * library takes. The second byte is the number of labels. */
#include "check.h"
#include "memory_file.h"
#include "model/distance_file.h"
#include "target.h"

#include <dcrf/dcrf.h>

static dcrf_model *new_model(size_t labels) {
    const dcrf_grid grid = dcrf_grid_1d(2);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 1);
    dcrf_model *model;
    fuzz_check(dcrf_model_new(&model, &grid, labels, NULL) == DCRF_OK &&
               dcrf_model_add_kernel(model, &kernel, NULL) == DCRF_OK);
    return model;
}

/* What has been read is only refused if it is too much, or too large for floats. */
static void check_taken(dcrf_status status) {
    fuzz_check(status == DCRF_OK || status == DCRF_ERROR_UNSUPPORTED ||
               status == DCRF_ERROR_NOT_FINITE || status == DCRF_ERROR_MEMORY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = size > 2 ? memory_file(0, data + 2, size - 2) : NULL;
    if (!path)
        return 0;
    const size_t labels = data[1] % 32u + 1;
    cli_problem problem = {0, ""};
    distance_tree tree = {0};
    distance_cuts cuts = {0};
    dcrf_model *model = new_model(labels);
    const bool is_tree = data[0] % 2 == 0;
    if (!(is_tree ? distance_tree_read(path, labels, &tree, &problem)
                  : distance_cuts_read(path, labels, &cuts, &problem)))
        fuzz_check_refused(&problem);
    else
        check_taken(is_tree
                        ? dcrf_model_set_tree(model, 0, tree.count, tree.ends, tree.lengths, NULL)
                        : dcrf_model_set_cuts(model, 0, cuts.count, cuts.sets, cuts.lengths, NULL));
    distance_tree_free(&tree);
    distance_cuts_free(&cuts);
    dcrf_model_free(&model);
    return 0;
}
