#include "dataset/store.h"

#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "io/png_format.h"
#include "solution_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define RESULTS "results"
#define CURVES "curves"
#define FAILURES "failures"
#define POINTS "time_s, energy, lower_bound" /* of a curve, in that order */

/* ---- folders -------------------------------------------------------------------------------- */

static bool make_folder(const char *path, cli_problem *problem) {
    return mkdir(path, 0777) == 0 || errno == EEXIST ||
           failure(problem, path, "cannot be made: %s", strerror(errno));
}

/* FOLDER/PART/NAME ENDING; parts that are empty are left out. */
static bool path_in(const store *s, const char *part, const char *method, const char *name,
                    const char *ending, char path[PATH_BYTES]) {
    const int length = snprintf(path, PATH_BYTES, "%s/%s%s%s%s%s%s", s->folder, part,
                                *part ? "/" : "", method, *method ? "/" : "", name, ending);
    return length > 0 && length < PATH_BYTES;
}

static bool make_part(const store *s, const char *part, const char *method, cli_problem *problem) {
    char path[PATH_BYTES];
    return path_in(s, part, method, "", "", path) ? make_folder(path, problem)
                                                  : bad_input(problem, s->folder, "is too long");
}

/* Remove what runs left that were killed while they wrote, in a folder and in those below. */
static void remove_temporaries(const char *path, int depth) {
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char inner[PATH_BYTES];
        struct stat info;
        const int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length < 0 || length >= PATH_BYTES || strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0 || lstat(inner, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth > 0)
            remove_temporaries(inner, depth - 1);
        else if (S_ISREG(info.st_mode) && output_is_temporary(entry->d_name))
            unlink(inner);
    }
    if (folder)
        closedir(folder);
}

/* The lock goes away with the process, however it ends. A file system without locks has to do
 * without. */
static bool take_lock(store *s, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!path_in(s, "", "", ".lock", "", path))
        return bad_input(problem, s->folder, "is too long");
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock < 0)
        return failure(problem, s->folder, "cannot be written to: %s", strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return failure(problem, s->folder, "another run works in this folder; wait for it");
    return true;
}

bool store_open(store *s, const char *folder, bool owner, cli_problem *problem) {
    *s = (store){strdup(folder), -1};
    if (!s->folder)
        return out_of_memory(problem, folder);
    const bool done = !owner || (make_folder(folder, problem) && take_lock(s, problem));
    if (done && owner)
        remove_temporaries(folder, 2);
    if (!done)
        store_close(s);
    return done;
}

void store_close(store *s) {
    if (s->lock >= 0)
        close(s->lock);
    free(s->folder);
    *s = (store){NULL, -1};
}

bool store_add_method(const store *s, const char *method, cli_problem *problem) {
    return make_part(s, RESULTS, "", problem) && make_part(s, RESULTS, method, problem) &&
           make_part(s, CURVES, "", problem) && make_part(s, CURVES, method, problem);
}

char *store_file(const store *s, const char *name) {
    char path[PATH_BYTES];
    return path_in(s, "", "", name, "", path) ? strdup(path) : NULL;
}

char *store_labels_file(const store *s, const char *method, const char *name) {
    char path[PATH_BYTES];
    return path_in(s, RESULTS, method, name, ".png", path) ? strdup(path) : NULL;
}

/* ---- JSON with a key ------------------------------------------------------------------------ */

/* NULL where there is none that can be read. */
static json_t *load_json(const char *path) {
    file_bytes bytes;
    cli_problem ignored;
    json_error_t error;
    if (access(path, R_OK) != 0 || !file_read(path, &bytes, &ignored))
        return NULL;
    json_t *root = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    file_free(&bytes);
    return root;
}

static json_t *load_part(const store *s, const char *part, const char *method, const char *name) {
    char path[PATH_BYTES];
    return path_in(s, part, method, name, ".json", path) ? load_json(path) : NULL;
}

static bool says(const json_t *root, const char *name, const char *text) {
    const char *value = json_string_value(json_object_get(root, name));
    return value && strcmp(value, text) == 0;
}

static json_t *json_of_key(const char *method, const char *name, const content_hash *key) {
    return json_pack("{s:s, s:s, s:s}", "image", name, "method", method, "key", key->text);
}

/* ---- results -------------------------------------------------------------------------------- */

bool store_has(const store *s, const char *method, const char *name, const content_hash *key) {
    char path[PATH_BYTES];
    cli_problem ignored;
    content_hash labels;
    json_t *root = load_part(s, RESULTS, method, name);
    const bool there = root && says(root, "key", key->text) &&
                       path_in(s, RESULTS, method, name, ".png", path) && access(path, R_OK) == 0 &&
                       hash_file(path, &labels, &ignored) && says(root, "labels_hash", labels.text);
    json_decref(root);
    return there;
}

typedef struct encoded {
    char *bytes;
    size_t size;
} encoded;

static bool encode_labels(const outcome *o, const palette *colours, const char *file, encoded *png,
                          cli_problem *problem) {
    *png = (encoded){0};
    FILE *memory = open_memstream(&png->bytes, &png->size);
    if (!memory)
        return out_of_memory(problem, file);
    bool done =
        png_write_labels(memory, file, o->labels, o->width, o->height, colours->rgb, problem);
    if (fclose(memory) != 0 && done)
        done = out_of_memory(problem, file);
    return done;
}

