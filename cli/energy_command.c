/* dcrf energy: the energy of a labelling, term by term. */
#include "command.h"
#include "io/json.h"
#include "report/evaluation.h"

typedef struct energy_parts {
    dcrf_energy energy;
    double pairwise_of_kernel[KERNELS_MAX];
} energy_parts;

static void print_parts(const evaluation_settings *settings, const built_model *built,
                        const void *found) {
    const energy_parts *parts = found;
    (void)settings;
    printf("total      %18.6f\n", parts->energy.total);
    printf("unary      %18.6f\n", parts->energy.unary);
    printf("pairwise   %18.6f\n", parts->energy.pairwise);
    for (size_t k = 0; k < built->kernel_count; k++)
        printf("  %-9s%18.6f\n", kernel_name(&built->kernels[k]), parts->pairwise_of_kernel[k]);
    printf("cliques    %18.6f\n", parts->energy.cliques);
    if (device_to_tell(built->workspace))
        printf("computed on %s\n", device_to_tell(built->workspace));
}

static json_t *kernels_to_json(const built_model *built, const energy_parts *parts) {
    json_t *list = json_array();
    for (size_t k = 0; k < built->kernel_count; k++) {
        const dcrf_kernel *kernel = &built->kernels[k];
        json_t *entry = json_pack("{s:s, s:f, s:f, s:f}", "kernel", kernel_name(kernel), "sigma",
                                  kernel->sigma[0], "weight", kernel->weight, "energy",
                                  parts->pairwise_of_kernel[k]);
        if (kernel->kind == DCRF_KERNEL_BILATERAL)
            entry = json_with(entry, "sigma_rgb", json_real(kernel->channel_sigma[0]));
        list = json_append(list, entry);
    }
    return list;
}

/* NULL if out of memory (or if an energy is not finite, which JSON cannot represent). */
static json_t *parts_to_json(const evaluation_settings *settings, const built_model *built,
                             const void *found) {
    const energy_parts *parts = found;
    return json_merge(model_report(&settings->model, built),
                      json_pack("{s:f, s:f, s:f, s:o, s:f}", "energy", parts->energy.total,
                                "energy_unary", parts->energy.unary, "energy_pairwise",
                                parts->energy.pairwise, "kernels", kernels_to_json(built, parts),
                                "energy_cliques", parts->energy.cliques));
}

static bool compute_parts(const evaluation_settings *settings, const built_model *built,
                          const uint16_t *labels, cli_problem *problem) {
    static const evaluation_report report = {print_parts, parts_to_json};
    dcrf_plan *plan = NULL;
    dcrf_error error;
    energy_parts parts;
    if (!model_plan(&settings->model, settings->image_file, built, &plan, problem))
        return false;
    const bool done = dcrf_energy_at_most(plan, built->workspace, labels, &parts.energy,
                                          parts.pairwise_of_kernel, KERNELS_MAX, &error) >= 0 ||
                      library_problem(problem, settings->labels_file, &error);
    dcrf_plan_free(&plan);
    return done && evaluation_say(settings, built, &report, &parts, problem);
}

static bool run_energy(const void *settings, cli_problem *problem) {
    return evaluate_labelling(settings, 0, compute_parts, problem);
}

static const option_group groups[] = {
    {"Labelling", evaluation_labels_table, 0},
    EVALUATION_OPTION_GROUPS,
    {"Device", device_option_table, offsetof(evaluation_settings, model.kernels)},
    {"Feedback", feedback_option_table, offsetof(evaluation_settings, feedback)},
    {0},
};

const cli_command energy_command = {
    {"energy", evaluation_operand_table, groups},
    "print the energy of a labelling, part by part",
    "Prints the energy of a labelling under the model that the options describe: the total, the "
    "unary part, the pairwise part (of all kernels and of each) and the part of the cliques. Pairs "
    "are counted in both orders.\n"
    "\n"
    "One source of unary energies must be given: --unary, --labels-prior or --scribbles.",
    sizeof(evaluation_settings),
    run_energy,
};
