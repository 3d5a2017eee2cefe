/* dcrf verify: is what a certificate claims true for this image? */
#include "command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "solution_text.h"

#include <dcrf/verify.h>
#include <math.h>
#include <stdlib.h>

typedef struct verify_settings {
    const char *image_file;
    const char *certificate_file;
    const char *labels_file; /* NULL: none */
    const char *json_file;   /* NULL: none */
    source_options sources;
    feedback_options feedback;
    model_options model;
} verify_settings;

static const cli_option certificate_table[] = {
    {"certificate", 0, "FILE", NULL, true, parse_text, offsetof(verify_settings, certificate_file),
     "what dcrf solve --certificate wrote"},
    {"labels", 0, "FILE", NULL, false, parse_text, offsetof(verify_settings, labels_file),
     "a labelling to hold against it, of any origin: a grey or indexed picture, an integer .npy, "
     "or "
     "a NIfTI volume"},
    {0},
};

static const cli_option output_table[] = {
    {"json", 0, "FILE|-", NULL, false, parse_text, offsetof(verify_settings, json_file),
     "the result as JSON; - writes it to the standard output, instead of the summary"},
    {0},
};

/* ---- words and numbers ---------------------------------------------------------------------- */

static void print_number(const char *name, double value, const char *unit, const char *what) {
    printf("%-16s%16.4f%s  %s\n", name, value, unit, what);
}

static void print_result(const verify_settings *settings, const dcrf_verification *found) {
    const double pixels = (double)found->variables;
    printf("The certificate holds, for %s.\n",
           found->is_exact ? "the exact operator: the kernels were computed here"
                           : "the fast operators, whose matrix was taken on trust");
    print_number("energy", found->energy, "", "of the certificate's labelling");
    print_number("lower bound", found->lower_bound, "", "no labelling has less energy");
    print_number("gap", 100 * found->relative_gap, " %",
                 "no labelling is better by more than this");
    print_number("proven", 100 * (double)found->proven / pixels, " %",
                 "of the pixels: every optimal labelling has their label");
    if (settings->labels_file) {
        print_number("energy of labels", found->labels_energy, "", settings->labels_file);
        print_number("gap of labels", 100 * found->labels_gap, " %",
                     "no labelling is better by more than this");
        print_number("proven right", 100 * (double)found->right / pixels, " %", "of its pixels");
        print_number("proven wrong", 100 * (double)found->wrong / pixels, " %", "of its pixels");
    }
    printf("%.2f s\n", found->seconds);
}

static json_t *result_to_json(const dcrf_verification *found) {
    return json_pack(
        "{s:b, s:s, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:I, s:f}", "holds", 1, "operator",
        found->is_exact ? "exact" : "fast", "pixels", (json_int_t)found->variables, "energy",
        number_or_null(found->energy), "lower_bound", number_or_null(found->lower_bound),
        "relative_gap", number_or_null(found->relative_gap), "pixels_proven",
        (json_int_t)found->proven, "labels_energy", number_or_null(found->labels_energy),
        "labels_gap", number_or_null(found->labels_gap), "pixels_right", (json_int_t)found->right,
        "pixels_wrong", (json_int_t)found->wrong, "seconds", found->seconds);
}

/* ---- the work ------------------------------------------------------------------------------- */

static bool verify(const verify_settings *settings, const built_model *built,
                   const uint16_t *labels, dcrf_verification *found, cli_problem *problem) {
    file_bytes bytes;
    dcrf_error error;
    if (!file_read(settings->certificate_file, &bytes, problem))
        return false;
    const bool done = dcrf_verify_certificate(bytes.data, bytes.size, built->model,
                                              built->workspace, labels, NULL, found, &error) >= 0 ||
                      library_problem(problem, settings->certificate_file, &error);
    file_free(&bytes);
    return done;
}

static bool report(const verify_settings *settings, const dcrf_verification *found,
                   cli_problem *problem) {
    const bool quiet = feedback_wanted(&settings->feedback) == FEEDBACK_QUIET;
    if (!quiet && !(settings->json_file && output_is_standard(settings->json_file)))
        print_result(settings, found);
    return output_flush_standard(problem) &&
           (!settings->json_file ||
            json_save_and_free(settings->json_file, result_to_json(found), problem));
}

static bool run_verify(const void *given, cli_problem *problem) {
    const verify_settings *settings = given;
    built_model built;
    dcrf_verification found;
    uint16_t *labels = NULL;
    if (settings->json_file && !output_check(settings->json_file, problem))
        return false;
    if (!model_build(&settings->model, settings->image_file, &built, problem))
        return false;
    const bool done = (!settings->labels_file ||
                       model_read_labels(&built, settings->labels_file, &labels, problem)) &&
                      verify(settings, &built, labels, &found, problem) &&
                      report(settings, &found, problem);
    free(labels);
    model_free(&built);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_text,
     .offset = offsetof(verify_settings, image_file),
     .help = IMAGE_OPERAND_HELP},
    {0},
};

static const option_group groups[] = {
    {"Certificate", certificate_table, 0},
    {"Results", output_table, 0},
    MODEL_OPTION_GROUPS(verify_settings, model),
    {"Settings from elsewhere", source_option_table, offsetof(verify_settings, sources)},
    {"Feedback", feedback_option_table, offsetof(verify_settings, feedback)},
    {0},
};

const cli_command verify_command = {
    {"verify", operands, groups},
    "check a certificate against the image, by code of its own",
    "Computes again, from the image, the unaries and the settings, what a certificate of dcrf "
    "solve "
    "claims: energy, lower bound, and which pixels are proven. The code shares nothing with the "
    "solvers. A certificate that was changed, belongs to another image or other settings, or "
    "claims "
    "more than it proves is refused. The operator is the one that the certificate names; with the "
    "exact one the time grows with the square of the number of pixels.",
    sizeof(verify_settings),
    run_verify,
};
