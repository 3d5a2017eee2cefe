/* dcrf solve: the labelling of lowest energy that a method finds, and what it proves. */
#include "clock.h"
#include "command.h"
#include "io/room.h"
#include "large/large.h"
#include "many/many.h"
#include "ranks/ranks.h"
#include "report/explain.h"
#include "report/solution_text.h"
#include "solve_outputs.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct solve_settings {
    const char *image_file;
    source_options sources;
    feedback_options feedback;
    solver_options solver;
    large_options limits;
    many_options many;
    solve_outputs outputs;
    model_options model;
} solve_settings;

static bool has_summary(const solve_settings *settings) {
    return !settings->feedback.quiet && !solve_outputs_take_stdout(&settings->outputs);
}

/* All other files are in place by now. */
static bool say_not_made(const char *file, const dcrf_solver_info *info, cli_problem *problem) {
    partial(problem, file, "not written: %s before there was a proof; everything else was written",
            stop_reason(info->proof_stop));
    return problem_of_option(problem, "--certificate");
}

static bool solve_and_write(const solve_settings *settings, const built_model *built,
                            const palette *colours, cli_problem *problem) {
    const solve_outputs *outputs = &settings->outputs;
    const bool trace = outputs->trace_file || outputs->report_file;
    const feedback talk = feedback_wanted(&settings->feedback);
    const bool summary = has_summary(settings);
    const bool explain = outputs->explain || outputs->report_file;
    solution found;
    char *explanation = NULL;
    strength_sweep sweep = {0};
    solver_options options = settings->solver;
    options.proving = outputs->certificate_file ? DCRF_PROVE_CERTIFICATE
                      : outputs->proof_file     ? DCRF_PROVE_VARIABLES
                                                : DCRF_PROVE_BY_GAP;
    options.wants_marginals =
        outputs->marginals_file || outputs->confidence_file || outputs->report_file;
    bool done = solution_find(&options, &settings->model, settings->image_file, built, trace, talk,
                              &found, problem);
    if (done && explain)
        done = sweep_run(built, &found, &sweep, problem) &&
               explain_settings(built, &found, &sweep, &explanation, problem);
    const solve_results results = {&settings->model, built,  &found,  settings->sources.record,
                                   explanation,      &sweep, colours, summary};
    done = done && solve_outputs_write(outputs, &results, problem);
    if (done && outputs->certificate_file && !found.certificate)
        done = say_not_made(outputs->certificate_file, &found.info, problem);
    solution_free(&found);
    sweep_free(&sweep);
    free(explanation);
    return done;
}

static void say_who_solved(const solve_settings *settings) {
    if (ranks_count() > 1 && has_summary(settings))
        printf("note: rank 0 has solved the image as a whole, and the other %zu had nothing to do; "
               "--tile shares it among them, and --memory where it does not fit\n",
               ranks_count() - 1);
}

static bool run_solve(const void *given, cli_problem *problem) {
    const solve_settings *settings = given;
    const time_frame time = time_frame_begin(settings->solver.time_limit_s);
    built_model built;
    palette colours;
    if ((settings->outputs.proof_file || settings->outputs.certificate_file) &&
        settings->solver.method != DCRF_METHOD_LP)
        return bad_input(problem, settings->outputs.proof_file ? "--proof" : "--certificate",
                         "only the LP proves something: add --method lp");
    const large_task task = {&settings->limits,
                             &settings->model,
                             &settings->solver,
                             &settings->outputs,
                             settings->image_file,
                             settings->sources.record,
                             feedback_wanted(&settings->feedback),
                             time};
    bool was_solved;
    if (settings->limits.memory_bytes > 0)
        room_limit(settings->limits.memory_bytes);
    const bool is_checked = ranks_mine() != 0 || solve_outputs_check(&settings->outputs, problem);
    if (!ranks_agree(is_checked, problem) || !large_solve(&task, &was_solved, problem))
        return false;
    /* Rank 0 solves images that are not tiled. */
    if (was_solved || ranks_mine() != 0)
        return true;
    if (!model_build(&settings->model, settings->image_file, time, &built, problem))
        return false;
    if (!solve_outputs_need_image(&settings->outputs) && !image_is_video(&built.image))
        image_free_colours(&built.image);
    const bool done = solve_outputs_fit(&settings->outputs, &built.image, problem) &&
                      solve_outputs_colours(&settings->outputs, &built, &colours, problem) &&
                      solve_and_write(settings, &built, &colours, problem);
    model_free(&built);
    if (done)
        say_who_solved(settings);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_input,
     .offset = offsetof(solve_settings, image_file),
     .help = IMAGE_OPERAND_HELP},
    {0},
};

static const option_group groups[] = {
    {"Results", solve_output_table, offsetof(solve_settings, outputs)},
    {"Method", method_option_table, offsetof(solve_settings, solver)},
    {"Solver", solver_option_table, offsetof(solve_settings, solver)},
    {"Several pictures", many_option_table, offsetof(solve_settings, many)},
    {"Large images", large_option_table, offsetof(solve_settings, limits)},
    MODEL_OPTION_GROUPS(solve_settings, model),
    {"Device", device_option_table, offsetof(solve_settings, model.kernels)},
    {"Settings from elsewhere", source_option_table, offsetof(solve_settings, sources)},
    {"Feedback", feedback_option_table, offsetof(solve_settings, feedback)},
    {0},
};

const cli_command solve_command = {
    {"solve", operands, groups},
    "find the best labelling of an image",
    "Finds a labelling of low energy under the model that the options describe, and prints its "
    "energy. With --method lp it also prints a lower bound: no labelling has lower energy. The gap "
    "says how far the result can be from the best labelling.\nCtrl-C stops the iterations and "
    "writes the best labelling so far.\n\nSeveral pictures, or a folder of them, are solved one "
    "after the other: dcrf solve *.jpg --labels-prior-dir masks/ -o out/. A time limit is for each "
    "of them; Ctrl-C ends them all. With --temporal a folder of frames is one video.",
    sizeof(solve_settings),
    run_solve,
};
