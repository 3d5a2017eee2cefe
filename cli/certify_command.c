/* dcrf certify: how far any labelling is from the best one, at most. */
#include "clock.h"
#include "command.h"
#include "io/json.h"
#include "io/output.h"
#include "solution_text.h"

#include <math.h>
#include <stdlib.h>

typedef struct certify_settings {
    const char *image_file;
    const char *labels_file;
    const char *json_file; /* NULL: none */
    size_t iterations;
    double time_limit_s;
    double gap;
    source_options sources;
    feedback_options feedback;
    model_options model;
} certify_settings;

static const cli_option labels_table[] = {
    {"labels", 0, "FILE", NULL, true, parse_text, offsetof(certify_settings, labels_file),
     "the labelling, of any origin: a grey or indexed picture, an integer .npy, or a NIfTI volume"},
    {"iterations", 'n', "N", NUMBER_TEXT(DCRF_DEFAULT_CERTIFY_ITERATIONS), false,
     parse_positive_count, offsetof(certify_settings, iterations), "at most"},
    {"time-limit", 't', "S", NUMBER_TEXT(DCRF_DEFAULT_CERTIFY_TIME_LIMIT_S), false,
     parse_positive_number, offsetof(certify_settings, time_limit_s), "seconds"},
    {"gap", 0, "G", NUMBER_TEXT(DCRF_DEFAULT_CERTIFY_GAP), false, parse_positive_number,
     offsetof(certify_settings, gap),
     "stop when the labelling is proven to be within the fraction G of the optimum"},
    {0},
};

static const cli_option output_table[] = {
    {"json", 0, "FILE|-", NULL, false, parse_text, offsetof(certify_settings, json_file),
     "the result as JSON; - writes it to the standard output, instead of the summary"},
    {0},
};

static const cli_option *const no_settings[] = {output_table, feedback_option_table, NULL};

/* ---- words and numbers ---------------------------------------------------------------------- */

static void print_result(const built_model *built, const dcrf_certificate *certificate) {
    const proof proven = {certificate->lower_bound, certificate->relative_gap};
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
    printf("%zu iteration%s, %s; %.2f s\n", certificate->iterations,
           certificate->iterations == 1 ? "" : "s", stop_reason(certificate->stop),
           certificate->seconds);
}

static json_t *result_to_json(const certify_settings *settings, const built_model *built,
                              const dcrf_certificate *certificate, double setup_s) {
    const proof proven = {certificate->lower_bound, certificate->relative_gap};
    json_t *root =
        json_pack("{s:n, s:I, s:s, s:f, s:f, s:n, s:o, s:b}", "method", "iterations",
                  (json_int_t)certificate->iterations, "stop", dcrf_status_name(certificate->stop),
                  "setup_s", setup_s, "solve_s", certificate->seconds, "polish_s", "best_energy",
                  number_or_null(certificate->best_energy), "constant", certificate->is_constant);
    root = json_merge(root, json_pack("{s:I, s:I}", "pixels_right", (json_int_t)certificate->right,
                                      "pixels_wrong", (json_int_t)certificate->wrong));
    root = json_merge(root, energies_to_json(&certificate->energy, &proven));
    root = json_merge(root, model_report(&settings->model, built));
    return json_merge(root, json_pack("{s:o}", "settings",
                                      settings_to_json(settings->sources.record, no_settings)));
}

/* ---- the work ------------------------------------------------------------------------------- */

static bool certify(const certify_settings *settings, const built_model *built,
                    const uint16_t *labels, double began_s, dcrf_certificate *certificate,
                    double *setup_s, cli_problem *problem) {
    dcrf_plan *plan = NULL;
    dcrf_error error;
    dcrf_certify_settings limits;
    progress watch;
    if (!model_plan(&settings->model, settings->image_file, built, &plan, problem))
        return false;
    dcrf_certify_settings_defaults(&limits);
    limits.time_limit_s = settings->time_limit_s;
    limits.gap = settings->gap;
    limits.iterations = settings->iterations;
    limits.progress = progress_moment;
    limits.progress_user = &watch;
    limits.cancel = progress_cancel;
    limits.cancel_user = &watch;
    *setup_s = seconds_now() - began_s;
    progress_begin(&watch, feedback_wanted(&settings->feedback), limits.iterations,
                   limits.time_limit_s);
    const bool done =
        dcrf_certify(plan, built->workspace, labels, &limits, certificate, &error) >= 0 ||
        library_problem(problem, settings->labels_file, &error);
    progress_end(&watch);
    dcrf_plan_free(&plan);
    return done;
}

static bool report(const certify_settings *settings, const built_model *built,
                   const dcrf_certificate *certificate, double setup_s, cli_problem *problem) {
    const bool quiet = feedback_wanted(&settings->feedback) == FEEDBACK_QUIET;
    if (!quiet && !(settings->json_file && output_is_standard(settings->json_file)))
        print_result(built, certificate);
    /* What cannot be said is a failure, and then there is no file either. */
    return output_flush_standard(problem) &&
           (!settings->json_file ||
            json_save_and_free(settings->json_file,
                               result_to_json(settings, built, certificate, setup_s), problem));
}

static bool run_certify(const void *given, cli_problem *problem) {
    const certify_settings *settings = given;
    const double began_s = seconds_now();
    built_model built;
    dcrf_certificate certificate;
    double setup_s;
    uint16_t *labels = NULL;
    if (settings->json_file && !output_check(settings->json_file, problem))
        return false;
    if (!model_build(&settings->model, settings->image_file, &built, problem))
        return false;
    const bool done = (model_read_labels(&built, settings->labels_file, &labels, problem) ||
                       problem_of_option(problem, "--labels")) &&
                      certify(settings, &built, labels, began_s, &certificate, &setup_s, problem) &&
                      report(settings, &built, &certificate, setup_s, problem);
    free(labels);
    model_free(&built);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_text,
     .offset = offsetof(certify_settings, image_file),
     .help = IMAGE_OPERAND_HELP},
    {0},
};

static const option_group groups[] = {
    {"Labelling and limits", labels_table, 0},
    {"Results", output_table, 0},
    MODEL_OPTION_GROUPS(certify_settings, model),
    {"Settings from elsewhere", source_option_table, offsetof(certify_settings, sources)},
    {"Feedback", feedback_option_table, offsetof(certify_settings, feedback)},
    {0},
};

const cli_command certify_command = {
    {"certify", operands, groups},
    "a proof of how good a labelling is",
    "Prints the energy of a labelling, whatever program it comes from, and a lower bound: no "
    "labelling whatsoever has less energy than that. The gap between the two tells how far the "
    "labelling is from the best one at most.\n"
    "Ctrl-C ends the search for a higher bound; what is proven so far is printed.",
    sizeof(certify_settings),
    run_certify,
};
