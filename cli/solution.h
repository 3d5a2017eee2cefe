/* A run of a solver and its results. */
#ifndef DCRF_CLI_SOLUTION_H
#define DCRF_CLI_SOLUTION_H

#include "model/model_options.h"
#include "progress.h"
#include "report/flicker.h"

#include <dcrf/proof.h>

typedef struct solver_options {
    int method;          /* dcrf_method */
    size_t iterations;   /* 0: the method's default */
    double time_limit_s; /* 0: none */
    double gap;          /* 0: the method's default */
    bool no_polish;
    size_t rounding_draws;
    size_t seed;
    const char *start_file; /* NULL: none */
    int lp_schedule;        /* dcrf_lp_schedule */
    int proving;            /* dcrf_proving: no command-line option, like the next */
    bool wants_marginals;   /* is there an output that needs them? */
} solver_options;

extern const cli_option method_option_table[];
extern const cli_option solver_option_table[]; /* for every method */

/* The library's settings; `trace` asks for moments. */
dcrf_settings settings_from_options(const solver_options *options, bool trace);

/* How an image was cut into tiles. */
typedef struct tiles_facts {
    size_t count;   /* 0: the image was solved as a whole */
    size_t current; /* the one being solved, from 1 */
    size_t solved;
    size_t along[DCRF_MAX_AXES];
    size_t window[DCRF_MAX_AXES]; /* of the first tile, including the overlap */
    size_t overlap[DCRF_MAX_AXES];
    size_t memory_bytes;    /* the limit; 0: none */
    double estimated_bytes; /* estimated memory use */
    size_t plan_bytes;      /* the largest plan */
    double vertices;        /* lattice vertices per pixel, the maximum over a sample */
    double largest_gap;     /* of a single tile's problem; NaN: no bound */
    flicker flicker_before; /* of a video, by the unaries alone */
    flicker flicker_after;
} tiles_facts;

typedef struct solution {
    dcrf_solver_info info;
    tiles_facts tiles; /* if there are any, only label counts and energies are known */
    uint16_t *labels;
    uint16_t *unary_labels; /* the unary minimum of every pixel */
    dcrf_plan *plan;        /* for solving the same model again */
    dcrf_energy unary_minimum;
    dcrf_energy constant; /* the best constant labelling; info.constant_label */
    float *marginals;     /* a block as in dcrf/grid.h; NULL if they are not wanted */
    size_t stride;
    float *confidence; /* the marginal of the chosen label, one per pixel; NULL as well */
    dcrf_moment *moments;
    size_t moment_count;
    double setup_s; /* reading, building and planning */
    size_t pixels;
    size_t label_count;
    dcrf_changes changes; /* compared with the unary minimum */
    size_t *before;       /* pixels per label in the unary minimum, */
    size_t *after;        /* and in the labelling */
    bool has_proof;       /* LP only */
    dcrf_proof_info proven;
    uint16_t *labels_left; /* labels that an optimal labelling can have, one number per pixel; 1
                            * means proven */
    uint8_t *certificate;  /* NULL: not requested, or not made */
    size_t certificate_size;
    double gap_asked_for; /* 0: none */
    bool was_cut_short;   /* memory ran out; this is what was found before */
} solution;

/* Solve; `trace` asks for moments. After an interruption the solution is the one found so far.
 * On failure there is nothing to free, but freeing is allowed. */
bool solution_find(const solver_options *options, const model_options *model,
                   const char *image_file, const built_model *built, bool trace, feedback talk,
                   solution *found, cli_problem *problem);
void solution_free(solution *found);

#endif
