/* Maps of labels, regions and strokes: refused with a message, or one number per pixel. The first
 * two bytes are the size of the image. */
#include "check.h"
#include "io/label_map.h"
#include "memory_file.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = size > 2 ? memory_file(0, data + 2, size - 2) : NULL;
    if (!path)
        return 0;
    /* An image with a geometry is a volume; maps only test whether the pointer is set. */
    static char a_geometry;
    const bool is_volume = data[1] >= 128;
    const cli_image image = {.width = data[0] % 16u + 1,
                             .height = data[1] % 16u + 1,
                             .depth = is_volume ? 2 : 1,
                             .channels = is_volume ? 1 : 3,
                             .geometry =
                                 is_volume ? (struct nifti_geometry *)(void *)&a_geometry : NULL};
    for (int colours = 0; colours < 2; colours++) {
        cli_problem problem = {0, ""};
        int32_t *numbers;
        bool are_colours;
        const bool done =
            colours ? label_map_read_colours(path, &image, &numbers, &are_colours, &problem)
                    : label_map_read(path, &image, &numbers, &problem);
        int64_t sum = 0;
        for (size_t a = 0; done && a < image_pixels(&image); a++)
            sum += numbers[a];
        fuzz_check(!done || sum <= (int64_t)INT32_MAX * (int64_t)image_pixels(&image));
        if (!done)
            fuzz_check_refused(&problem);
        free(numbers);
    }
    return 0;
}
