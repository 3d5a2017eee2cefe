/* dcrf batch: several methods on all images of a data set. */
#include "command.h"
#include "dataset/batch_work.h"
#include "dataset/summary_files.h"
#include "interrupt.h"
#include "model/compatibility.h"
#include "ranks/ranks.h"
#include "report/solution_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct batch_options {
    method_list methods;
    const char *split;
    const char *out;
    size_t band_px;
    bool rounded;
    size_t pictures;
    size_t curves;
} batch_options;

typedef struct batch_settings {
    const char *folder;
    batch_options batch;
    workers_options workers;
    source_options sources;
    feedback_options feedback;
    solver_options solver;
    model_options model;
} batch_settings;

static const cli_option batch_option_table[] = {
    {"methods", 'm', "METHOD,...", "mf5,qp,lp", false, parse_methods,
     offsetof(batch_options, methods),
     "the methods to compare: mf, qp or lp, optionally followed by a number of iterations, and "
     "+cliques for a model with cliques; the unaries alone always come first"},
    {"split", 0, "NAME", NULL, false, parse_text, offsetof(batch_options, split),
     "only the images listed in splits/NAME.txt"},
    {"out", 'o', "FOLDER", NULL, true, parse_folder, offsetof(batch_options, out),
     "the folder for the results; results that are still valid are kept"},
    {"band", 0, "PIXELS", "8", false, parse_band, offsetof(batch_options, band_px),
     "also count accuracy within 1 to this many pixels of true boundaries"},
    {"rounded", 0, NULL, NULL, false, parse_switch, offsetof(batch_options, rounded),
     "take the largest marginals of a method's last iteration, as papers do, instead of the best "
     "labelling, polished"},
    {"pictures", 0, "N", "6", false, parse_count, offsetof(batch_options, pictures),
     "number of images to show beside their truth and labels: those that change most"},
    {"curves", 0, "N", "1", false, parse_count, offsetof(batch_options, curves),
     "number of images whose energy is plotted against time; each is solved once more"},
    {0},
};

/* ---- settings ------------------------------------------------------------------------------- */

static const cli_option *const no_part_of_model[] = {batch_option_table, workers_option_table,
                                                     feedback_option_table, NULL};

/* What results depend on, besides the method; NULL if out of memory. */
static json_t *model_settings(const batch_settings *settings) {
    return json_merge(solve_choice_to_json(settings->sources.record, no_part_of_model),
                      json_pack("{s:s}", "cliques", cliques_wanted(&settings->model)));
}

/* ---- results -------------------------------------------------------------------------------- */

static void print_percent(double fraction) {
    if (isnan(fraction))
        printf("%11s", "");
    else
        printf("%9.2f %%", 100 * fraction);
}

static void print_summary(const batch_settings *settings, const summary *found) {
    printf("%-16s%14s%14s", "method", "mean energy", "mean gap");
    if (found->data->has_truth)
        printf("%11s%11s%9s %2zu", "accuracy", "mean IoU", "band", found->band_px);
    printf("%12s\n", "s per image");
    for (size_t m = 0; m < found->row_count; m++) {
        const summary_row *row = &found->rows[m];
        printf("%-16s%14.1f", row->method, row->energy);
        if (isnan(row->relative_gap))
            printf("%14s", "");
        else
            printf("%12.4f %%", 100 * row->relative_gap);
        if (found->data->has_truth) {
            print_percent(score_accuracy(&row->counts));
            print_percent(score_mean_iou(&row->counts));
            printf(" ");
            print_percent(score_band_accuracy(&row->counts, found->band_px));
        }
        printf("%12.3f\n", row->setup_s + row->solve_s + row->polish_s);
    }
    char verdict[VERDICT_BYTES], left_out[LEFT_OUT_TEXT_BYTES];
    if (*summary_left_out(found, left_out))
        printf("note: %s\n", left_out);
    if (*summary_verdict(found, verdict))
        printf("%s\n", verdict);
    if (strcmp(settings->model.kernels.device, "cpu") != 0)
        printf("computed on %s\n", settings->model.kernels.device);
    printf("%s/report.html shows more\n", settings->batch.out);
}

static bool say_skipped(const batch_settings *settings, size_t skipped, size_t images,
                        const char *first_reason, cli_problem *problem) {
    return partial(problem, settings->folder,
                   "%zu of %zu images were skipped; %s/failures says why%s%s", skipped, images,
                   settings->batch.out, *first_reason ? ", first: " : "", first_reason);
}

