#include "dataset/dataset.h"

#include "io/file.h"
#include "io/frames.h"
#include "io/lines.h"
#include "io/output.h"

#include <dcrf/model.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define VOID_USUALLY 255

/* ---- paths ---------------------------------------------------------------------------------- */

static bool make_path(char path[PATH_BYTES], const char *folder, const char *subfolder,
                      const char *name, const char *ending) {
    const int length = snprintf(path, PATH_BYTES, "%s/%s%s%s%s", folder, subfolder,
                                *subfolder ? "/" : "", name, ending);
    return length > 0 && length < PATH_BYTES;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static const char *const picture_endings[] = {".png", ".jpg",  ".jpeg", ".ppm",  ".pgm",
                                              ".tif", ".tiff", ".bmp",  ".webp", NULL};
static const char *const array_endings[] = {".npy", NULL};
static const char *const map_endings[] = {".png", ".npy", ".pgm", ".tif", ".tiff", NULL};

/* Pipes and devices may be endless, and every file is read more than once. */
static bool check_plain(const char *path, cli_problem *problem) {
    return !path || file_is_plain(path) ||
           bad_input(problem, path,
                     "is not a regular file; data sets hold no pipes, devices or folders "
                     "in its place");
}

/* The first existing file of that name; the caller frees it. NULL: none. */
static char *find_file(const char *folder, const char *subfolder, const char *name,
                       const char *const *endings) {
    char path[PATH_BYTES];
    for (; *endings; endings++)
        if (make_path(path, folder, subfolder, name, *endings) && access(path, F_OK) == 0)
            return strdup(path);
    return NULL;
}

char *dataset_find_map(const char *folder, const char *name) {
    return find_file(folder, "", name, map_endings);
}

/* ---- dataset.json --------------------------------------------------------------------------- */

static bool take_unary(const char *path, const json_t *unary, unary_options *options,
                       cli_problem *problem) {
    dcrf_unary_kind named = DCRF_UNARY_AUTO;
    const json_t *kind = json_object_get(unary, "kind");
    const json_t *unit = json_object_get(unary, "energy_per_unit");
    options->in_dataset = true;
    options->scale = 1;
    if (unary && !json_is_object(unary))
        return bad_input(problem, path,
                         "\"unary\" is not an object such as {\"kind\": \"energies\"}");
    if (unit) {
        options->scale = json_number_value(unit);
        if (!(options->scale > 0) || !isfinite(options->scale))
            return bad_input(problem, path, "\"energy_per_unit\" is not a number above zero");
    }
    if (kind &&
        (!json_is_string(kind) || !dcrf_unary_kind_from_name(json_string_value(kind), &named)))
        return bad_input(problem, path,
                         "\"kind\" is none of energies, probabilities, logits and auto");
    /* Only energies have a unit. */
    options->kind = (int)(!kind && unit ? DCRF_UNARY_ENERGIES : named);
    return true;
}

static bool take_description(const char *path, const json_t *root, dataset *data,
                             cli_problem *problem) {
    const json_t *labels = json_object_get(root, "labels");
    const json_t *void_value = json_object_get(root, "void");
    if (!json_is_integer(labels) || json_integer_value(labels) < 1 ||
        json_integer_value(labels) > DCRF_MAX_LABELS)
        return bad_input(problem, path, "\"labels\" is not a whole number from 1 to %d",
                         DCRF_MAX_LABELS);
    if (void_value && (!json_is_integer(void_value) || json_integer_value(void_value) < 0 ||
                       json_integer_value(void_value) > 65535))
        return bad_input(problem, path, "\"void\" is not a whole number from 0 to 65535");
    data->labels = (size_t)json_integer_value(labels);
    data->void_value = void_value ? (int32_t)json_integer_value(void_value) : VOID_USUALLY;
    return take_unary(path, json_object_get(root, "unary"), &data->unary, problem);
}

bool dataset_parse_description(const uint8_t *bytes, size_t size, const char *path, dataset *data,
                               cli_problem *problem) {
    json_error_t error;
    json_t *root = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return bad_input(problem, path, "is not JSON: line %d: %s", error.line, error.text);
    const bool done = take_description(path, root, data, problem);
    json_decref(root);
    return done;
}

/* How many labels the first image's array has; 0: unknown. */
static size_t labels_of_first(const dataset *data) {
    char path[PATH_BYTES];
    line_list images;
    cli_problem ignored;
    cli_image image;
    array_place place;
    size_t labels = 0;
    if (!make_path(path, data->folder, "images", "", "") || !is_folder(path) ||
        !frames_list(path, &images, &ignored))
        return 0;
    for (size_t i = 0; labels == 0 && i < images.count; i++) {
        char *stem = path_stem(images.lines[i]);
        char *array = stem ? find_file(data->folder, "unaries", stem, array_endings) : NULL;
        if (array && image_measure(images.lines[i], &image) &&
            pixel_array_place(array, &image, LAYOUT_AUTO, ARRAY_MAY_BE_SMALLER, &place, &ignored) &&
            !npy_holds_integers(&place.npy))
            labels = place.channels;
        free(stem);
        free(array);
    }
    lines_free(&images);
    return labels;
}

/* Without a dataset.json, images/ and unaries/ of floats suffice. */
static bool infer_description(dataset *data, cli_problem *problem) {
    char path[PATH_BYTES];
    data->labels = labels_of_first(data);
    data->void_value = VOID_USUALLY;
    if (data->labels > 0)
        return take_unary(data->folder, NULL, &data->unary, problem);
    make_path(path, data->folder, "", "masks", "");
    if (is_folder(path))
        return bad_input(problem, data->folder,
                         "has masks/ and no dataset.json; masks are refined by: dcrf solve "
                         "%s/images --labels-prior-dir %s/masks -o out/",
                         data->folder, data->folder);
    return bad_input(
        problem, data->folder,
        "has neither a dataset.json nor images/ with arrays of floats of their names "
        "in unaries/, from which it would follow; docs/reference/formats.md and the manual "
        "(man dcrf, Data sets) say what a data set is");
}

static bool read_description(dataset *data, cli_problem *problem) {
    char path[PATH_BYTES];
    file_bytes bytes;
    if (!make_path(path, data->folder, "", "dataset", ".json"))
        return bad_input(problem, data->folder, "its name is too long");
    if (access(path, F_OK) != 0)
        return infer_description(data, problem);
    if (!check_plain(path, problem) || !file_read(path, &bytes, problem))
        return false;
    const bool done = dataset_parse_description(bytes.data, bytes.size, path, data, problem);
    file_free(&bytes);
    return done;
}

/* ---- classes and colours -------------------------------------------------------------------- */

static bool name_classes(dataset *data, const line_list *names) {
    data->classes = calloc(data->labels, sizeof *data->classes);
    for (size_t i = 0; data->classes && i < data->labels; i++) {
        char text[32];
        snprintf(text, sizeof text, "label %zu", i);
        data->classes[i] = strdup(i < names->count ? names->lines[i] : text);
        if (!data->classes[i])
            return false;
    }
    return data->classes != NULL;
}

static bool read_classes(dataset *data, cli_problem *problem) {
    char path[PATH_BYTES];
    line_list names = {0};
    if (make_path(path, data->folder, "", "classes", ".txt") && access(path, F_OK) == 0) {
        if (!check_plain(path, problem) || !lines_read(path, &names, problem))
            return false;
        if (names.count != data->labels) {
            const size_t count = names.count;
            lines_free(&names);
            return bad_input(problem, path, "names %zu classes, but dataset.json says %zu labels",
                             count, data->labels);
        }
    }
    const bool done = name_classes(data, &names);
    lines_free(&names);
    return done || out_of_memory(problem, data->folder);
}

static bool read_palette(dataset *data, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!palette_default(&data->colours, problem))
        return false;
    return !make_path(path, data->folder, "", "palette", ".txt") || access(path, F_OK) != 0 ||
           (check_plain(path, problem) && palette_read(path, &data->colours, NULL, problem));
}

