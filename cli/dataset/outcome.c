#include "dataset/outcome.h"

#include "report/energies_json.h"

#include <math.h>
#include <stdlib.h>

void outcome_free(outcome *o) {
    free(o->labels);
    score_free(&o->counts);
    *o = (outcome){0};
}

json_t *outcome_to_json(const outcome *o) {
    const proof proven = {o->lower_bound, o->relative_gap, o->left_out};
    json_t *root = json_pack("{s:I, s:I, s:I, s:s, s:b, s:I, s:o, s:f, s:f, s:f}", "width",
                             (json_int_t)o->width, "height", (json_int_t)o->height, "iterations",
                             (json_int_t)o->iterations, "stop", dcrf_status_name(o->stop),
                             "constant", o->is_constant, "pixels_changed", (json_int_t)o->changed,
                             "energy_rounded", number_or_null(o->rounded), "setup_s", o->setup_s,
                             "solve_s", o->solve_s, "polish_s", o->polish_s);
    root = json_merge(root, energies_to_json(&o->energy, &proven));
    root = json_merge(root, json_pack("{s:o}", "proven", number_or_null(o->proven_share)));
    if (o->counts.classes > 0)
        root = json_merge(root, json_pack("{s:o}", "score", score_to_json(&o->counts)));
    return root;
}

/* A number, or NaN for null; false for anything else. */
static bool take_number(const json_t *json, const char *key, double *number) {
    const json_t *value = json_object_get(json, key);
    *number = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value);
}

/* Seconds are always known: NaN could not be written back. */
static bool take_seconds(const json_t *json, const char *key, double *seconds) {
    return take_number(json, key, seconds) && !isnan(*seconds);
}

static bool take_size(const json_t *json, const char *key, size_t *size) {
    const json_t *value = json_object_get(json, key);
    *size = json_is_integer(value) ? (size_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* Only there if something is left out. */
static bool take_left_out(const json_t *json, dcrf_left_out *left_out) {
    const json_t *value = json_object_get(json, "bound_left_out");
    if (!value)
        return true;
    return take_number(value, "distance", &left_out->distance) &&
           take_number(value, "fraction", &left_out->fraction) &&
           take_number(value, "energy", &left_out->energy) &&
           take_number(value, "gap", &left_out->gap) && left_out->distance > 0 &&
           left_out->fraction > 0;
}

bool outcome_from_json(outcome *o, const json_t *json) {
    *o = (outcome){0};
    const char *stop = json_string_value(json_object_get(json, "stop"));
    const json_t *counts = json_object_get(json, "score");
    o->is_constant = json_is_true(json_object_get(json, "constant"));
    return stop && dcrf_status_from_name(stop, &o->stop) && take_size(json, "width", &o->width) &&
           take_size(json, "height", &o->height) && take_size(json, "iterations", &o->iterations) &&
           take_size(json, "pixels_changed", &o->changed) &&
           take_number(json, "energy", &o->energy.total) &&
           take_number(json, "energy_unary", &o->energy.unary) &&
           take_number(json, "energy_pairwise", &o->energy.pairwise) &&
           take_number(json, "energy_cliques", &o->energy.cliques) &&
           take_number(json, "energy_rounded", &o->rounded) &&
           take_number(json, "lower_bound", &o->lower_bound) &&
           take_number(json, "proven", &o->proven_share) &&
           take_number(json, "relative_gap", &o->relative_gap) &&
           take_left_out(json, &o->left_out) && take_seconds(json, "setup_s", &o->setup_s) &&
           take_seconds(json, "solve_s", &o->solve_s) &&
           take_seconds(json, "polish_s", &o->polish_s) &&
           (!counts || score_from_json(&o->counts, counts));
}
