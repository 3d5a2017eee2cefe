/* The parameters that can be tuned: five of the kernels, three of the cliques. */
#ifndef DCRF_CLI_DATASET_PARAMETERS_H
#define DCRF_CLI_DATASET_PARAMETERS_H

#include "dataset/search.h"
#include "model/model_options.h"

/* What the user specified for one parameter. */
typedef struct parameter_choice {
    size_t parameter; /* its index in the table */
    bool bounded;     /* the bounds are given */
    double low;
    double high;
    bool scaled; /* the scale is given */
    bool logarithmic;
} parameter_choice;

typedef struct parameter_list {
    parameter_choice of[SEARCH_AXES_MAX];
    size_t count; /* 0: all that the model has */
} parameter_list;

#define PARAMETERS_FORM "NAME[=LOW:HIGH[:log|linear]],..."
option_parser parse_parameters; /* parameter_list */

/* The axes of the search, and the model's position on them. Cliques are included if `cliques`
 * says so. Values outside the bounds are kept. */
bool parameters_choose(const parameter_list *list, const model_options *model, bool cliques,
                       search_space *space, double *values, cli_problem *problem);

/* Put values of the axes into the model. */
void parameters_apply(const search_space *space, const double *values, model_options *model);

/* The model as a config file, with as many digits as needed. NULL if out of memory. */
json_t *parameters_to_json(const model_options *model, bool cliques);

#endif
