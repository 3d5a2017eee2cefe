#include "dataset/batch_work.h"

#include "model/compatibility.h"
#include "report/json_text.h"
#include "report/solution_text.h"

#include <stdlib.h>
#include <string.h>

/* Results of other versions or layouts are computed again. */
#define KEY_FORMAT "dcrf " DCRF_VERSION " batch 3"

/* ---- settings of a method ------------------------------------------------------------------- */

static json_t *without_cliques(json_t *settings) {
    static const char *const names[] = {"cliques", "min-region", "gamma", "eta"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        json_object_del(settings, names[i]);
    return settings;
}

/* The settings in force for one method; NULL if out of memory. */
static json_t *settings_of_method(const batch_work *b, const method_choice *method) {
    json_t *settings = json_copy(b->settings);
    if (settings && !method->cliques)
        settings = without_cliques(settings);
    if (b->choice->rounded)
        settings = json_merge(settings, json_pack("{s:b}", "no-polish", 1));
    if (method->unary)
        return settings;
    if (method->iterations > 0)
        settings =
            json_merge(settings, json_pack("{s:I}", "iterations", (json_int_t)method->iterations));
    return json_merge(settings, json_pack("{s:s}", "method", dcrf_method_name(method->solver)));
}

/* The region map of an image; the caller frees it. NULL if it uses superpixels. */
static char *regions_file(const batch_work *b, const dataset_item *item) {
    const char *source = cliques_wanted(&b->choice->model);
    return cliques_are_files(source) ? dataset_find_map(source, item->name) : NULL;
}

/* The same with the files of an image: a config file that solves it. */
static json_t *settings_of_run(const batch_work *b, const dataset_item *item,
                               const method_choice *method) {
    char *regions = method->cliques ? regions_file(b, item) : NULL;
    json_t *settings =
        json_merge(settings_of_method(b, method),
                   json_pack("{s:o, s:o, s:s, s:f}", "image", json_text(item->image_file), "unary",
                             json_text(item->unary_file), "unary-kind",
                             dcrf_unary_kind_name((dcrf_unary_kind)b->data->unary.kind),
                             "unary-scale", b->data->unary.scale));
    if (regions)
        settings = json_merge(settings, json_pack("{s:o}", "cliques", json_text(regions)));
    free(regions);
    return settings;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* The contents that an image's results depend on. */
typedef struct input_hashes {
    content_hash image;
    content_hash unary;
    content_hash truth;         /* empty: there is none */
    content_hash regions;       /* empty: superpixels */
    content_hash compatibility; /* empty: a name */
} input_hashes;

static bool hash_if_there(const char *file, content_hash *hash, cli_problem *problem) {
    hash->text[0] = '\0';
    return !file || hash_file(file, hash, problem);
}

static bool hash_inputs(const batch_work *b, const dataset_item *item, input_hashes *inputs,
                        cli_problem *problem) {
    char *regions = regions_file(b, item);
    const bool done = hash_if_there(item->image_file, &inputs->image, problem) &&
                      hash_if_there(item->unary_file, &inputs->unary, problem) &&
                      hash_if_there(item->truth_file, &inputs->truth, problem) &&
                      hash_if_there(regions, &inputs->regions, problem) &&
                      hash_if_there(compatibility_file(b->choice->model.compatibility),
                                    &inputs->compatibility, problem);
    free(regions);
    return done;
}

static bool find_key(const batch_work *b, const method_choice *method, const input_hashes *inputs,
                     content_hash *key, cli_problem *problem) {
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:b, s:o}",
                  "format", KEY_FORMAT, "method", method->name, "image", inputs->image.text,
                  "unary", inputs->unary.text, "truth", inputs->truth.text, "regions",
                  method->cliques ? inputs->regions.text : "", "compatibility",
                  inputs->compatibility.text, "labels", (json_int_t)b->data->labels, "void",
                  (json_int_t)b->data->void_value, "kind", (json_int_t)b->data->unary.kind, "scale",
                  b->data->unary.scale, "band", (json_int_t)b->choice->band_px, "rounded",
                  b->choice->rounded, "settings", settings_of_method(b, method));
    char *text = all ? json_dumps(all, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (text)
        *key = hash_bytes(text, strlen(text));
    const bool done = text || out_of_memory(problem, method->name);
    free(text);
    json_decref(all);
    return done;
}

/* ---- one image ------------------------------------------------------------------------------ */

/* An image being processed. It is read when the first method needs it. */
typedef struct batch_image_state {
    const batch_work *batch;
    const dataset_item *item;
    dcrf_workspace *workspace;
    prepared_image *prepared;
    input_hashes inputs;
    cli_problem *problem;
} batch_image_state;

static bool read_once(batch_image_state *state) {
    return state->prepared ||
           prepared_new(&state->prepared, state->batch->data, state->item, state->problem);
}

static workers_verdict store_result(batch_image_state *state, const method_choice *method,
                                    const content_hash *key, const outcome *found) {
    const batch_work *b = state->batch;
    json_t *settings = settings_of_run(b, state->item, method);
    const bool done = settings ? store_put(b->results, method->name, state->item->name, key, found,
                                           settings, &b->data->colours, state->problem)
                               : out_of_memory(state->problem, method->name);
    json_decref(settings);
    return done ? WORKERS_DONE : WORKERS_STOP;
}

static workers_verdict find_result(batch_image_state *state, const method_choice *method,
                                   const content_hash *key) {
    const batch_work *b = state->batch;
    outcome found;
    if (store_has(b->results, method->name, state->item->name, key))
        return WORKERS_DONE;
    if (!read_once(state) || !prepared_solve(state->prepared, state->workspace, b->choice, method,
                                             &found, NULL, state->problem))
        return workers_failed(WORKERS_SKIPPED);
    const workers_verdict verdict = store_result(state, method, key, &found);
    outcome_free(&found);
    return verdict;
}

static workers_verdict find_curve(batch_image_state *state, const method_choice *method,
                                  const content_hash *key) {
    const batch_work *b = state->batch;
    outcome found;
    curve energies;
    if (method->unary || store_has_curve(b->results, method->name, state->item->name, key))
        return WORKERS_DONE;
    if (!read_once(state) || !prepared_solve(state->prepared, state->workspace, b->choice, method,
                                             &found, &energies, state->problem))
        return workers_failed(WORKERS_SKIPPED);
    const bool done = store_put_curve(b->results, method->name, state->item->name, key, &energies,
                                      state->problem);
    curve_free(&energies);
    outcome_free(&found);
    return done ? WORKERS_DONE : WORKERS_STOP;
}

static workers_verdict do_methods(batch_image_state *state, bool with_curves) {
    const method_list *methods = state->batch->methods;
    workers_verdict verdict = WORKERS_DONE;
    for (size_t m = 0; verdict == WORKERS_DONE && m < methods->count; m++) {
        const method_choice *method = &methods->of[m];
        content_hash key;
        if (!find_key(state->batch, method, &state->inputs, &key, state->problem))
            return WORKERS_STOP;
        verdict = find_result(state, method, &key);
        if (verdict == WORKERS_DONE && with_curves)
            verdict = find_curve(state, method, &key);
    }
    return verdict;
}

/* Record that an image was skipped, or that it was not, if that is known. */
static workers_verdict note_verdict(const batch_work *b, size_t image, workers_verdict verdict,
                                    cli_problem *problem) {
    const char *name = b->data->items[image].name;
    cli_problem why = *problem;
    if ((verdict == WORKERS_DONE || verdict == WORKERS_SKIPPED) &&
        !store_put_failure(b->results, name, verdict == WORKERS_SKIPPED ? why.text : NULL, problem))
        return WORKERS_STOP;
    return verdict;
}

workers_verdict batch_image(void *user, size_t image, dcrf_workspace *workspace,
                            cli_problem *problem) {
    const batch_work *b = user;
    batch_image_state state = {b,    &b->data->items[image], workspace,
                               NULL, {.image = {""}},        problem};
    const workers_verdict verdict = hash_inputs(b, state.item, &state.inputs, problem)
                                        ? do_methods(&state, image < b->curve_count)
                                        : WORKERS_SKIPPED;
    prepared_free(&state.prepared);
    return note_verdict(b, image, verdict, problem);
}

/* ---- memory --------------------------------------------------------------------------------- */

size_t batch_bytes(void *user, size_t image) {
    const batch_work *b = user;
    return prepared_estimate_bytes(b->data, &b->data->items[image], hungriest_method(b->methods));
}

workers_verdict batch_too_large(void *user, size_t image, size_t bytes, cli_problem *problem) {
    const batch_work *b = user;
    workers_image_too_large(problem, b->data->items[image].name, bytes);
    return note_verdict(b, image, WORKERS_SKIPPED, problem);
}