/* Without any result there is nothing to print but the reason. */
static bool summarize(const batch_settings *settings, const batch_work *work,
                      cli_problem *problem) {
    summary found;
    const batch_options *batch = &settings->batch;
    const size_t images = work->data->count;
    if (!summary_gather(work->data, work->methods, work->results, batch->band_px, &found, problem))
        return false;
    found.settings = work->settings;
    bool done = summary_write_all(work->results, work->methods, &found, batch->pictures,
                                  work->curve_count, problem);
    if (done && found.failure_count < images &&
        feedback_wanted(&settings->feedback) != FEEDBACK_QUIET)
        print_summary(settings, &found);
    if (done && found.failure_count > 0)
        done =
            say_skipped(settings, found.failure_count, images, found.failures[0].message, problem);
    summary_free(&found);
    return done;
}

/* ---- the run -------------------------------------------------------------------------------- */

/* Rank 0 creates the folder; the others wait for it. */
static bool open_results(const batch_settings *settings, store *results, cli_problem *problem) {
    const bool owner = ranks_mine() == 0;
    bool done = store_open(results, settings->batch.out, owner ? "dcrf batch" : NULL, problem);
    for (size_t m = 0; done && owner && m < settings->batch.methods.count; m++)
        done = store_add_method(results, settings->batch.methods.of[m].name, problem);
    if (ranks_agree(done, problem))
        return true;
    store_close(results);
    return false;
}

static bool work_through(const batch_settings *settings, batch_work *work, workers_count *count,
                         cli_problem *problem) {
    const workers_task task = {
        .count = work->data->count,
        .threads = settings->model.kernels.threads,
        .device = settings->model.kernels.device,
        .deal = WORKERS_DEAL_FREE,
        .shown = true,
        .talk = feedback_wanted(&settings->feedback),
        .user = work,
        .bytes = batch_bytes,
        .too_large = batch_too_large,
        .work = batch_image,
    };
    /* Signals are handled only during the work; during the summary afterwards, one ends the
     * program. */
    interrupt_catch();
    const bool done = workers_run(&settings->workers, &task, count, problem);
    interrupt_release();
    if (!done)
        return false;
    return !count->interrupted || workers_was_interrupted(problem, settings->batch.out);
}

static bool run_on(const batch_settings *settings, const dataset *data, const store *results,
                   json_t *model, cli_problem *problem) {
    const solve_choice choice = {settings->model, settings->solver, settings->batch.rounded,
                                 settings->batch.band_px};
    batch_work work = {
        .data = data,
        .methods = &settings->batch.methods,
        .choice = &choice,
        .results = results,
        .settings = model,
        .curve_count = settings->batch.curves < data->count ? settings->batch.curves : data->count,
    };
    workers_count count;
    if (!work_through(settings, &work, &count, problem))
        return false;
    /* The summary decides: a result may have been damaged since it was made. */
    if (ranks_mine() == 0)
        return summarize(settings, &work, problem);
    return count.skipped == 0 || say_skipped(settings, count.skipped, data->count, "", problem);
}

static bool run_batch(const void *given, cli_problem *problem) {
    const batch_settings *settings = given;
    dataset data = {0};
    store results;
    json_t *model = model_settings(settings);
    bool done =
        (model || out_of_memory(problem, settings->folder)) &&
        model_check_kernels(&settings->model, problem) &&
        device_check(settings->model.kernels.device, problem) &&
        dataset_open(&data, settings->folder, settings->batch.split, problem) &&
        compatibility_check(settings->model.compatibility, data.labels,
                            methods_have(&settings->batch.methods, DCRF_METHOD_LP), problem) &&
        dataset_check_apart(&data, settings->batch.out, problem);
    /* A single rank may fail, for example if a folder is missing on its machine. */
    done = ranks_agree(done, problem) && open_results(settings, &results, problem);
    if (done) {
        done = run_on(settings, &data, &results, model, problem);
        store_close(&results);
    }
    json_decref(model);
    dataset_free(&data);
    return done;
}

static const cli_option operands[] = {
    {.name = "DATASET",
     .parse = parse_input,
     .offset = offsetof(batch_settings, folder),
     .help = "a folder with images/ unaries/ gt/ splits/ classes.txt dataset.json"},
    {0},
};

static const option_group groups[] = {
    {"Batch", batch_option_table, offsetof(batch_settings, batch)},
    DATASET_OPTION_GROUPS(batch_settings),
    {0},
};

const cli_command batch_command = {
    {"batch", operands, groups},
    "compare methods on all images of a data set",
    "Solves every image by every method and writes labels and a JSON result for each, and over all "
    "images summary.csv, summary.json, summary.md, times.csv, curves.svg, pictures.svg and "
    "report.html: energies, bounds, times and, where there is a truth, accuracy and IoU.\n\nA "
    "result is keyed by the contents of its inputs and by the settings. A second run does only "
    "what is missing or has changed, so a killed run can be continued. An image that cannot be "
    "read is skipped, and the exit status is then 3. Ctrl-C abandons the images in work.",
    sizeof(batch_settings),
    run_batch,
};
