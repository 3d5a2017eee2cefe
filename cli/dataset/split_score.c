#include "dataset/split_score.h"

#include "model/compatibility.h"
#include "ranks/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- images kept in memory ------------------------------------------------------------------ */

static size_t bytes_of(const split_scorer *s, size_t image) {
    return prepared_estimate_bytes(&s->data, &s->data.items[image], s->method);
}

/* Half of the machine's memory, divided among the ranks, which may all be on it. */
static size_t usual_memory_bytes(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && page_bytes > 0 ? (size_t)pages / 2 / ranks_count() * (size_t)page_bytes
                                       : (size_t)1 << 30;
}

/* All if they fit; otherwise as many as leave half of the memory free, and room for the largest. */
static void choose_kept(split_scorer *s) {
    const size_t memory_bytes =
        s->workers.memory_bytes > 0 ? s->workers.memory_bytes : usual_memory_bytes();
    size_t sum = 0, largest = 0, kept_bytes = 0;
    for (size_t i = ranks_mine(); i < s->data.count; i += ranks_count()) {
        const size_t bytes = bytes_of(s, i);
        sum += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    const size_t room = largest > memory_bytes / 2 ? largest : memory_bytes / 2;
    const size_t limit = sum <= memory_bytes   ? memory_bytes
                         : room < memory_bytes ? memory_bytes - room
                                               : 0;
    for (size_t i = ranks_mine(); i < s->data.count; i += ranks_count()) {
        const size_t bytes = bytes_of(s, i);
        s->kept[i] = kept_bytes + bytes <= limit;
        kept_bytes += s->kept[i] ? bytes : 0;
    }
    if (s->workers.memory_bytes > 0 && sum > memory_bytes)
        s->workers.memory_bytes -= kept_bytes;
}

bool split_scorer_open(split_scorer *scorer, const char *folder, const char *split,
                       const workers_options *workers, const kernel_options *kernels,
                       const method_choice *method, cli_problem *problem) {
    *scorer = (split_scorer){.workers = *workers,
                             .threads = kernels->threads,
                             .device = kernels->device,
                             .method = method};
    if (!dataset_open(&scorer->data, folder, split, problem))
        return false;
    scorer->kept = calloc(scorer->data.count, sizeof *scorer->kept);
    scorer->images = calloc(scorer->data.count, sizeof *scorer->images);
    bool done = (scorer->kept && scorer->images) || out_of_memory(problem, folder);
    if (done && !scorer->data.has_truth)
        done = bad_input(problem, folder, "has no gt/; tuning needs the truth");
    if (done)
        choose_kept(scorer);
    else
        split_scorer_close(scorer);
    return done;
}

void split_scorer_close(split_scorer *scorer) {
    for (size_t i = 0; scorer->images && i < scorer->data.count; i++)
        prepared_free(&scorer->images[i]);
    free(scorer->images);
    free(scorer->kept);
    dataset_free(&scorer->data);
    *scorer = (split_scorer){0};
}

/* ---- one setting ---------------------------------------------------------------------------- */

typedef struct scoring {
    split_scorer *scorer;
    const solve_choice *choice;
    pthread_mutex_t mutex; /* guards the total */
    score *total;
} scoring;

static bool solve_and_count(scoring *s, prepared_image *image, dcrf_workspace *workspace,
                            cli_problem *problem) {
    outcome found;
    if (!prepared_solve(image, workspace, s->choice, s->scorer->method, &found, NULL, problem))
        return false;
    pthread_mutex_lock(&s->mutex);
    const bool added = score_add(s->total, &found.counts) || out_of_memory(problem, "scores");
    pthread_mutex_unlock(&s->mutex);
    outcome_free(&found);
    return added;
}

/* An image belongs to one thread at a time, and so does its slot in the list. */
static workers_verdict score_image(void *user, size_t place, dcrf_workspace *workspace,
                                   cli_problem *problem) {
    scoring *s = user;
    split_scorer *scorer = s->scorer;
    prepared_image **image = &scorer->images[place];
    const bool done =
        (*image || prepared_new(image, &scorer->data, &scorer->data.items[place], problem)) &&
        solve_and_count(s, *image, workspace, problem);
    if (!scorer->kept[place])
        prepared_free(image);
    return done ? WORKERS_DONE : workers_failed(WORKERS_STOP);
}

/* Memory of kept images is not counted again. */
static size_t image_bytes(void *user, size_t image) {
    const scoring *s = user;
    return s->scorer->kept[image] ? 0 : bytes_of(s->scorer, image);
}

static workers_verdict too_large(void *user, size_t image, size_t bytes, cli_problem *problem) {
    const scoring *s = user;
    workers_image_too_large(problem, s->scorer->data.items[image].name, bytes);
    return WORKERS_STOP;
}

bool split_scorer_run(split_scorer *scorer, const solve_choice *choice, score *total,
                      cli_problem *problem) {
    scoring s = {scorer, choice, PTHREAD_MUTEX_INITIALIZER, total};
    const workers_task task = {
        .count = scorer->data.count,
        .threads = scorer->threads,
        .device = scorer->device,
        .deal = WORKERS_DEAL_FIXED,
        .user = &s,
        .bytes = image_bytes,
        .too_large = too_large,
        .work = score_image,
    };
    workers_count count = {0};
    const size_t classes = scorer->data.labels;
    bool done = score_new(total, classes, choice->band_px) || out_of_memory(problem, "scores");
    done = ranks_agree(done, problem) && workers_run(&scorer->workers, &task, &count, problem);
    if (done && count.interrupted)
        done = workers_was_interrupted(problem, "tune");
    if (done) {
        /* All values follow from these; the pairs of classes are not needed. */
        ranks_sum(total->of_class, SCORE_CLASS_COUNTS * classes);
        ranks_sum(total->band_pixels, SCORE_BAND_MAX_PX + 1);
        ranks_sum(total->band_right, SCORE_BAND_MAX_PX + 1);
    } else {
        score_free(total);
    }
    pthread_mutex_destroy(&s.mutex);
    return done;
}

/* ---- the hash ------------------------------------------------------------------------------- */

/* A missing file is noticed when it is read. */
static bool add_hash(json_t *list, const char *file, cli_problem *problem) {
    content_hash hash = {""};
    if (file && !hash_file(file, &hash, problem))
        return false;
    return json_array_append_new(list, json_string(hash.text)) == 0 ||
           out_of_memory(problem, "hash");
}

static bool add_item(json_t *list, const dataset_item *item, const char *regions_folder,
                     cli_problem *problem) {
    char *regions = regions_folder ? dataset_find_map(regions_folder, item->name) : NULL;
    const bool done = add_hash(list, item->image_file, problem) &&
                      add_hash(list, item->unary_file, problem) &&
                      add_hash(list, item->truth_file, problem) && add_hash(list, regions, problem);
    free(regions);
    return done;
}

bool split_hash(const dataset *data, const model_options *model, content_hash *hash,
                cli_problem *problem) {
    const char *source = cliques_wanted(model);
    const char *regions_folder = cliques_are_files(source) ? source : NULL;
    json_t *list = json_pack("[I, I, I, f]", (json_int_t)data->labels, (json_int_t)data->void_value,
                             (json_int_t)data->unary.kind, data->unary.scale);
    bool done = (list || out_of_memory(problem, "hash")) &&
                add_hash(list, compatibility_file(model->compatibility), problem);
    for (size_t i = 0; done && i < data->count; i++)
        done = add_item(list, &data->items[i], regions_folder, problem);
    char *text = done ? json_dumps(list, JSON_COMPACT) : NULL;
    if (text)
        *hash = hash_bytes(text, strlen(text));
    else if (done)
        done = out_of_memory(problem, "hash");
    free(text);
    json_decref(list);
    return done;
}
