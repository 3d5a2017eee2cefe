/* Gathering.
 *
 * Results are read and summed in the order of the images, so that the sums do not depend on who
 * computed what, and when. Methods are compared on the same images: an image that lacks any
 * result counts for no method and is listed as a failure. */
#include "dataset/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool list_failure(summary *found, const char *image, const char *message) {
    summary_failure *failed = &found->failures[found->failure_count];
    *failed = (summary_failure){strdup(image), strdup(message)};
    found->failure_count++;
    return failed->image && failed->message;
}

static double changed_share_of(const outcome *o) {
    return (double)o->changed / ((double)o->width * (double)o->height);
}

/* The most of each; of no labelling. */
static void join_left_out(dcrf_left_out *most, const dcrf_left_out *other) {
    most->distance = fmax(most->distance, other->distance);
    most->fraction = fmax(most->fraction, other->fraction);
    most->energy = most->gap = NAN;
}

/* Sums for now; they become means at the end. False if out of memory. */
static bool add_outcome(summary_row *row, const outcome *o) {
    row->images++;
    row->energy += o->energy.total;
    row->rounded += o->rounded;
    row->lower_bound += o->lower_bound;
    row->relative_gap += o->relative_gap;
    join_left_out(&row->left_out, &o->left_out);
    row->proven_share += o->proven_share;
    row->iterations += (double)o->iterations;
    row->changed_share += changed_share_of(o);
    row->constant += o->is_constant;
    row->setup_s += o->setup_s;
    row->solve_s += o->solve_s;
    row->polish_s += o->polish_s;
    return o->counts.classes == 0 || score_add(&row->counts, &o->counts);
}

static void take_means(summary_row *row) {
    const double images = row->images == 0 ? NAN : (double)row->images;
    double *const sums[] = {&row->energy,        &row->rounded,      &row->lower_bound,
                            &row->relative_gap,  &row->proven_share, &row->iterations,
                            &row->changed_share, &row->setup_s,      &row->solve_s,
                            &row->polish_s};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        *sums[i] /= images;
}

/* Are a result's counts compatible with the summary's? */
static bool fits(const summary *found, const score *counts) {
    const size_t classes = found->data->has_truth ? found->data->labels : 0;
    return counts->classes == classes && (classes == 0 || counts->band_px == found->band_px);
}

static bool read_outcomes(const summary *found, const store *results, const char *image,
                          outcome *outcomes, cli_problem *missing) {
    for (size_t m = 0; m < found->row_count; m++) {
        const char *method = found->rows[m].method;
        if (!store_get(results, method, image, &outcomes[m], missing))
            return false;
        if (!fits(found, &outcomes[m].counts))
            return bad_input(missing, image, "the result of %s is of another data set", method);
    }
    return true;
}

/* False if out of memory. */
static bool gather_image(summary *found, const store *results, size_t index) {
    const char *image = found->data->items[index].name;
    char *message = store_get_failure(results, image);
    bool remembered = true;
    if (message) {
        remembered = list_failure(found, image, message);
    } else {
        outcome outcomes[METHODS_MAX] = {0};
        cli_problem missing;
        if (read_outcomes(found, results, image, outcomes, &missing))
            for (size_t m = 0; remembered && m < found->row_count; m++) {
                remembered = add_outcome(&found->rows[m], &outcomes[m]);
                found->changed_share[index] =
                    fmax(found->changed_share[index], changed_share_of(&outcomes[m]));
            }
        else
            remembered = list_failure(found, image, missing.text);
        for (size_t m = 0; m < found->row_count; m++)
            outcome_free(&outcomes[m]);
    }
    free(message);
    return remembered;
}

static bool begin_rows(summary *found, const method_list *methods) {
    found->rows = calloc(methods->count, sizeof *found->rows);
    found->failures = calloc(found->data->count + 1, sizeof *found->failures);
    found->changed_share = calloc(found->data->count + 1, sizeof *found->changed_share);
    if (!found->rows || !found->failures || !found->changed_share)
        return false;
    found->row_count = methods->count;
    for (size_t m = 0; m < methods->count; m++) {
        found->rows[m].method = methods->of[m].name;
        found->rows[m].is_unary = methods->of[m].unary;
        if (found->data->has_truth &&
            !score_new(&found->rows[m].counts, found->data->labels, found->band_px))
            return false;
    }
    return true;
}

bool summary_gather(const dataset *data, const method_list *methods, const store *results,
                    size_t band_px, summary *found, cli_problem *problem) {
    *found = (summary){.data = data, .split = data->split, .band_px = band_px};
    bool remembered = begin_rows(found, methods);
    for (size_t i = 0; remembered && i < data->count; i++)
        remembered = gather_image(found, results, i);
    if (!remembered) {
        summary_free(found);
        return out_of_memory(problem, data->folder);
    }
    for (size_t m = 0; m < found->row_count; m++)
        take_means(&found->rows[m]);
    return true;
}

void summary_free(summary *found) {
    for (size_t m = 0; m < found->row_count; m++)
        score_free(&found->rows[m].counts);
    for (size_t i = 0; i < found->failure_count; i++) {
        free(found->failures[i].image);
        free(found->failures[i].message);
    }
    free(found->rows);
    free(found->changed_share);
    free(found->failures);
    *found = (summary){0};
}

const char *summary_title(const summary *found) {
    const char *folder = found->data->folder, *name = folder;
    for (const char *at = folder; *at; at++)
        if (*at == '/' && at[1] && at[1] != '/')
            name = at + 1;
    return name;
}

const char *summary_left_out(const summary *found, char text[LEFT_OUT_TEXT_BYTES]) {
    dcrf_left_out most = {0};
    for (size_t m = 0; m < found->row_count; m++)
        join_left_out(&most, &found->rows[m].left_out);
    return left_out_text(&most, "", text);
}

bool summary_has_failed(const summary *found, const char *image) {
    for (size_t i = 0; i < found->failure_count; i++)
        if (strcmp(found->failures[i].image, image) == 0)
            return true;
    return false;
}
