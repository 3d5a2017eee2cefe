#include "io/output.h"

#include "io/temporary.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the limit of Linux */

bool output_is_standard(const char *path) {
    return strcmp(path, "-") == 0;
}

static bool cannot_write(cli_problem *problem, const char *path) {
    return failure(problem, path, "cannot write: %s", strerror(errno));
}

/* The folder part of a path, "." if it has none. NULL: out of memory. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* A path relative to the folder of another; absolute paths are unchanged. NULL: out of memory. */
static char *path_beside(const char *neighbour, const char *path) {
    const char *slash = path[0] == '/' ? NULL : strrchr(neighbour, '/');
    const size_t folder_length = slash ? (size_t)(slash - neighbour) + 1 : 0;
    char *joined = malloc(folder_length + strlen(path) + 1);
    if (joined) {
        memcpy(joined, neighbour, folder_length);
        memcpy(joined + folder_length, path, strlen(path) + 1);
    }
    return joined;
}

/* The canonical name of a file that need not exist: its folder without links and dots, and its
 * own name. NULL with errno set. */
static char *name_in_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = folder_of(path), *real = folder ? realpath(folder, NULL) : NULL, *name = NULL;
    if (real) {
        const char *own = slash ? slash + 1 : path;
        const size_t bytes = strlen(real) + strlen(own) + 2;
        name = malloc(bytes);
        if (name)
            snprintf(name, bytes, "%s/%s", strcmp(real, "/") == 0 ? "" : real, own);
    }
    free(folder);
    free(real);
    return name;
}

/* Where a path leads: through a link, the file itself is replaced or created, not the link. Two
 * spellings of a path give the same name. NULL with errno set. */
static char *target_of(const char *path) {
    char *at = strdup(path), link[PATH_MAX];
    for (size_t length = at ? strlen(at) : 0; length > 1 && at[length - 1] == '/'; length--)
        at[length - 1] = '\0';
    for (int links = 0; at; links++) {
        const ssize_t length = readlink(at, link, sizeof link - 1);
        if (length < 0)
            break;
        link[length] = '\0';
        char *next = links < LINKS_MAX ? path_beside(at, link) : NULL;
        if (links == LINKS_MAX)
            errno = ELOOP;
        free(at);
        at = next;
    }
    char *target = at ? name_in_folder(at) : NULL;
    free(at);
    return target;
}

static bool check_folder(const char *path, cli_problem *problem) {
    char *folder = folder_of(path);
    if (!folder)
        return out_of_memory(problem, path);
    const bool writable = access(folder, W_OK | X_OK) == 0;
    free(folder);
    return writable ||
           bad_input(problem, path, "cannot be created: its folder: %s", strerror(errno));
}

bool output_check(const char *path, cli_problem *problem) {
    struct stat info;
    if (output_is_standard(path))
        return true;
    if (path[strlen(path) - 1] == '/')
        return bad_input(problem, path, "is the name of a folder; give a file");
    if (stat(path, &info) != 0) {
        char *target = target_of(path);
        const bool done =
            target ? check_folder(target, problem)
                   : bad_input(problem, path, "cannot be created: its folder: %s", strerror(errno));
        free(target);
        return done;
    }
    if (S_ISDIR(info.st_mode))
        return bad_input(problem, path, "is a folder; give a file");
    if (access(path, W_OK) != 0)
        return bad_input(problem, path, "cannot be written: %s", strerror(errno));
    return !S_ISREG(info.st_mode) || check_folder(path, problem);
}

/* The umask can only be read by setting it, which is not safe with several threads. */
static mode_t permission_mask;
static pthread_once_t permission_mask_read = PTHREAD_ONCE_INIT;

static void read_permission_mask(void) {
    permission_mask = umask(0);
    umask(permission_mask);
}

/* A file created by mkstemp is private to its owner; give it the permissions that a plain open
 * would. */
static void give_usual_permissions(int descriptor) {
    pthread_once(&permission_mask_read, read_permission_mask);
    /* File systems without permissions (some mounts) are no reason to fail. */
    if (fchmod(descriptor, 0666 & ~permission_mask) != 0)
        errno = 0;
}

int output_create_beside(const char *path, char **name) {
    const char *folder = getenv("TMPDIR");
    char elsewhere[PATH_MAX];
    if (path && !output_is_standard(path) && strncmp(path, "/dev/", 5) != 0)
        return temporary_create(path, name);
    if (snprintf(elsewhere, sizeof elsewhere, "%s/dcrf", folder && *folder ? folder : "/tmp") >=
        (int)sizeof elsewhere) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return temporary_create(elsewhere, name);
}

static bool open_temporary(cli_output *output, cli_problem *problem) {
    const int descriptor = temporary_create(output->target, &output->temporary);
    if (descriptor < 0)
        return cannot_write(problem, output->path);
    give_usual_permissions(descriptor);
    output->stream = fdopen(descriptor, "wb");
    if (!output->stream) {
        close(descriptor);
        return cannot_write(problem, output->path);
    }
    return true;
}

