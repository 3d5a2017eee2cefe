/* Fuzz target: the NIfTI reader. What it accepts is written and read again: the same size, spacing
 * and numbers. */
#include "io/nifti.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fuzz_check(bool holds) {
    if (!holds)
        abort();
}

/* Written as floats and read again, the numbers are the same, NaN included. */
static void check_round_trip(const nifti_volume *volume, const float *floats) {
    cli_problem problem = {0, ""};
    char *file = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&file, &bytes);
    fuzz_check(stream != NULL);
    fuzz_check(nifti_write_floats(stream, "out.nii", volume->geometry, floats, volume->channels,
                                  &problem));
    fuzz_check(fclose(stream) == 0);
    nifti_volume again;
    float *floats_again = NULL;
    fuzz_check(nifti_parse((const uint8_t *)file, bytes, "out.nii", &again, &problem));
    fuzz_check(memcmp(again.size, volume->size, sizeof again.size) == 0);
    fuzz_check(again.channels == volume->channels);
    fuzz_check(nifti_to_floats(&again, "out.nii", &floats_again, &problem));
    for (size_t i = 0; i < volume->count; i++)
        fuzz_check(floats_again[i] == floats[i] || floats[i] != floats[i]);
    free(floats_again);
    nifti_free(&again);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cli_problem problem = {0, ""};
    nifti_volume volume;
    float *floats = NULL;
    int32_t *integers = NULL;
    if (!nifti_recognize(data, size))
        return 0;
    if (!nifti_parse(data, size, "input", &volume, &problem)) {
        fuzz_check(problem.text[0] != '\0');
        return 0;
    }
    fuzz_check(volume.count == volume.size[0] * volume.size[1] * volume.size[2] * volume.channels);
    if (nifti_to_floats(&volume, "input", &floats, &problem)) {
        check_round_trip(&volume, floats);
        if (nifti_to_integers(&volume, "input", &integers, &problem))
            for (size_t i = 0; i < volume.count; i++)
                fuzz_check(floats[i] == (float)integers[i]);
    }
    free(floats);
    free(integers);
    nifti_free(&volume);
    return 0;
}
