#include "model/strength.h"

#include "io/json.h"

#include <math.h>

static bool parse_share(const cli_option *option, const char *text, void *value,
                        cli_problem *problem) {
    double number;
    (void)option;
    if (!parse_number_list(text, &number, 1) || !(number >= 0 && number <= 1))
        return bad_input(problem, "--spatial-share", "'%s' is not a number from 0 to 1", text);
    *(double *)value = number;
    return true;
}

const cli_option strength_option_table[] = {
    {"strength", 0, "auto|NATS", "auto", false, parse_number_or_auto,
     offsetof(strength_options, nats),
     "what it costs a pixel to disagree with everything around it, in the unit of the unary "
     "energies; kernels without a weight of their own share it; auto: measured from the unaries"},
    {"strength-factor", 0, "F", "1", false, parse_positive_number,
     offsetof(strength_options, factor), "multiply the automatic strength by F"},
    {"spatial-share", 0, "P", NUMBER_TEXT(DCRF_DEFAULT_SPATIAL_SHARE), false, parse_share,
     offsetof(strength_options, spatial_share),
     "the spatial kernel's share of the strength, if both kernels share it"},
    {"temperature", 0, "T", "1", false, parse_positive_number,
     offsetof(strength_options, temperature),
     "divide unary energies by T; use a value above 1 for an overconfident network"},
    {0},
};

/* A kernel's share of the strength; a kernel that does not share it gets all. */
static double share_of(const strength_options *options, const dcrf_kernel *kernel, size_t sharing) {
    if (sharing < 2)
        return 1;
    return kernel->kind == DCRF_KERNEL_SPATIAL ? options->spatial_share
                                               : 1 - options->spatial_share;
}

bool strength_check(const strength_options *options, const bool *weighted, size_t count,
                    bool normalized, cli_problem *problem) {
    size_t sharing = 0;
    for (size_t k = 0; k < count; k++)
        sharing += !weighted[k];
    if (sharing > 0 && !normalized)
        return bad_input(problem, "--normalize",
                         "none: kernels that are not normalized need weights of their own, such as "
                         "--spatial 3,0.5 --bilateral 60,8,0.1");
    if (sharing == 0 && count > 0 && !isnan(options->nats))
        return bad_input(problem, "--strength",
                         "every kernel has a weight of its own; leave the weight out of --spatial "
                         "or --bilateral, or leave out --strength");
    return true;
}

bool strength_measure(const dcrf_model *model, dcrf_workspace *workspace,
                      dcrf_measured_strength *measured, cli_problem *problem) {
    dcrf_error error;
    return dcrf_model_measure_strength(model, workspace, measured, &error) >= 0 ||
           library_problem(problem, "--strength", &error);
}

bool strength_apply(const strength_options *options, const dcrf_measured_strength *measured,
                    const bool *weighted, dcrf_kernel *kernels, size_t count, dcrf_model *model,
                    applied_strength *applied, cli_problem *problem) {
    dcrf_error error;
    size_t sharing = 0;
    *applied = (applied_strength){.automatic = isnan(options->nats), .measured = *measured};
    const double nats = applied->automatic ? options->factor * measured->strength : options->nats;
    for (size_t k = 0; k < count; k++)
        sharing += !weighted[k];
    for (size_t k = 0; k < count; k++) {
        if (!weighted[k])
            kernels[k].weight = nats / 2 * share_of(options, &kernels[k], sharing);
        if (dcrf_model_set_weight(model, k, kernels[k].weight, &error) < 0)
            return library_problem(problem, "--strength", &error);
    }
    applied->shared = sharing > 0;
    applied->automatic = applied->automatic && applied->shared;
    applied->nats = dcrf_model_strength(model);
    return true;
}

json_t *strength_to_json(const applied_strength *applied) {
    const dcrf_measured_strength *m = &applied->measured;
    return json_pack("{s:f, s:b, s:o, s:o, s:o, s:o, s:I}", "nats", applied->nats, "automatic",
                     applied->automatic, "suitable_nats", number_or_null(m->strength), "rho",
                     number_or_null(m->rho), "temperature", number_or_null(m->temperature),
                     "margin_nats", number_or_null(m->margin), "pairs", (json_int_t)m->pairs);
}
