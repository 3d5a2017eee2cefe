#include "solution.h"

#include "clock.h"
#include "model/compatibility.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS_WITH_A_TIME_LIMIT 1000000
/* Time limit for a requested gap if none is given. */
#define GAP_TIME_S 600

/* ---- options -------------------------------------------------------------------------------- */

_Static_assert(DCRF_METHOD_MF == 0 && DCRF_METHOD_QP == 1 && DCRF_METHOD_LP == 2, "mf|qp|lp");
_Static_assert(DCRF_LP_SCHEDULE_HUBER == 0 && DCRF_LP_SCHEDULE_PROXIMAL == 1 &&
                   DCRF_LP_SCHEDULE_PAPER == 2,
               "huber|proximal|paper");

const cli_option method_option_table[] = {
    {"method", 'm', "mf|qp|lp", "mf", false, parse_choice, offsetof(solver_options, method),
     "mean field, the quadratic or the linear relaxation; only lp gives a lower bound"},
    {"start", 0, "LABELS", NULL, false, parse_input, offsetof(solver_options, start_file),
     "a labelling to begin with; the result is never worse"},
    {0},
};

const cli_option solver_option_table[] = {
    {"iterations", 'n', "N", NULL, false, parse_positive_count,
     offsetof(solver_options, iterations),
     "maximum number of iterations; without this and a time limit: mf " NUMBER_TEXT(DCRF_DEFAULT_MF_ITERATIONS) ", qp " NUMBER_TEXT(
         DCRF_DEFAULT_QP_ITERATIONS) ", lp " NUMBER_TEXT(DCRF_DEFAULT_LP_ITERATIONS)},
    {"time-limit", 't', "S", NULL, false, parse_positive_number,
     offsetof(solver_options, time_limit_s),
     "wall time in seconds for the whole run: reading, set-up, candidates, iterations and "
     "polishing; it is an error if the time is up before there is a labelling with a known energy"},
    {"gap", 0, "G", NULL, false, parse_fraction, offsetof(solver_options, gap),
     "stop when the energy is proven to be within the fraction G of the optimum (0.01 or 1%); "
     "pursued until the time limit, or for " NUMBER_TEXT(GAP_TIME_S) " s; by default " NUMBER_TEXT(
         DCRF_DEFAULT_LP_GAP)},
    {"no-polish", 0, NULL, NULL, false, parse_switch, offsetof(solver_options, no_polish),
     "do not improve the labelling by moves of pixels, classes and cliques at the end"},
    {"draws", 0, "K", "0", false, parse_count, offsetof(solver_options, rounding_draws),
     "random threshold roundings to try in addition to the largest marginals"},
    {"seed", 0, "S", "1", false, parse_count, offsetof(solver_options, seed), "of --draws"},
    {"lp-schedule", 0, "huber|proximal|paper", "huber", false, parse_choice,
     offsetof(solver_options, lp_schedule),
     "how lp iterates: smoothed and accelerated, by proximal steps, or by the paper's own steps"},
    {0},
};

dcrf_settings settings_from_options(const solver_options *options, bool trace) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, (dcrf_method)options->method);
    if (options->iterations > 0)
        settings.iterations = options->iterations;
    if (options->time_limit_s > 0) {
        settings.time_limit_s = options->time_limit_s;
        /* Use the whole time limit as long as the method can improve. */
        if (options->iterations == 0)
            settings.iterations = ITERATIONS_WITH_A_TIME_LIMIT;
    }
    if (options->gap > 0) {
        settings.gap = options->gap;
        /* Continue until the gap is reached, however many iterations that takes. */
        if (options->iterations == 0 && options->method == DCRF_METHOD_LP) {
            settings.iterations = ITERATIONS_WITH_A_TIME_LIMIT;
            settings.time_limit_s = options->time_limit_s > 0 ? options->time_limit_s : GAP_TIME_S;
        }
    }
    if (options->no_polish)
        settings.polish = 0;
    settings.rounding_draws = options->rounding_draws;
    settings.seed = options->seed;
    settings.trace = trace;
    settings.lp.schedule = options->lp_schedule;
    settings.proof = (dcrf_proving)options->proving;
    if (settings.lp.schedule == DCRF_LP_SCHEDULE_PAPER)
        settings.lp.clique_form = DCRF_CLIQUE_SPREAD;
    return settings;
}