static bool open_output(cli_output *output, output_place place, cli_problem *problem) {
    struct stat info;
    const bool is_stored = place == OUTPUT_IN_STORE;
    if (!is_stored && output_is_standard(output->path)) {
        output->stream = stdout;
        return true;
    }
    if (!is_stored && stat(output->path, &info) == 0 && !S_ISREG(info.st_mode)) {
        output->stream = fopen(output->path, "wb");
        return output->stream || cannot_write(problem, output->path);
    }
    output->target = is_stored ? name_in_folder(output->path) : target_of(output->path);
    if (!output->target)
        return cannot_write(problem, output->path);
    return open_temporary(output, problem);
}

static bool named_twice(cli_problem *problem, const char *path) {
    return bad_input(problem, path, "is named for two outputs; give each its own file");
}

static bool same_target(const cli_output *a, const cli_output *b) {
    return strcmp(a->path, b->path) == 0 ||
           (a->target && b->target && strcmp(a->target, b->target) == 0);
}

bool output_begin(cli_outputs *outputs, const char *path, FILE **stream, cli_problem *problem) {
    if (outputs->count == OUTPUTS_MAX)
        return failure(problem, path, "more than %d outputs", OUTPUTS_MAX);
    cli_output *added = &outputs->of[outputs->count];
    *added = (cli_output){path, NULL, NULL, NULL};
    outputs->count++;
    if (!open_output(added, outputs->place, problem))
        return false;
    for (size_t i = 0; i + 1 < outputs->count; i++)
        if (same_target(&outputs->of[i], added))
            return named_twice(problem, path);
    *stream = added->stream;
    return true;
}

/* ---- comparing files ------------------------------------------------------------------------ */

static bool read_info(const char *path, bool is_output, struct stat *info) {
    return (is_output && output_is_standard(path) ? fstat(STDOUT_FILENO, info)
                                                  : stat(path, info)) == 0;
}

static bool same_name(const char *a, const char *b) {
    char *first = target_of(a), *second = target_of(b);
    const bool same = first && second && strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}

bool output_is_same_file(const char *output, const char *other, bool other_is_output) {
    struct stat info, other_info;
    const bool exists = read_info(output, true, &info);
    if (read_info(other, other_is_output, &other_info) != exists)
        return false;
    const bool are_files = S_ISREG(info.st_mode) && S_ISREG(other_info.st_mode);
    const bool are_folders = S_ISDIR(info.st_mode) && S_ISDIR(other_info.st_mode);
    if (exists && (are_files || are_folders))
        return info.st_dev == other_info.st_dev && info.st_ino == other_info.st_ino;
    /* An input called "-" is not standard output. */
    return (other_is_output || !output_is_standard(output)) && same_name(output, other);
}

bool output_folder_holds(const char *folder, const char *path) {
    char *outer = realpath(folder, NULL), *inner = realpath(path, NULL);
    const size_t length = outer ? strlen(outer) : 0;
    const bool holds = outer && inner && strncmp(outer, inner, length) == 0 &&
                       (inner[length] == '/' || inner[length] == '\0' || length == 1);
    free(outer);
    free(inner);
    return holds;
}

/* ---- finishing ------------------------------------------------------------------------------ */

bool output_flush_standard(cli_problem *problem) {
    return (fflush(stdout) == 0 && !ferror(stdout)) ||
           failure(problem, "standard output", "cannot write: %s", strerror(errno));
}

/* Write all bytes, and for files wait until they are on disk before the rename. */
static bool finish_writing(cli_output *output, cli_problem *problem) {
    FILE *stream = output->stream;
    output->stream = NULL;
    errno = 0;
    bool written = fflush(stream) == 0 && !ferror(stream);
    if (written && output->temporary)
        written = fsync(fileno(stream)) == 0;
    const int cause = errno;
    if (stream != stdout && fclose(stream) != 0 && written)
        return cannot_write(problem, output->path);
    errno = cause ? cause : EIO;
    return written || cannot_write(problem, output->path);
}

static bool put_in_place(cli_output *output, cli_problem *problem) {
    if (output->temporary) {
        if (!temporary_rename(output->temporary, output->target))
            return cannot_write(problem, output->path);
        free(output->temporary);
        output->temporary = NULL;
    }
    return true;
}

bool outputs_finish(cli_outputs *outputs, cli_problem *problem) {
    bool done = true;
    for (size_t i = 0; done && i < outputs->count; i++)
        done = !outputs->of[i].stream || finish_writing(&outputs->of[i], problem);
    return done;
}

bool outputs_commit(cli_outputs *outputs, cli_problem *problem) {
    bool done = outputs_finish(outputs, problem);
    for (size_t i = 0; done && i < outputs->count; i++)
        done = put_in_place(&outputs->of[i], problem);
    outputs_discard(outputs);
    return done;
}

void outputs_discard(cli_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        cli_output *output = &outputs->of[i];
        if (output->stream && output->stream != stdout)
            fclose(output->stream);
        if (output->temporary)
            temporary_remove(output->temporary);
        free(output->temporary);
        free(output->target);
    }
    outputs->count = 0;
}
