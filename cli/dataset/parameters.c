#include "dataset/parameters.h"

#include "args/nearest.h"
#include "dataset/prepared.h"
#include "report/json_text.h"
#include "report/number_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------ */

typedef enum parameter_owner {
    OF_FACTOR,
    OF_STRENGTH,
    OF_SHARE,
    OF_SPATIAL,
    OF_BILATERAL,
    OF_SUPERPIXELS,
    OF_CLIQUES
} owner;

typedef struct parameter {
    const char *name;
    owner of;
    size_t offset; /* of the value, a double, in model_options */
    /* Bounds for symmetrically normalized kernels, and the upper bound for others. */
    double low;
    double high;
    double high_unnormalized;
} parameter;

/* Every size needs new superpixels, so only a few sizes are used. */
#define REGION_STEP 1.4142135623730951

static const parameter table[] = {
    {"strength-factor", OF_FACTOR, offsetof(model_options, strength.factor), 0.1, 10, 10},
    {"strength", OF_STRENGTH, offsetof(model_options, strength.nats), 0.1, 20, 20},
    {"spatial-share", OF_SHARE, offsetof(model_options, strength.spatial_share), 0.05, 0.95, 0.95},
    {"spatial-sigma", OF_SPATIAL, offsetof(model_options, kernels.spatial.sigma_px), 0.5, 10, 10},
    {"spatial-weight", OF_SPATIAL, offsetof(model_options, kernels.spatial.weight), 0.05, 20, 100},
    {"bilateral-sigma", OF_BILATERAL, offsetof(model_options, kernels.bilateral.sigma_px), 5, 150,
     150},
    {"bilateral-colour", OF_BILATERAL, offsetof(model_options, kernels.bilateral.sigma_colour), 1,
     40, 40},
    {"bilateral-weight", OF_BILATERAL, offsetof(model_options, kernels.bilateral.weight), 0.05, 40,
     100},
    {"min-region", OF_SUPERPIXELS, offsetof(model_options, min_region_px), 5, 200, 200},
    {"gamma", OF_CLIQUES, offsetof(model_options, gamma), 0.1, 200, 200},
    {"eta", OF_CLIQUES, offsetof(model_options, eta), 5, 1000, 1000},
};

#define TABLE_ROWS (sizeof table / sizeof table[0])
_Static_assert(TABLE_ROWS <= SEARCH_AXES_MAX, "all can be tuned together");

/* The default that a size of 0 stands for. */
static size_t usual_min_region_px(const model_options *model) {
    dcrf_superpixel_settings settings;
    dcrf_superpixel_settings_defaults(&settings);
    return strcmp(cliques_wanted(model), dcrf_superpixel_method_name(DCRF_SUPERPIXEL_SLIC)) == 0
               ? (size_t)(settings.region_size_px * settings.region_size_px / 4)
               : DCRF_SUPERPIXEL_MIN_REGION_PX;
}

static double get(const parameter *p, const model_options *model) {
    const char *place = (const char *)model + p->offset;
    if (p->of != OF_SUPERPIXELS) {
        const double value = *(const double *)place;
        return isnan(value) ? SEARCH_AUTOMATIC : value;
    }
    return (double)(model->min_region_px > 0 ? model->min_region_px : usual_min_region_px(model));
}

static void put(const parameter *p, model_options *model, double value) {
    if (p->of == OF_SUPERPIXELS)
        model->min_region_px = (size_t)value;
    else
        *(double *)((char *)model + p->offset) = value == SEARCH_AUTOMATIC ? NAN : value;
}