/* ---- the run -------------------------------------------------------------------------------- */

static bool take_certificate(const dcrf_proof *proof, solution *found, cli_problem *problem) {
    size_t size;
    const uint8_t *certificate = dcrf_proof_certificate(proof, &size);
    if (!certificate)
        return true;
    found->certificate = malloc(size);
    if (!found->certificate)
        return out_of_memory(problem, "certificate");
    memcpy(found->certificate, certificate, size);
    found->certificate_size = size;
    return true;
}

/* What is proven about single pixels, by the gap alone or by a proof. */
static bool take_proof(const dcrf_solver *solver, solution *found, cli_problem *problem) {
    const dcrf_proof *proof = dcrf_solver_proof(solver);
    dcrf_error error;
    if (dcrf_solver_labels_left(solver, found->labels_left, found->pixels, &error) < 0)
        return library_problem(problem, "proof", &error);
    found->has_proof = true;
    found->proven = (dcrf_proof_info){.variables = found->pixels,
                                      .proven = found->info.proven,
                                      .proven_by_gap = found->info.proven};
    for (size_t a = 0; a < found->pixels; a++)
        found->proven.possible += found->labels_left[a];
    if (proof)
        dcrf_proof_get_info(proof, &found->proven);
    return take_certificate(proof, found, problem);
}

static bool take_marginals(const dcrf_solver *solver, size_t variables, solution *found,
                           cli_problem *problem) {
    dcrf_error error;
    found->stride = dcrf_padded(found->label_count);
    found->marginals = calloc(variables, found->stride * sizeof *found->marginals);
    found->confidence = calloc(variables, sizeof *found->confidence);
    if (!found->marginals || !found->confidence)
        return out_of_memory(problem, "marginals");
    if (found->was_cut_short) { /* there may be no marginals: use the labels */
        for (size_t a = 0; a < variables; a++)
            found->marginals[a * found->stride + found->labels[a]] = 1;
    } else if (dcrf_solver_marginals(solver, found->marginals, variables * found->stride,
                                     found->stride, &error) < 0) {
        return library_problem(problem, "marginals", &error);
    }
    for (size_t a = 0; a < variables; a++)
        found->confidence[a] = found->marginals[a * found->stride + found->labels[a]];
    return true;
}

static bool take_results(const solver_options *options, const dcrf_solver *solver, size_t variables,
                         solution *found, cli_problem *problem) {
    dcrf_solver_get_info(solver, &found->info);
    dcrf_solver_candidate_energy(solver, DCRF_CANDIDATE_UNARY, &found->unary_minimum);
    dcrf_solver_candidate_energy(solver, DCRF_CANDIDATE_CONSTANT, &found->constant);
    dcrf_solver_labels(solver, found->labels, variables, NULL);
    if (options->wants_marginals && !take_marginals(solver, variables, found, problem))
        return false;
    const dcrf_moment *moments = dcrf_solver_trace(solver, &found->moment_count);
    if (found->moment_count == 0)
        return true;
    found->moments = calloc(found->moment_count, sizeof *found->moments);
    if (!found->moments)
        return out_of_memory(problem, "trace");
    memcpy(found->moments, moments, found->moment_count * sizeof *moments);
    return true;
}

static bool start_from_file(const solver_options *options, const built_model *built,
                            dcrf_solver *solver, cli_problem *problem) {
    uint16_t *labels;
    dcrf_error error;
    if (!options->start_file)
        return true;
    if (!model_read_labels(built, options->start_file, NULL, &labels, problem))
        return problem_of_option(problem, "--start");
    const bool done = dcrf_solver_start_labels(solver, labels, &error) >= 0 ||
                      library_problem(problem, options->start_file, &error);
    free(labels);
    return done;
}

/* If memory runs out late in a run, what was found before is kept. */
static bool holds_result(const dcrf_solver *solver, const dcrf_error *error) {
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    return error->status == DCRF_ERROR_MEMORY && isfinite(info.energy.total);
}

