#include "dataset/store.h"

#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "io/png_format.h"
#include "io/temporary.h"

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
#define CHECKSUM "checksum"
#define POINTS "time_s, energy, lower_bound" /* of a curve, in this order */

/* ---- folders -------------------------------------------------------------------------------- */

static bool make_folder(const char *path, cli_problem *problem) {
    return mkdir(path, 0777) == 0 || errno == EEXIST ||
           failure(problem, path, "cannot be made: %s", strerror(errno));
}

/* The folder and its parents. */
static bool make_folders(const char *path, cli_problem *problem) {
    char *outer = strdup(path);
    if (!outer)
        return out_of_memory(problem, path);
    bool done = true;
    for (char *slash = strchr(outer + 1, '/'); done && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        done = make_folder(outer, problem);
        *slash = '/';
    }
    free(outer);
    return done && make_folder(path, problem);
}

/* FOLDER/PART/NAME ENDING; empty parts are left out. */
static bool path_in(const store *s, const char *part, const char *method, const char *name,
                    const char *ending, char path[PATH_BYTES]) {
    const int length = snprintf(path, PATH_BYTES, "%s/%s%s%s%s%s%s", s->folder, part,
                                *part ? "/" : "", method, *method ? "/" : "", name, ending);
    return length > 0 && length < PATH_BYTES;
}

/* The path of a folder inside the store, which must be a folder or not exist yet: a link may
 * lead to someone else's folder. */
static bool check_part(const store *s, const char *part, const char *method, char path[PATH_BYTES],
                       cli_problem *problem) {
    struct stat info;
    if (!path_in(s, part, method, "", "", path))
        return bad_input(problem, s->folder, "is too long");
    path[strlen(path) - 1] = '\0'; /* the slash, which would make lstat follow a link */
    return lstat(path, &info) != 0 || S_ISDIR(info.st_mode) ||
           bad_input(problem, path, "is %s where the folder of results should be; remove it",
                     S_ISLNK(info.st_mode) ? "a link" : "a file");
}

