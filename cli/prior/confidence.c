#include "prior/confidence.h"

#include "io/label_map.h"
#include "io/npy.h"
#include "io/picture.h"
#include "prior/traits.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The highest confidence that does not fix a pixel's label. */
static const float nearly_sure = 1 - FLT_EPSILON / 2;

/* ---- files ---------------------------------------------------------------------------------- */

/* The brightness of a picture, black 0 and white 1. */
static bool read_picture(const char *path, const cli_image *image, float *confidence,
                         cli_problem *problem) {
    int32_t *numbers;
    bool is_rounded;
    int32_t largest = PRIOR_VOID;
    if (!label_map_read_mask(path, image, &numbers, &is_rounded, problem))
        return false;
    for (size_t i = 0; i < image_pixels(image); i++)
        if (numbers[i] > PRIOR_VOID)
            largest = UINT16_MAX;
    for (size_t i = 0; i < image_pixels(image); i++)
        confidence[i] = (float)numbers[i] / (float)largest;
    free(numbers);
    return true;
}

static bool read_array(const char *path, const cli_image *image, float *confidence,
                       cli_problem *problem) {
    pixel_array array;
    char text[IMAGE_TEXT_BYTES];
    if (!pixel_array_read(path, image, LAYOUT_AUTO, ARRAY_OF_THE_SIZE, &array, problem))
        return false;
    bool done =
        array.view.channels == 1 ||
        bad_input(problem, path, "has %zu numbers per pixel; one is needed", array.view.channels);
    for (size_t i = 0; done && i < image_pixels(image); i++) {
        confidence[i] = array.values[i];
        if (!(confidence[i] >= 0 && confidence[i] <= 1))
            done =
                bad_input(problem, path, "holds %g at %s; how sure a map is lies between 0 and 1",
                          (double)confidence[i], image_place_text(image, i, text));
    }
    pixel_array_free(&array);
    return done;
}

static bool read_confidence(const char *path, const cli_image *image, float *confidence,
                            cli_problem *problem) {
    file_bytes bytes;
    if (!file_map(path, &bytes, problem))
        return false;
    const bool is_picture = picture_recognize(bytes.data, bytes.size);
    file_free(&bytes);
    return (is_picture ? read_picture : read_array)(path, image, confidence, problem);
}

static bool mark_sure(const char *path, const cli_image *image, float *confidence,
                      cli_problem *problem) {
    int32_t *numbers;
    bool is_rounded;
    if (!label_map_read_mask(path, image, &numbers, &is_rounded, problem))
        return false;
    const int32_t threshold = is_rounded ? PRIOR_VOID / 2 : 0;
    for (size_t i = 0; i < image_pixels(image); i++)
        if (numbers[i] > threshold)
            confidence[i] = 1;
    free(numbers);
    return true;
}

/* ---- confidence per pixel ------------------------------------------------------------------- */

bool prior_confidence_read(const unary_options *options, const cli_image *image, float **confidence,
                           cli_problem *problem) {
    const char *file = options->prior_confidence_file, *sure = options->prior_sure_file;
    const size_t count = image_pixels(image);
    *confidence = NULL;
    if (!file && !sure)
        return true;
    float *made = malloc(count * sizeof *made);
    if (!made)
        return out_of_memory(problem, options->prior_file);
    for (size_t i = 0; i < count; i++)
        made[i] = 1;
    bool done = !file || read_confidence(file, image, made, problem) ||
                problem_of_option(problem, "--prior-confidence");
    for (size_t i = 0; done && i < count; i++)
        made[i] = fminf(made[i], nearly_sure);
    done = done && (!sure || mark_sure(sure, image, made, problem) ||
                    problem_of_option(problem, "--prior-sure"));
    if (done)
        *confidence = made;
    else
        free(made);
    return done;
}
