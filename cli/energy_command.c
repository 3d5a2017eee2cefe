/* dcrf energy: the energy of a labelling, part by part. */
#include "command.h"
#include "io/json.h"
#include "io/output.h"
#include "model_options.h"

#include <stdlib.h>

typedef struct energy_settings {
    const char *image_file;
    const char *labels_file;
    const char *json_file; /* NULL: none */
    source_options sources;
    model_options model;
} energy_settings;

typedef struct energy_parts {
    dcrf_energy energy;
    double pairwise_of_kernel[KERNELS_MAX];
} energy_parts;

static void print_parts(const built_model *built, const energy_parts *parts) {
    printf("total      %18.6f\n", parts->energy.total);
    printf("unary      %18.6f\n", parts->energy.unary);
    printf("pairwise   %18.6f\n", parts->energy.pairwise);
    for (size_t k = 0; k < built->kernel_count; k++)
        printf("  %-9s%18.6f\n", kernel_name(&built->kernels[k]), parts->pairwise_of_kernel[k]);
    printf("cliques    %18.6f\n", parts->energy.cliques);
}

static json_t *kernels_to_json(const built_model *built, const energy_parts *parts) {
    json_t *list = json_array();
    for (size_t k = 0; list && k < built->kernel_count; k++) {
        const dcrf_kernel *kernel = &built->kernels[k];
        json_t *entry = json_pack("{s:s, s:f, s:f, s:f}", "kernel", kernel_name(kernel), "sigma",
                                  kernel->sigma[0], "weight", kernel->weight, "energy",
                                  parts->pairwise_of_kernel[k]);
        bool kept = entry != NULL;
        if (kept && kernel->kind == DCRF_KERNEL_BILATERAL)
            kept =
                json_object_set_new(entry, "sigma_rgb", json_real(kernel->channel_sigma[0])) == 0;
        if (!kept || json_array_append(list, entry) != 0) {
            json_decref(list);
            list = NULL;
        }
        json_decref(entry);
    }
    return list;
}

/* NULL when memory is out (or an energy is not finite, which JSON cannot say). */
static json_t *parts_to_json(const energy_settings *settings, const built_model *built,
                             const energy_parts *parts) {
    json_t *root = model_report(&settings->model, built);
    json_t *energies =
        json_pack("{s:f, s:f, s:f, s:o, s:f}", "energy", parts->energy.total, "energy_unary",
                  parts->energy.unary, "energy_pairwise", parts->energy.pairwise, "kernels",
                  kernels_to_json(built, parts), "energy_cliques", parts->energy.cliques);
    if (root && (!energies || json_object_update(root, energies) != 0)) {
        json_decref(root);
        root = NULL;
    }
    json_decref(energies);
    return root;
}

static bool compute_parts(const energy_settings *settings, const built_model *built,
                          const uint16_t *labels, energy_parts *parts, cli_problem *problem) {
    dcrf_plan *plan = NULL;
    dcrf_error error;
    if (!model_plan(&settings->model, settings->image_file, built, &plan, problem))
        return false;
    const bool done = dcrf_energy_of_labels(plan, built->workspace, labels, &parts->energy,
                                            parts->pairwise_of_kernel, &error) >= 0 ||
                      library_problem(problem, settings->labels_file, &error);
    dcrf_plan_free(&plan);
    return done;
}

static bool report(const energy_settings *settings, const built_model *built,
                   const energy_parts *parts, cli_problem *problem) {
    if (!settings->json_file || !output_is_standard(settings->json_file))
        print_parts(built, parts);
    /* What cannot be said is a failure, and then there is no file either. */
    return output_flush_standard(problem) &&
           (!settings->json_file ||
            json_save_and_free(settings->json_file, parts_to_json(settings, built, parts),
                               problem));
}

static bool run_energy(const void *given, cli_problem *problem) {
    const energy_settings *settings = given;
    built_model built;
    energy_parts parts;
    uint16_t *labels = NULL;
    if (settings->json_file && !output_check(settings->json_file, problem))
        return false;
    if (!model_build(&settings->model, settings->image_file, &built, problem))
        return false;
    const bool done = (model_read_labels(&built, settings->labels_file, &labels, problem) ||
                       problem_of_option(problem, "--labels")) &&
                      compute_parts(settings, &built, labels, &parts, problem) &&
                      report(settings, &built, &parts, problem);
    free(labels);
    model_free(&built);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_text,
     .offset = offsetof(energy_settings, image_file),
     .help = IMAGE_OPERAND_HELP},
    {0},
};

static const cli_option options[] = {
    {"labels", 0, "FILE", NULL, true, parse_text, offsetof(energy_settings, labels_file),
     "the labelling: a grey or indexed picture, an integer .npy of the shape (H, W), or a NIfTI "
     "volume"},
    {"json", 0, "FILE|-", NULL, false, parse_text, offsetof(energy_settings, json_file),
     "write the result as JSON; - writes it to the standard output, instead of the table"},
    {0},
};

static const option_group groups[] = {
    {"Labelling and result", options, 0},
    MODEL_OPTION_GROUPS(energy_settings, model),
    {"Settings from elsewhere", source_option_table, offsetof(energy_settings, sources)},
    {0},
};

const cli_command energy_command = {
    {"energy", operands, groups},
    "the energy of a labelling, part by part",
    "Prints the energy of a labelling under the model that the options describe: the total, the "
    "unary part, the pairwise part (of all kernels and of each) and the part of the cliques. Pairs "
    "are counted in both orders.\n"
    "\n"
    "One source of unary energies must be given: --unary, --labels-prior or --scribbles.",
    sizeof(energy_settings),
    run_energy,
};