static bool make_part(const store *s, const char *part, const char *method, cli_problem *problem) {
    char path[PATH_BYTES];
    return check_part(s, part, method, path, problem) && make_folder(path, problem);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* NULL if there is none that can be read. */
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

static bool says(const json_t *root, const char *name, const char *text) {
    const char *value = json_string_value(json_object_get(root, name));
    return value && strcmp(value, text) == 0;
}

/* ---- ownership of the folder ---------------------------------------------------------------- */

/* The file that names the owner, and the version of the format. */
#define MARKER "dcrf-folder.json"
#define LOCK ".lock"
#define FOLDER_FORMAT 2

/* Call `visit` for every entry of a folder except "." and ".."; false if it returned false. */
static bool visit_entries(const char *path, bool (*visit)(const char *path, const char *name)) {
    DIR *folder = opendir(path);
    bool go_on = true;
    for (const struct dirent *entry; folder && go_on && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            go_on = visit(path, entry->d_name);
    if (folder)
        closedir(folder);
    return go_on;
}

/* Files that a run can leave if it is killed before it writes the marker. */
static bool is_from_the_begin(const char *path, const char *name) {
    (void)path;
    return strcmp(name, LOCK) == 0 || temporary_is_name(name);
}

/* Does the folder belong to the command `owner`, or to none? Nothing is written: other folders
 * stay unchanged. */
static bool check_owner(const store *s, const char *owner, bool *is_marked, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!path_in(s, "", "", MARKER, "", path))
        return bad_input(problem, s->folder, "is too long");
    json_t *marker = load_json(path);
    *is_marked = marker != NULL;
    bool done = true;
    if (!marker && access(path, F_OK) == 0)
        done = bad_input(problem, path, "is damaged; choose another folder, or remove this one");
    else if (!marker && !visit_entries(s->folder, is_from_the_begin))
        done = bad_input(problem, s->folder,
                         "is not empty, and '%s' did not make it; choose another folder", owner);
    else if (marker && !says(marker, "made_by", owner))
        done =
            bad_input(problem, s->folder, "holds no results of '%s'; choose another folder", owner);
    else if (marker && json_integer_value(json_object_get(marker, "format")) != FOLDER_FORMAT)
        done =
            bad_input(problem, s->folder, "is of another version of dcrf; choose another folder");
    json_decref(marker);
    return done;
}

static bool write_marker(const store *s, const char *owner, cli_problem *problem) {
    char path[PATH_BYTES];
    return path_in(s, "", "", MARKER, "", path)
               ? json_save_and_free(path, OUTPUT_IN_STORE,
                                    json_pack("{s:s, s:i, s:s}", "made_by", owner, "format",
                                              FOLDER_FORMAT, "note",
                                              "this folder is dcrf's: it replaces files in it"),
                                    problem)
               : bad_input(problem, s->folder, "is too long");
}

static const char *const parts[] = {RESULTS, CURVES, FAILURES};
#define PARTS (sizeof parts / sizeof parts[0])

static bool check_parts(const store *s, cli_problem *problem) {
    char path[PATH_BYTES];
    bool done = true;
    for (size_t i = 0; done && i < PARTS; i++)
        done = check_part(s, parts[i], "", path, problem);
    return done;
}

/* Remove files left by runs that were killed while writing. */
static bool remove_temporary(const char *path, const char *name) {
    char inner[PATH_BYTES];
    struct stat info;
    const int length = snprintf(inner, sizeof inner, "%s/%s", path, name);
    if (temporary_is_name(name) && length > 0 && length < PATH_BYTES && lstat(inner, &info) == 0 &&
        S_ISREG(info.st_mode))
        unlink(inner);
    return true;
}

static bool remove_temporaries_of_method(const char *path, const char *name) {
    char inner[PATH_BYTES];
    struct stat info;
    const int length = snprintf(inner, sizeof inner, "%s/%s", path, name);
    if (length > 0 && length < PATH_BYTES && lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
        visit_entries(inner, remove_temporary);
    return true;
}

/* Only in the folders that hold results. */
static void remove_temporaries(const store *s) {
    char path[PATH_BYTES];
    visit_entries(s->folder, remove_temporary);
    for (size_t i = 0; i < PARTS; i++)
        if (path_in(s, parts[i], "", "", "", path)) {
            visit_entries(path, remove_temporary);
            visit_entries(path, remove_temporaries_of_method);
        }
}

/* The lock is released with the process, however it ends. On a file system without locks there
 * is none. */
static bool take_lock(store *s, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!path_in(s, "", "", LOCK, "", path))
        return bad_input(problem, s->folder, "is too long");
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (s->lock < 0)
        return failure(problem, s->folder, "cannot be written to: %s", strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return failure(problem, s->folder, "another run works in this folder; wait for it");
    return true;
}

bool store_open(store *s, const char *folder, const char *owner, cli_problem *problem) {
    bool is_marked = false;
    *s = (store){strdup(folder), -1};
    if (!s->folder)
        return out_of_memory(problem, folder);
    bool done = true;
    if (owner) {
        done = make_folders(folder, problem) && check_owner(s, owner, &is_marked, problem) &&
               check_parts(s, problem) && take_lock(s, problem) &&
               (is_marked || write_marker(s, owner, problem));
        if (done)
            remove_temporaries(s);
    }
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

/* A hash of everything but itself: of numbers and names, not of their formatting. */
static bool checksum_of(const json_t *root, content_hash *checksum) {
    json_t *rest = json_copy((json_t *)root);
    if (rest)
        json_object_del(rest, CHECKSUM);
    char *text = rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(rest);
    if (text)
        *checksum = hash_bytes(text, strlen(text));
    free(text);
    return text != NULL;
}

/* NULL if out of memory; takes ownership of `root`. */
static json_t *with_checksum(json_t *root) {
    content_hash checksum;
    if (root && checksum_of(root, &checksum))
        return json_merge(root, json_pack("{s:s}", CHECKSUM, checksum.text));
    json_decref(root);
    return NULL;
}

/* The stored object; NULL if it is missing or was modified. */
static json_t *load_part(const store *s, const char *part, const char *method, const char *name) {
    char path[PATH_BYTES];
    content_hash checksum;
    json_t *root = path_in(s, part, method, name, ".json", path) ? load_json(path) : NULL;
    if (root && checksum_of(root, &checksum) && says(root, CHECKSUM, checksum.text))
        return root;
    json_decref(root);
    return NULL;
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
    const bool is_kept = root && says(root, "key", key->text) &&
                         path_in(s, RESULTS, method, name, ".png", path) &&
                         access(path, R_OK) == 0 && hash_file(path, &labels, &ignored) &&
                         says(root, "labels_hash", labels.text);
    json_decref(root);
    return is_kept;
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
    const png_layout layout = {
        .width = o->width, .height = o->height, .channels = 1, .palette = colours->rgb};
    bool done = png_write(memory, file, o->labels, layout, problem);
    if (fclose(memory) != 0 && done)
        done = out_of_memory(problem, file);
    return done;
}

/* The labels are put in place first: the JSON attests to them. */
static bool write_result(const char *labels_file, const encoded *png, const char *json_file,
                         json_t *root, cli_problem *problem) {
    cli_outputs outputs = {.place = OUTPUT_IN_STORE};
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
        root = with_checksum(json_merge(root, json_pack("{s:O}", "settings", settings)));
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
    const bool is_kept = root && says(root, "key", key->text);
    json_decref(root);
    return is_kept;
}

static json_t *points_to_json(const curve *energies) {
    json_t *points = json_array();
    for (size_t k = 0; k < energies->count; k++) {
        const curve_point *p = &energies->points[k];
        points = json_append(points, json_pack("[f, o, o]", p->time_s, number_or_null(p->energy),
                                               number_or_null(p->lower_bound)));
    }
    return points;
}

bool store_put_curve(const store *s, const char *method, const char *name, const content_hash *key,
                     const curve *energies, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!path_in(s, CURVES, method, name, ".json", path))
        return bad_input(problem, s->folder, "is too long");
    return json_save_and_free(
        path, OUTPUT_IN_STORE,
        with_checksum(json_merge(json_of_key(method, name, key),
                                 json_pack("{s:o}", POINTS, points_to_json(energies)))),
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
    cli_outputs outputs = {.place = OUTPUT_IN_STORE};
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