/* The labels are put in place first: the JSON vouches for them. */
static bool write_result(const char *labels_file, const encoded *png, const char *json_file,
                         json_t *root, cli_problem *problem) {
    cli_outputs outputs = {.count = 0};
    FILE *stream;
    bool done = output_begin(&outputs, labels_file, &stream, problem);
    if (done)
        fwrite(png->bytes, 1, png->size, stream);
    done = done && output_begin(&outputs, json_file, &stream, problem) &&
           json_write_and_free(stream, json_file, json_incref(root), problem) &&
           outputs_commit(&outputs, problem);
    outputs_discard(&outputs);
    return done;
}

bool store_put(const store *s, const char *method, const char *name, const content_hash *key,
               const outcome *o, json_t *settings, const palette *colours, cli_problem *problem) {
    char labels_file[PATH_BYTES], json_file[PATH_BYTES];
    encoded png;
    if (!path_in(s, RESULTS, method, name, ".png", labels_file) ||
        !path_in(s, RESULTS, method, name, ".json", json_file))
        return bad_input(problem, s->folder, "is too long");
    bool done = encode_labels(o, colours, labels_file, &png, problem);
    json_t *root = NULL;
    if (done) {
        const content_hash labels = hash_bytes(png.bytes, png.size);
        root = json_of_key(method, name, key);
        root = json_merge(root, json_pack("{s:s}", "labels_hash", labels.text));
        root = json_merge(root, outcome_to_json(o));
        root = json_merge(root, json_pack("{s:O}", "settings", settings));
        done = root ? write_result(labels_file, &png, json_file, root, problem)
                    : out_of_memory(problem, json_file);
    }
    json_decref(root);
    free(png.bytes);
    return done;
}

bool store_get(const store *s, const char *method, const char *name, outcome *o,
               cli_problem *problem) {
    json_t *root = load_part(s, RESULTS, method, name);
    const bool done = root && outcome_from_json(o, root);
    json_decref(root);
    return done || failure(problem, name, "its result of %s in %s cannot be read; run again",
                           method, s->folder);
}

/* ---- curves --------------------------------------------------------------------------------- */

bool store_has_curve(const store *s, const char *method, const char *name,
                     const content_hash *key) {
    json_t *root = load_part(s, CURVES, method, name);
    const bool there = root && says(root, "key", key->text);
    json_decref(root);
    return there;
}

static json_t *points_to_json(const curve *energies) {
    json_t *points = json_array();
    for (size_t k = 0; points && k < energies->count; k++) {
        const curve_point *p = &energies->points[k];
        json_t *point = json_pack("[f, o, o]", p->time_s, number_or_null(p->energy),
                                  number_or_null(p->lower_bound));
        if (!point || json_array_append_new(points, point) != 0) {
            json_decref(points);
            points = NULL;
        }
    }
    return points;
}

bool store_put_curve(const store *s, const char *method, const char *name, const content_hash *key,
                     const curve *energies, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!path_in(s, CURVES, method, name, ".json", path))
        return bad_input(problem, s->folder, "is too long");
    return json_save_and_free(path,
                              json_merge(json_of_key(method, name, key),
                                         json_pack("{s:o}", POINTS, points_to_json(energies))),
                              problem);
}

static double number_at(const json_t *point, size_t place) {
    const json_t *value = json_array_get(point, place);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool store_get_curve(const store *s, const char *method, const char *name, curve *energies,
                     cli_problem *problem) {
    json_t *root = load_part(s, CURVES, method, name);
    const json_t *points = json_object_get(root, POINTS);
    *energies = (curve){calloc(json_array_size(points) + 1, sizeof *energies->points),
                        json_array_size(points)};
    const bool done = energies->points && json_is_array(points);
    for (size_t k = 0; done && k < energies->count; k++) {
        const json_t *point = json_array_get(points, k);
        energies->points[k] =
            (curve_point){number_at(point, 0), number_at(point, 1), number_at(point, 2)};
    }
    json_decref(root);
    if (!done)
        curve_free(energies);
    return done || failure(problem, name, "its curve of %s in %s cannot be read; run again", method,
                           s->folder);
}

void curve_free(curve *energies) {
    free(energies->points);
    *energies = (curve){0};
}

/* ---- failures ------------------------------------------------------------------------------- */

bool store_put_failure(const store *s, const char *name, const char *message,
                       cli_problem *problem) {
    char path[PATH_BYTES];
    cli_outputs outputs = {.count = 0};
    FILE *stream;
    if (!path_in(s, FAILURES, "", name, ".txt", path))
        return bad_input(problem, s->folder, "is too long");
    if (!message)
        return unlink(path) == 0 || errno == ENOENT ||
               failure(problem, path, "cannot be removed: %s", strerror(errno));
    bool done =
        make_part(s, FAILURES, "", problem) && output_begin(&outputs, path, &stream, problem);
    if (done)
        fprintf(stream, "%s\n", message);
    done = done && outputs_commit(&outputs, problem);
    outputs_discard(&outputs);
    return done;
}

char *store_get_failure(const store *s, const char *name) {
    char path[PATH_BYTES];
    file_bytes bytes;
    cli_problem ignored;
    if (!path_in(s, FAILURES, "", name, ".txt", path) || access(path, R_OK) != 0 ||
        !file_read(path, &bytes, &ignored))
        return NULL;
    const char *text = (const char *)bytes.data;
    const char *end = memchr(text, '\n', bytes.size);
    char *message = strndup(text, end ? (size_t)(end - text) : bytes.size);
    file_free(&bytes);
    return message;
}
