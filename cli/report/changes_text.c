#include "report/changes_text.h"

#include "io/json.h"
#include "report/json_text.h"

#include <math.h>

/* A label has shrunk if it keeps less than this part of its pixels in the unary minimum. */
#define SHRUNK_PART 0.5
/* Labels with a smaller share are specks, many of which vanish in any smoothing. */
#define SHRUNK_LEAST_SHARE 0.01
#define NAMED_LABELS_MAX 6
/* The strength in force is a sum of weights, each of which was rounded. */
#define SAME_STRENGTH 1e-6

static double share(const solution *found, size_t pixels) {
    return found->pixels > 0 ? (double)pixels / (double)found->pixels : 0;
}

static bool has_vanished(const solution *found, size_t label) {
    return found->before[label] > 0 && found->after[label] == 0;
}

static bool has_shrunk(const solution *found, size_t label) {
    return found->after[label] > 0 &&
           (double)found->after[label] < SHRUNK_PART * (double)found->before[label] &&
           share(found, found->before[label]) >= SHRUNK_LEAST_SHARE;
}

/* ---- for people ----------------------------------------------------------------------------- */

static void print_strength(FILE *stream, const applied_strength *strength) {
    fprintf(stream, "%-14s%18.4g  ", "strength", strength->nats);
    if (strength->chosen_for)
        fprintf(stream, "chosen for %s\n", strength->chosen_for);
    else if (strength->automatic &&
             fabs(strength->nats - strength->measured.strength) <= SAME_STRENGTH * strength->nats)
        fputs("measured, to suit the unaries\n", stream);
    else
        fprintf(stream, "given; %.3g would suit the unaries\n", strength->measured.strength);
}

/* "label 3 vanished (4.20 %), label 5 shrank from 6.10 % to 1.30 %" */
static void print_losses(FILE *stream, const built_model *built, const solution *found) {
    char class[CLASS_TEXT_BYTES];
    size_t named = 0, more = 0;
    for (size_t i = 0; i < found->label_count; i++) {
        if (!has_vanished(found, i) && !has_shrunk(found, i))
            continue;
        if (named == NAMED_LABELS_MAX) {
            more++;
            continue;
        }
        fprintf(stream, "%s %s ", named++ > 0 ? "," : ";",
                class_text_with_number(&built->classes, i, class));
        if (has_vanished(found, i))
            fprintf(stream, "vanished (%.2f %%)", 100 * share(found, found->before[i]));
        else
            fprintf(stream, "shrank from %.2f %% to %.2f %%", 100 * share(found, found->before[i]),
                    100 * share(found, found->after[i]));
    }
    if (more > 0)
        fprintf(stream, ", and %zu more", more);
}

void print_changes(FILE *stream, const built_model *built, const solution *found) {
    const dcrf_changes *changes = &found->changes;
    if (built->kernel_count > 0)
        print_strength(stream, &built->strength);
    fprintf(stream, "%-14s%16.2f %%  %zu of %zu%s\n",
            image_is_volume(&built->image) && !image_is_video(&built->image) ? "voxels changed"
                                                                             : "pixels changed",
            100 * share(found, changes->changed), changes->changed, found->pixels,
            built->mask.map ? " by the kernels, after what distances and colours say" : "");
    fprintf(stream, "%-14s%18zu  of %zu that the unaries have", "labels left",
            changes->labels_after, changes->labels_before);
    print_losses(stream, built, found);
    char class[CLASS_TEXT_BYTES];
    fprintf(stream, "\n%-14s%16.2f %%  %s\n", "largest label", 100 * changes->largest_share,
            class_text_with_number(&built->classes, changes->largest_label, class));
}

void print_warnings(FILE *stream, const solution *found) {
    const unsigned warnings = found->changes.warnings;
    for (unsigned warning = 1; warning <= warnings; warning *= 2)
        if ((warnings & warning) && warning != DCRF_WARNING_CONSTANT)
            fprintf(stream, "warning: %s.\n", dcrf_warning_text((dcrf_warning)warning));
}

/* ---- for programs --------------------------------------------------------------------------- */

/* Adds the class under `key` if it has a name; takes ownership of the object. */
static json_t *with_class_name(json_t *object, const char *key, const class_names *names,
                               size_t label) {
    return label < names->count ? json_with(object, key, json_text(names->lines[label])) : object;
}

static json_t *losses_to_json(const built_model *built, const solution *found,
                              bool (*lost)(const solution *, size_t)) {
    json_t *list = json_array();
    for (size_t i = 0; i < found->label_count; i++) {
        if (!lost(found, i))
            continue;
        json_t *loss =
            json_pack("{s:I, s:f, s:f}", "label", (json_int_t)i, "share_before",
                      share(found, found->before[i]), "share_after", share(found, found->after[i]));
        list = json_append(list, with_class_name(loss, "name", &built->classes, i));
    }
    return list;
}

static json_t *warnings_to_json(const solution *found) {
    json_t *list = json_array();
    const unsigned warnings = found->changes.warnings;
    for (unsigned warning = 1; warning <= warnings; warning *= 2)
        if (warnings & warning)
            list = json_append(list, json_string(dcrf_warning_text((dcrf_warning)warning)));
    return list;
}

json_t *changes_to_json(const built_model *built, const solution *found) {
    const dcrf_changes *changes = &found->changes;
    json_t *counted = json_pack(
        "{s:I, s:f, s:I, s:I, s:o, s:o, s:I, s:f}", "pixels_changed", (json_int_t)changes->changed,
        "share_changed", share(found, changes->changed), "labels_before",
        (json_int_t)changes->labels_before, "labels_after", (json_int_t)changes->labels_after,
        "vanished", losses_to_json(built, found, has_vanished), "shrunk",
        losses_to_json(built, found, has_shrunk), "largest_label",
        (json_int_t)changes->largest_label, "largest_share", changes->largest_share);
    counted =
        with_class_name(counted, "largest_label_name", &built->classes, changes->largest_label);
    return json_pack("{s:o, s:o}", "changes", counted, "warnings", warnings_to_json(found));
}