static const parameter *find_parameter(const char *name, size_t length) {
    for (size_t i = 0; i < TABLE_ROWS; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

/* ---- the option ----------------------------------------------------------------------------- */

#define SUBJECT "--parameters"

static bool unknown_parameter(const char *name, cli_problem *problem) {
    nearest_name nearest = nearest_start(name);
    for (size_t i = 0; i < TABLE_ROWS; i++)
        nearest_offer(&nearest, table[i].name);
    return nearest.best
               ? bad_input(problem, SUBJECT, "'%s' is unknown; did you mean %s?", name,
                           nearest.best)
               : bad_input(problem, SUBJECT,
                           "'%s' is unknown; there are strength-factor, strength, spatial-share, "
                           "spatial-sigma, spatial-weight, bilateral-sigma, bilateral-colour, "
                           "bilateral-weight, "
                           "min-region, gamma and eta",
                           name);
}

/* "LOW:HIGH[:log|linear]"; modifies the text. */
static bool parse_bounds(char *text, parameter_choice *choice) {
    char *high = strchr(text, ':');
    if (!high)
        return false;
    *high++ = '\0';
    char *scale = strchr(high, ':');
    if (scale)
        *scale++ = '\0';
    choice->bounded = true;
    choice->scaled = scale != NULL;
    choice->logarithmic = scale && strcmp(scale, "log") == 0;
    return parse_number_list(text, &choice->low, 1) && parse_number_list(high, &choice->high, 1) &&
           (!scale || choice->logarithmic || strcmp(scale, "linear") == 0);
}

static bool check_bounds(const parameter *p, const parameter_choice *choice, cli_problem *problem) {
    const bool may_be_zero =
        p->of == OF_STRENGTH || strstr(p->name, "weight") || strcmp(p->name, "gamma") == 0;
    const bool linear = choice->scaled && !choice->logarithmic;
    if (!(choice->low < choice->high))
        return bad_input(problem, SUBJECT, "%s: %g is not below %g", p->name, choice->low,
                         choice->high);
    if (choice->low < 0 || (choice->low == 0 && (!may_be_zero || !linear)))
        return bad_input(problem, SUBJECT, "%s: its lower bound must be above zero%s", p->name,
                         may_be_zero ? ", or zero on a linear scale" : "");
    if (p->of == OF_SUPERPIXELS && (choice->low != floor(choice->low) ||
                                    choice->high != floor(choice->high) || choice->high > 1e9))
        return bad_input(problem, SUBJECT, "%s: its bounds must be whole numbers of pixels",
                         p->name);
    return true;
}

static bool parse_one(char *text, parameter_list *list, cli_problem *problem) {
    char *bounds = strchr(text, '=');
    parameter_choice choice = {0};
    if (bounds)
        *bounds++ = '\0';
    const parameter *p = find_parameter(text, strlen(text));
    if (!p)
        return unknown_parameter(text, problem);
    choice.parameter = (size_t)(p - table);
    if (bounds && !parse_bounds(bounds, &choice))
        return bad_input(problem, SUBJECT,
                         "%s: its bounds are not LOW:HIGH, LOW:HIGH:log or "
                         "LOW:HIGH:linear",
                         text);
    if (bounds && !check_bounds(p, &choice, problem))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->of[i].parameter == choice.parameter)
            return bad_input(problem, SUBJECT, "%s stands there twice", text);
    list->of[list->count++] = choice; /* each once, so there is room */
    return true;
}

bool parse_parameters(const cli_option *option, const char *text, void *value,
                      cli_problem *problem) {
    parameter_list *list = value;
    char *copy = strdup(text);
    bool done = copy || out_of_memory(problem, SUBJECT);
    (void)option;
    list->count = 0;
    for (char *one = copy; done && one;) {
        char *comma = strchr(one, ',');
        if (comma)
            *comma++ = '\0';
        done = parse_one(one, list, problem);
        one = comma;
    }
    free(copy);
    return done;
}

/* ---- axes ----------------------------------------------------------------------------------- */

/* NULL if the model has this parameter, otherwise why not. */
static const char *why_not(const parameter *p, const model_options *model, bool cliques) {
    const kernel_setting *spatial = &model->kernels.spatial, *bilateral = &model->kernels.bilateral;
    const int sharing =
        (spatial->on && !spatial->weighted) + (bilateral->on && !bilateral->weighted);
    if ((p->of == OF_STRENGTH || p->of == OF_FACTOR) && sharing == 0)
        return "every kernel has a weight of its own";
    if (p->of == OF_FACTOR && !isnan(model->strength.nats))
        return "the strength is given; it is for --strength auto";
    if (p->of == OF_STRENGTH && isnan(model->strength.nats))
        return "the strength is automatic; tune strength-factor, or give a --strength to begin "
               "with";
    if (p->of == OF_SHARE && sharing < 2)
        return "the kernels do not share the strength";
    if (p->offset == offsetof(model_options, kernels.spatial.weight) && !spatial->weighted)
        return "the spatial kernel has no weight of its own but a part of the strength";
    if (p->offset == offsetof(model_options, kernels.bilateral.weight) && !bilateral->weighted)
        return "the bilateral kernel has no weight of its own but a part of the strength";
    if (p->of == OF_SPATIAL && !spatial->on)
        return "there is no spatial kernel";
    if (p->of == OF_BILATERAL && !bilateral->on)
        return "there is no bilateral kernel";
    if ((p->of == OF_CLIQUES || p->of == OF_SUPERPIXELS) && !cliques)
        return "the method has no cliques; add +cliques to its name";
    if (p->of == OF_SUPERPIXELS && cliques_are_files(cliques_wanted(model)))
        return "the regions come from files";
    return NULL;
}

static bool is_strength(const parameter *p) {
    return p->of == OF_STRENGTH || p->of == OF_FACTOR;
}

static search_axis axis_of(const parameter_choice *choice, const model_options *model) {
    const parameter *p = &table[choice->parameter];
    const bool symmetric = model->kernels.normalization == DCRF_NORMALIZE_SYMMETRIC;
    search_axis axis = {p->name, p->low, symmetric ? p->high : p->high_unnormalized, true, 0};
    if (choice->bounded) {
        axis.low = choice->low;
        axis.high = choice->high;
    }
    if (choice->scaled)
        axis.logarithmic = choice->logarithmic;
    if (p->of == OF_SUPERPIXELS)
        axis.step_factor = REGION_STEP;
    return axis;
}

bool parameters_choose(const parameter_list *list, const model_options *model, bool cliques,
                       search_space *space, double *values, cli_problem *problem) {
    parameter_list used = *list;
    for (size_t i = 0; list->count == 0 && i < TABLE_ROWS; i++)
        if (!why_not(&table[i], model, cliques))
            used.of[used.count++] = (parameter_choice){.parameter = i};
    if (used.count == 0)
        return bad_input(problem, SUBJECT, "the model has none: there are no kernels");
    space->axis_count = used.count;
    space->sweeps = is_strength(&table[used.of[0].parameter]) && used.count > 1;
    for (size_t i = 0; i < used.count; i++) {
        const parameter *p = &table[used.of[i].parameter];
        const char *reason = why_not(p, model, cliques);
        if (reason)
            return bad_input(problem, SUBJECT, "%s: %s", p->name, reason);
        space->axes[i] = axis_of(&used.of[i], model);
        values[i] = get(p, model);
    }
    return true;
}

void parameters_apply(const search_space *space, const double *values, model_options *model) {
    for (size_t i = 0; i < space->axis_count; i++) {
        const char *name = space->axes[i].name;
        put(find_parameter(name, strlen(name)), model, values[i]);
    }
}

/* ---- as settings ---------------------------------------------------------------------------- */

/* "SIGMA[,W]", "SIGMA_XY,SIGMA_RGB[,W]" or "none". */
static json_t *kernel_to_json(const kernel_setting *kernel, bool bilateral) {
    char sigma[NUMBER_TEXT_BYTES], colour[NUMBER_TEXT_BYTES], weight[NUMBER_TEXT_BYTES];
    if (!kernel->on)
        return json_string("none");
    number_text(kernel->sigma_px, sigma);
    number_text(kernel->sigma_colour, colour);
    number_text(kernel->weight, weight);
    const char *comma = kernel->weighted ? "," : "", *last = kernel->weighted ? weight : "";
    return bilateral ? json_sprintf("%s,%s%s%s", sigma, colour, comma, last)
                     : json_sprintf("%s%s%s", sigma, comma, last);
}

static const char *number_or_auto_text(double value, char text[NUMBER_TEXT_BYTES]) {
    return isnan(value) ? "auto" : number_text(value, text);
}

json_t *parameters_to_json(const model_options *model, bool cliques) {
    const kernel_options *kernels = &model->kernels;
    char text[4][NUMBER_TEXT_BYTES];
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:s, s:s}", "normalize",
        kernels->normalization == DCRF_NORMALIZE_SYMMETRIC ? "symmetric" : "none", "operator",
        kernels->operator_kind == DCRF_OPERATOR_EXACT ? "exact" : "fast", "spatial",
        kernel_to_json(&kernels->spatial, false), "bilateral",
        kernel_to_json(&kernels->bilateral, true), "compatibility", json_text(model->compatibility),
        "strength", number_or_auto_text(model->strength.nats, text[0]), "strength-factor",
        number_text(model->strength.factor, text[3]), "spatial-share",
        number_text(model->strength.spatial_share, text[1]), "temperature",
        number_text(model->strength.temperature, text[2]), "cliques",
        cliques ? cliques_wanted(model) : "none");
    if (!root || !cliques)
        return root;
    json_t *more = json_pack("{s:I, s:s, s:s}", "min-region", (json_int_t)model->min_region_px,
                             "gamma", number_or_auto_text(model->gamma, text[0]), "eta",
                             number_text(model->eta, text[1]));
    if (!more || json_object_update(root, more) != 0) {
        json_decref(root);
        root = NULL;
    }
    json_decref(more);
    return root;
}
