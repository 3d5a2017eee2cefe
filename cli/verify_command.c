/* dcrf verify: are a certificate's claims true for this image? */
#include "command.h"
#include "io/file.h"
#include "io/json.h"
#include "report/evaluation.h"

#include <dcrf/verify.h>

typedef struct verify_settings {
    evaluation_settings evaluation;
    const char *certificate_file;
    double time_limit_s;
} verify_settings;

static const cli_option certificate_table[] = {
    {"certificate", 0, "FILE", NULL, true, parse_input, offsetof(verify_settings, certificate_file),
     "what dcrf solve --certificate wrote"},
    {"time-limit", 't', "S", NULL, false, parse_positive_number,
     offsetof(verify_settings, time_limit_s),
     "seconds; a check that takes longer fails, because nothing is known then"},
    {0},
};

/* ---- printing ------------------------------------------------------------------------------- */

static void print_number(const char *name, double value, const char *unit, const char *what) {
    printf("%-16s%16.4f%s  %s\n", name, value, unit, what);
}

static void print_result(const evaluation_settings *settings, const built_model *built,
                         const void *verified) {
    const dcrf_verification *found = verified;
    (void)built;
    const double pixels = (double)found->variables;
    printf("The certificate holds, for %s.\n",
           found->is_exact
               ? "the exact operator: the kernels were computed here"
               : "the fast operators: it is about the matrix that the lattice built here is (its\n"
                 "hash is the certificate's), not about the Gaussians that it stands for");
    print_number("energy", found->energy, "", "of the certificate's labelling");
    print_number("lower bound", found->lower_bound, "", "no labelling has less energy");
    print_number("gap", 100 * found->relative_gap, " %",
                 "no labelling is better by more than this");
    print_number("proven", 100 * (double)found->claimed_proven / pixels, " %",
                 "of the pixels: every optimal labelling has their label");
    if (settings->labels_file) {
        print_number("energy of labels", found->labels_energy, "", settings->labels_file);
        print_number("gap of labels", 100 * found->labels_gap, " %",
                     "no labelling is better by more than this");
        print_number("proven right", 100 * (double)found->right / pixels, " %", "of its pixels");
        print_number("proven wrong", 100 * (double)found->wrong / pixels, " %", "of its pixels");
    }
    printf("%.2f s\n", found->time_s);
}

static json_t *result_to_json(const evaluation_settings *settings, const built_model *built,
                              const void *verified) {
    const dcrf_verification *found = verified;
    (void)settings;
    (void)built;
    return json_pack(
        "{s:b, s:s, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:I, s:f}", "holds", 1, "operator",
        found->is_exact ? "exact" : "fast", "pixels", (json_int_t)found->variables, "energy",
        number_or_null(found->energy), "lower_bound", number_or_null(found->lower_bound),
        "relative_gap", number_or_null(found->relative_gap), "pixels_proven",
        (json_int_t)found->claimed_proven, "labels_energy", number_or_null(found->labels_energy),
        "labels_gap", number_or_null(found->labels_gap), "pixels_right", (json_int_t)found->right,
        "pixels_wrong", (json_int_t)found->wrong, "seconds", found->time_s);
}

/* ---- the work ------------------------------------------------------------------------------- */

/* If an operator is given, it must be the one that the certificate is about. */
static bool check_operator(const evaluation_settings *settings, const dcrf_verification *found,
                           const char *file, cli_problem *problem) {
    const bool exact = settings->model.kernels.operator_kind == DCRF_OPERATOR_EXACT;
    if (!option_was_given(settings->sources.record, "operator") || exact == !!found->is_exact)
        return true;
    return bad_input(problem, file,
                     "the certificate is about the %s, not about the %s of --operator",
                     found->is_exact ? "exact operator" : "fast operators",
                     exact ? "exact operator" : "fast operators");
}

static bool verify(const evaluation_settings *settings, const built_model *built,
                   const uint16_t *labels, cli_problem *problem) {
    static const evaluation_report report = {print_result, result_to_json};
    const char *file = ((const verify_settings *)settings)->certificate_file;
    dcrf_verification found;
    file_bytes bytes;
    dcrf_error error;
    progress watch;
    if (!file_read(file, &bytes, problem))
        return false;
    progress_begin(&watch, feedback_wanted(&settings->feedback), 0, &built->time);
    progress_limit(&watch, built->workspace);
    watch.first = "checking the certificate";
    const bool done =
        dcrf_verify_certificate(bytes.data, bytes.size, built->model, built->workspace, labels,
                                NULL, 0, &found, &error) >= 0 ||
        library_problem(problem, file, &error);
    dcrf_workspace_set_limit(built->workspace, 0, NULL, NULL);
    progress_end(&watch);
    file_free(&bytes);
    return done && check_operator(settings, &found, file, problem) &&
           evaluation_say(settings, built, &report, &found, problem);
}

static bool run_verify(const void *settings, cli_problem *problem) {
    return evaluate_labelling(settings, ((const verify_settings *)settings)->time_limit_s, verify,
                              problem);
}

static const option_group groups[] = {
    {"Certificate", certificate_table, 0},
    {"A labelling to compare with it", evaluation_optional_labels_table, 0},
    EVALUATION_OPTION_GROUPS,
    {"Feedback", feedback_option_table, offsetof(evaluation_settings, feedback)},
    {0},
};

const cli_command verify_command = {
    {"verify", evaluation_operand_table, groups},
    "check a certificate against the image, with separate code",
    "Recomputes from the image, the unaries and the settings what a certificate of dcrf solve "
    "claims: energy, lower bound and proven pixels. The code shares nothing with the solvers. A "
    "certificate that was changed, belongs to another image or other settings, or claims more than "
    "it proves is refused. It always runs on the CPU. The operator is the one that the certificate "
    "names, and --operator must agree; with the exact operator the time grows with the square of "
    "the number of pixels.",
    sizeof(verify_settings),
    run_verify,
};
