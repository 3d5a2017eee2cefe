#include "io/frames.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const picture_endings[] = {".png", ".jpg",  ".jpeg", ".ppm",  ".pgm", ".pnm",
                                              ".tif", ".tiff", ".bmp",  ".webp", NULL};
static const char *const array_endings[] = {".npy", ".npz", NULL};
static const char *const map_endings[] = {".png", ".tif", ".tiff", ".pgm",  ".bmp",
                                          ".npy", ".npz", ".jpg",  ".jpeg", NULL};

bool path_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool path_names_folder(const char *path) {
    const size_t length = strlen(path);
    return (length > 0 && path[length - 1] == '/') || path_is_folder(path);
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static size_t stem_length(const char *name) {
    const char *point = strrchr(name, '.');
    return point && point != name ? (size_t)(point - name) : strlen(name);
}

static bool has_ending(const char *name, const char *const *endings) {
    for (; name[0] != '.' && *endings; endings++)
        if (strcasecmp(name + stem_length(name), *endings) == 0)
            return true;
    return false;
}

static char *join(const char *folder, const char *name, size_t length, const char *ending) {
    const size_t folder_length = strlen(folder);
    const bool has_slash = folder_length > 0 && folder[folder_length - 1] == '/';
    char *path = malloc(folder_length + length + strlen(ending) + 2);
    if (path)
        sprintf(path, "%s%s%.*s%s", folder, has_slash ? "" : "/", (int)length, name, ending);
    return path;
}

char *path_stem(const char *path) {
    const char *name = name_of(path);
    return strndup(name, stem_length(name));
}

char *path_beside(const char *folder, const char *picture, const char *ending) {
    const char *name = name_of(picture);
    return join(folder, name, stem_length(name), ending);
}

/* ---- frames --------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
    const char *first = *(char *const *)a, *second = *(char *const *)b;
    while (*first && *second) {
        if (isdigit((unsigned char)*first) && isdigit((unsigned char)*second)) {
            char *first_end, *second_end;
            const unsigned long long x = strtoull(first, &first_end, 10);
            const unsigned long long y = strtoull(second, &second_end, 10);
            if (x != y)
                return x < y ? -1 : 1;
            first = first_end;
            second = second_end;
        } else if (*first != *second) {
            return (unsigned char)*first < (unsigned char)*second ? -1 : 1;
        } else {
            first++;
            second++;
        }
    }
    /* f1 and f01 are ordered by their bytes. */
    return *first || *second ? (*first ? 1 : -1) : strcmp(*(char *const *)a, *(char *const *)b);
}

bool frames_list(const char *folder, line_list *paths, cli_problem *problem) {
    *paths = (line_list){0};
    DIR *stream = opendir(folder);
    if (!stream)
        return bad_input(problem, folder, "is a folder that cannot be read");
    bool done = true;
    for (const struct dirent *entry; done && (entry = readdir(stream));) {
        if (!has_ending(entry->d_name, picture_endings))
            continue;
        char *path = join(folder, entry->d_name, strlen(entry->d_name), "");
        done = path && lines_add(paths, path, strlen(path));
        free(path);
    }
    closedir(stream);
    if (!done)
        out_of_memory(problem, folder);
    else if (paths->count == 0)
        done = bad_input(problem, folder, "has no pictures (PNG, JPEG, PNM, TIFF, BMP or WebP)");
    if (!done)
        lines_free(paths);
    else
        qsort(paths->lines, paths->count, sizeof *paths->lines, compare_names);
    return done;
}

/* ---- matching files ------------------------------------------------------------------------- */

/* The only file whose name continues that of the picture; NULL: none, or several. */
static char *find_longer(const char *folder, const char *name, size_t length,
                         const char *const *endings) {
    char *found = NULL;
    size_t count = 0;
    DIR *stream = opendir(folder);
    for (const struct dirent *entry; stream && (entry = readdir(stream));) {
        const char *other = entry->d_name;
        if (strncmp(other, name, length) != 0 || !has_ending(other, endings) ||
            !strchr("_-.", other[length]) || stem_length(other) <= length)
            continue;
        free(found);
        found = join(folder, other, strlen(other), "");
        count++;
    }
    if (stream)
        closedir(stream);
    if (count != 1) {
        free(found);
        found = NULL;
    }
    return found;
}

char *path_partner(const char *folder, const char *picture, partner_kind kind) {
    const char *const *endings = kind == PARTNER_ARRAY ? array_endings : map_endings;
    const char *name = name_of(picture);
    const size_t length = stem_length(name);
    for (const char *const *ending = endings; *ending; ending++) {
        char *path = join(folder, name, length, *ending);
        if (!path || access(path, F_OK) == 0)
            return path;
        free(path);
    }
    return find_longer(folder, name, length, endings);
}
