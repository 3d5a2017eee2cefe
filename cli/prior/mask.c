/* Rough label maps: the energies that the library derives from them. */
#include "prior/mask.h"

#include "prior/map.h"
#include "prior/traits.h"

#include <stdlib.h>

bool model_from_mask(const unary_options *options, const cli_image *image,
                     dcrf_workspace *workspace, dcrf_model **model, mask_summary *summary,
                     unary_facts *facts, cli_problem *problem) {
    const dcrf_grid grid = image_grid(image);
    const dcrf_view colours = image_view(image);
    const char *file = options->prior_file;
    prior_map read;
    dcrf_error error;
    if (!prior_map_read(options, image, workspace, &read, facts, problem))
        return false;
    const size_t labels = read.labels;
    summary->map = read.numbers;
    read.numbers = NULL;
    for (size_t i = 0; i < image_pixels(image); i++) {
        summary->map[i] = prior_label(options, facts, summary->map[i]);
        if (read.refined)
            read.refined[i] = prior_label(options, facts, read.refined[i]);
    }
    float *energies = calloc(image_pixels(image), labels * sizeof *energies);
    if (!energies) {
        prior_map_free(&read);
        return out_of_memory(problem, file);
    }
    const dcrf_view map =
        dcrf_view_interleaved(read.refined ? read.refined : summary->map, DCRF_I32, &grid, 1);
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, labels);
    const dcrf_view sure = dcrf_view_interleaved(read.confidence, DCRF_F32, &grid, 1);
    const bool done =
        (dcrf_mask_energies(&grid, &colours, &map, labels, read.confidence ? &sure : NULL, NULL,
                            workspace, energies, image_pixels(image) * labels, &summary->info,
                            &error) >= 0 &&
         dcrf_model_new(model, &grid, labels, &error) >= 0 &&
         dcrf_model_set_unary(*model, &unary, &error) >= 0) ||
        library_problem(problem, file, &error);
    free(energies);
    prior_map_free(&read);
    return done;
}

void mask_summary_free(mask_summary *summary) {
    free(summary->map);
    summary->map = NULL;
}