/* A run that stops before the first energy is known has no result. */
static bool has_energy(const solver_options *options, const dcrf_solver *solver,
                       cli_problem *problem) {
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    if (isfinite(info.energy.total))
        return true;
    return info.stop == DCRF_STOP_TIME
               ? failure(problem, "--time-limit",
                         "%g s were over before the energy of a first labelling was known",
                         options->time_limit_s)
               : failure(problem, "solver", "interrupted before a first labelling was known");
}

static bool run_solver(const solver_options *options, const model_options *model,
                       const built_model *built, const dcrf_plan *plan, dcrf_settings *settings,
                       progress *watch, solution *found, cli_problem *problem) {
    dcrf_solver *solver = NULL;
    dcrf_error error;
    settings->progress = progress_moment;
    settings->cancel = progress_cancel;
    settings->log = progress_log;
    settings->progress_user = settings->cancel_user = settings->log_user = watch;
    progress_stage(watch, "setting up");
    bool done =
        dcrf_solver_new(&solver, plan, built->workspace, settings, &error) >= 0 ||
        compatibility_problem(model->compatibility, found->label_count, "solver", &error, problem);
    if (done)
        dcrf_solver_labels(solver, found->unary_labels, found->pixels, NULL);
    done = done && start_from_file(options, built, solver, problem);
    found->setup_s = seconds_now() - built->time.began_s;
    if (done && dcrf_solver_run(solver, &error) < 0) {
        found->was_cut_short = holds_result(solver, &error);
        done = found->was_cut_short || library_problem(problem, "solver", &error);
    }
    done = done && has_energy(options, solver, problem);
    done = done &&
           take_results(options, solver, dcrf_model_variables(built->model), found, problem) &&
           (found->was_cut_short || options->method != DCRF_METHOD_LP ||
            take_proof(solver, found, problem));
    dcrf_solver_free(&solver);
    return done;
}

static bool find_changes(const built_model *built, solution *found, cli_problem *problem) {
    dcrf_error error;
    return dcrf_changes_of(built->model, found->unary_labels, found->labels,
                           &built->strength.measured, found->before, found->after,
                           found->label_count, &found->changes, &error) >= 0 ||
           library_problem(problem, "changes", &error);
}

static bool allocate(const built_model *built, solution *found) {
    const size_t variables = dcrf_model_variables(built->model);
    found->labels = calloc(variables, sizeof *found->labels);
    found->unary_labels = calloc(variables, sizeof *found->unary_labels);
    found->labels_left = calloc(variables, sizeof *found->labels_left);
    found->pixels = variables;
    found->label_count = dcrf_model_labels(built->model);
    found->before = calloc(found->label_count, sizeof *found->before);
    found->after = calloc(found->label_count, sizeof *found->after);
    return found->labels && found->unary_labels && found->labels_left && found->before &&
           found->after;
}

bool solution_find(const solver_options *options, const model_options *model,
                   const char *image_file, const built_model *built, bool trace, feedback talk,
                   solution *found, cli_problem *problem) {
    dcrf_plan *plan = NULL;
    dcrf_settings settings = settings_from_options(options, trace);
    *found = (solution){.gap_asked_for = options->gap};
    progress watch;
    const bool only_time = settings.iterations == ITERATIONS_WITH_A_TIME_LIMIT;
    progress_begin(&watch, talk, only_time ? 0 : settings.iterations, &built->time);
    progress_limit(&watch, built->workspace);
    progress_stage(&watch, "setting up");
    bool done = allocate(built, found) || out_of_memory(problem, "solution");
    done = done && model_plan(model, image_file, built, &plan, problem) &&
           run_solver(options, model, built, plan, &settings, &watch, found, problem);
    progress_end(&watch);
    dcrf_workspace_set_limit(built->workspace, 0, NULL, NULL); /* that of progress_limit */
    done = done && find_changes(built, found, problem);
    found->plan = plan;
    if (!done)
        solution_free(found);
    return done;
}

void solution_free(solution *found) {
    dcrf_plan_free(&found->plan);
    free(found->labels);
    free(found->unary_labels);
    free(found->marginals);
    free(found->confidence);
    free(found->moments);
    free(found->before);
    free(found->after);
    free(found->labels_left);
    free(found->certificate);
    *found = (solution){0};
}