/* ---- items ---------------------------------------------------------------------------------- */

/* "photo" for "photo.jpg"; 0 if this is not the name of a picture, or is hidden. */
static size_t stem_length(const char *file) {
    const char *point = file[0] == '.' ? NULL : strrchr(file, '.');
    for (const char *const *ending = picture_endings; point && *ending; ending++)
        if (strcmp(point, *ending) == 0)
            return (size_t)(point - file);
    return 0;
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of all pictures, sorted, without duplicates. */
static bool list_images(const dataset *data, line_list *names, cli_problem *problem) {
    char path[PATH_BYTES];
    *names = (line_list){0};
    DIR *folder = make_path(path, data->folder, "images", "", "") ? opendir(path) : NULL;
    if (!folder)
        return bad_input(problem, data->folder, "has no folder images/ that can be read");
    bool done = true;
    for (const struct dirent *entry; done && (entry = readdir(folder));) {
        const size_t length = stem_length(entry->d_name);
        done = length == 0 || lines_add(names, entry->d_name, length);
    }
    closedir(folder);
    if (!done) {
        lines_free(names);
        return out_of_memory(problem, path);
    }
    if (names->count > 1)
        qsort(names->lines, names->count, sizeof *names->lines, compare_lines);
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++)
        if (kept > 0 && strcmp(names->lines[kept - 1], names->lines[i]) == 0)
            free(names->lines[i]);
        else
            names->lines[kept++] = names->lines[i];
    names->count = kept;
    return true;
}

