/* dcrf certify: an upper bound on how far a labelling is from the optimum. */
#include "clock.h"
#include "command.h"
#include "io/json.h"
#include "model/compatibility.h"
#include "report/evaluation.h"
#include "report/solution_text.h"

typedef struct certify_settings {
    evaluation_settings evaluation;
    size_t iterations;
    double time_limit_s;
    double gap;
} certify_settings;

typedef struct certified {
    dcrf_certify_info certificate;
    double setup_s;
} certified;

static const cli_option limits_table[] = {
    {"iterations", 'n', "N", NUMBER_TEXT(DCRF_DEFAULT_CERTIFY_ITERATIONS), false,
     parse_positive_count, offsetof(certify_settings, iterations), "maximum number of iterations"},
    {"time-limit", 't', "S", NUMBER_TEXT(DCRF_DEFAULT_CERTIFY_TIME_LIMIT_S), false,
     parse_positive_number, offsetof(certify_settings, time_limit_s), "wall time in seconds"},
    {"gap", 0, "G", NUMBER_TEXT(DCRF_DEFAULT_CERTIFY_GAP), false, parse_fraction,
     offsetof(certify_settings, gap),
     "stop when the labelling is proven to be within the fraction G of the optimum"},
    {0},
};

static const cli_option *const no_settings[] = {evaluation_result_table, feedback_option_table,
                                                NULL};

/* ---- printing ------------------------------------------------------------------------------- */

static void print_result(const evaluation_settings *settings, const built_model *built,
                         const void *found) {
    const dcrf_certify_info *certificate = &((const certified *)found)->certificate;
    (void)settings;
    const proof proven = {certificate->lower_bound, certificate->relative_gap,
                          certificate->bound_left_out};
    const bool beaten = certificate->best_energy < certificate->energy.total;
    unary_facts_print(stdout, &built->unary);
    print_energies(stdout, &certificate->energy);
    print_proof(stdout, &proven, certificate->is_constant && !beaten);
    if (beaten) {
        char text[ENERGY_TEXT_BYTES];
        printf("A better labelling was met on the way, of the energy %s: try dcrf solve.\n",
               energy_text(certificate->best_energy, text));
        printf("If the labelling given is the truth, the model is wrong and not the solver: it "
               "prefers another\nlabelling, and so would any solver that did its work. Other "
               "weights (--strength, dcrf tune) or better\nunaries help, more iterations do "
               "not.\n");
    }
    print_single_pixels(built, certificate->right, certificate->wrong);
    printf("%zu iteration%s, %s; %.2f s", certificate->iterations,
           certificate->iterations == 1 ? "" : "s", stop_reason(certificate->stop),
           certificate->time_s);
    print_device(stdout, built);
    putchar('\n');
}

static json_t *result_to_json(const evaluation_settings *settings, const built_model *built,
                              const void *found) {
    const double setup_s = ((const certified *)found)->setup_s;
    const dcrf_certify_info *certificate = &((const certified *)found)->certificate;
    const proof proven = {certificate->lower_bound, certificate->relative_gap,
                          certificate->bound_left_out};
    json_t *root =
        json_pack("{s:n, s:I, s:s, s:f, s:f, s:n, s:o, s:b}", "method", "iterations",
                  (json_int_t)certificate->iterations, "stop", dcrf_status_name(certificate->stop),
                  "setup_s", setup_s, "solve_s", certificate->time_s, "polish_s", "best_energy",
                  number_or_null(certificate->best_energy), "constant", certificate->is_constant);
    root = json_merge(root, json_pack("{s:I, s:I}", "pixels_right", (json_int_t)certificate->right,
                                      "pixels_wrong", (json_int_t)certificate->wrong));
    root = json_merge(root, energies_to_json(&certificate->energy, &proven));
    root = json_merge(root, model_report(&settings->model, built));
    return json_merge(root, json_pack("{s:o}", "settings",
                                      settings_to_json(settings->sources.record, no_settings)));
}

/* ---- the work ------------------------------------------------------------------------------- */

static bool certify(const evaluation_settings *settings, const built_model *built,
                    const uint16_t *labels, cli_problem *problem) {
    static const evaluation_report report = {print_result, result_to_json};
    const certify_settings *own = (const certify_settings *)settings;
    dcrf_plan *plan = NULL;
    dcrf_error error;
    dcrf_certify_settings limits;
    certified found;
    progress watch;
    dcrf_certify_settings_defaults(&limits);
    limits.time_limit_s = own->time_limit_s;
    limits.gap = own->gap;
    limits.iterations = own->iterations;
    limits.progress = progress_moment;
    limits.progress_user = &watch;
    limits.cancel = progress_cancel;
    limits.cancel_user = &watch;
    progress_begin(&watch, feedback_wanted(&settings->feedback), limits.iterations, &built->time);
    progress_limit(&watch, built->workspace);
    bool done = model_plan(&settings->model, settings->image_file, built, &plan, problem);
    found.setup_s = seconds_now() - built->time.began_s;
    done =
        done &&
        (dcrf_certify(plan, built->workspace, labels, &limits, &found.certificate, &error) >= 0 ||
         compatibility_problem(settings->model.compatibility, dcrf_model_labels(built->model),
                               settings->labels_file, &error, problem));
    progress_end(&watch);
    dcrf_workspace_set_limit(built->workspace, 0, NULL, NULL);
    dcrf_plan_free(&plan);
    return done && evaluation_say(settings, built, &report, &found, problem);
}

static bool run_certify(const void *settings, cli_problem *problem) {
    return evaluate_labelling(settings, ((const certify_settings *)settings)->time_limit_s, certify,
                              problem);
}

static const option_group groups[] = {
    {"Labelling", evaluation_labels_table, 0},
    {"Limits", limits_table, 0},
    EVALUATION_OPTION_GROUPS,
    {"Device", device_option_table, offsetof(evaluation_settings, model.kernels)},
    {"Feedback", feedback_option_table, offsetof(evaluation_settings, feedback)},
    {0},
};

const cli_command certify_command = {
    {"certify", evaluation_operand_table, groups},
    "prove how good a labelling is",
    "Prints the energy of a labelling from any program, and a lower bound: no labelling has lower "
    "energy. The gap between the two says how far the labelling can be from the best one.\nCtrl-C "
    "stops the search for a higher bound and prints what is proven so far.",
    sizeof(certify_settings),
    run_certify,
};