bool dataset_has_split(const char *folder, const char *split) {
    char path[PATH_BYTES];
    return make_path(path, folder, "splits", split, ".txt") && access(path, F_OK) == 0;
}

static bool list_split(const dataset *data, line_list *names, cli_problem *problem) {
    char path[PATH_BYTES];
    if (!dataset_has_split(data->folder, data->split))
        return bad_input(problem, "--split", "there is no %s/splits/%s.txt", data->folder,
                         data->split);
    make_path(path, data->folder, "splits", data->split, ".txt");
    if (!check_plain(path, problem) || !lines_read(path, names, problem))
        return false;
    /* Names become file names: they must be unique, and must not lead outside the folder. */
    char **sorted = calloc(names->count + 1, sizeof *sorted);
    bool done = sorted || out_of_memory(problem, path);
    for (size_t i = 0; done && i < names->count; i++) {
        sorted[i] = names->lines[i];
        if (strchr(sorted[i], '/') || sorted[i][0] == '.')
            done = bad_input(problem, path, "'%.100s' is not the name of an image", sorted[i]);
    }
    if (done && names->count > 1)
        qsort(sorted, names->count, sizeof *sorted, compare_lines);
    for (size_t i = 1; done && i < names->count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            done = bad_input(problem, path, "names '%.100s' twice", sorted[i]);
    free(sorted);
    if (!done)
        lines_free(names);
    return done;
}

static bool add_item(dataset *data, const char *name) {
    dataset_item *item = &data->items[data->count++];
    item->name = strdup(name);
    item->image_file = find_file(data->folder, "images", name, picture_endings);
    item->unary_file = find_file(data->folder, "unaries", name, array_endings);
    item->truth_file = find_file(data->folder, "gt", name, map_endings);
    return item->name != NULL;
}

static bool list_items(dataset *data, cli_problem *problem) {
    char path[PATH_BYTES];
    line_list names;
    data->has_truth = make_path(path, data->folder, "gt", "", "") && is_folder(path);
    if (!(data->split ? list_split(data, &names, problem) : list_images(data, &names, problem)))
        return false;
    data->items = calloc(names.count + 1, sizeof *data->items);
    bool done = data->items != NULL;
    for (size_t i = 0; done && i < names.count; i++)
        done = add_item(data, names.lines[i]);
    lines_free(&names);
    for (size_t i = 0; done && i < data->count; i++) {
        const dataset_item *item = &data->items[i];
        if (!check_plain(item->image_file, problem) || !check_plain(item->unary_file, problem) ||
            !check_plain(item->truth_file, problem))
            return false;
    }
    if (done && data->count == 0)
        return bad_input(problem, data->folder, "has no images%s%s",
                         data->split ? " in the split " : "", data->split ? data->split : "");
    return done || out_of_memory(problem, data->folder);
}

/* ---- the data set --------------------------------------------------------------------------- */

bool dataset_open(dataset *data, const char *folder, const char *split, cli_problem *problem) {
    *data = (dataset){.folder = folder, .split = split};
    const bool done =
        (is_folder(folder) || bad_input(problem, folder, "is not a folder; a data set is one")) &&
        read_description(data, problem) && read_classes(data, problem) &&
        read_palette(data, problem) && list_items(data, problem);
    if (!done)
        dataset_free(data);
    return done;
}

/* Resolve links: they may lead anywhere. */
static bool check_apart(const char *path, const char *out, cli_problem *problem) {
    return !path || !output_folder_holds(out, path) ||
           bad_input(problem, path,
                     "lies in %s, where results could replace it; choose another folder", out);
}

bool dataset_check_apart(const dataset *data, const char *out, cli_problem *problem) {
    static const char *const names[][2] = {
        {"dataset", ".json"}, {"classes", ".txt"}, {"palette", ".txt"}};
    char path[PATH_BYTES];
    bool done = true;
    for (size_t i = 0; done && i < sizeof names / sizeof names[0]; i++)
        done = !make_path(path, data->folder, "", names[i][0], names[i][1]) ||
               check_apart(path, out, problem);
    if (done && data->split && make_path(path, data->folder, "splits", data->split, ".txt"))
        done = check_apart(path, out, problem);
    for (size_t i = 0; done && i < data->count; i++) {
        const dataset_item *item = &data->items[i];
        done = check_apart(item->image_file, out, problem) &&
               check_apart(item->unary_file, out, problem) &&
               check_apart(item->truth_file, out, problem);
    }
    return done;
}

void dataset_free(dataset *data) {
    for (size_t i = 0; data->classes && i < data->labels; i++)
        free(data->classes[i]);
    free(data->classes);
    for (size_t i = 0; i < data->count; i++) {
        free(data->items[i].name);
        free(data->items[i].image_file);
        free(data->items[i].unary_file);
        free(data->items[i].truth_file);
    }
    free(data->items);
    *data = (dataset){0};
}
