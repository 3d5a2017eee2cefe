#include "many/many.h"

#include "interrupt.h"
#include "io/frames.h"
#include "io/tiff_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_HELP(what, option)                                                                  \
    "for several pictures or a folder of pictures: " what " for each, with the picture's name; "   \
    "see --" option

const cli_option many_option_table[] = {
    {"unary-dir", 0, "DIR", NULL, false, parse_input, offsetof(many_options, unary_folder),
     FOLDER_HELP("an array", "unary")},
    {"labels-prior-dir", 0, "DIR", NULL, false, parse_input, offsetof(many_options, prior_folder),
     FOLDER_HELP("a label map", "labels-prior")},
    {"scribbles-dir", 0, "DIR", NULL, false, parse_input, offsetof(many_options, scribbles_folder),
     FOLDER_HELP("strokes", "scribbles")},
    {0},
};

/* Folder options, the option of a single file that each stands for, and the kind of file. */
static const struct {
    const char *option;
    const char *single;
    partner_kind kind;
} partners[] = {{"unary-dir", "unary", PARTNER_ARRAY},
                {"labels-prior-dir", "labels-prior", PARTNER_MAP},
                {"scribbles-dir", "scribbles", PARTNER_MAP}};
#define PARTNERS (sizeof partners / sizeof partners[0])

/* Outputs, one file per picture. */
static const struct {
    const char *option;
    const char *ending; /* NULL: the picture's, if labels can have it */
} outputs[] = {{"output", NULL},           {"overlay", ".png"}, {"boundaries", ".png"},
               {"confidence-map", ".png"}, {"proof", ".png"},   {"certificate", ".cert"},
               {"marginals", ".npy"},      {"trace", ".csv"},   {"json", ".json"},
               {"report", ".html"}};
#define OUTPUTS (sizeof outputs / sizeof outputs[0])

typedef struct job {
    const cli_command *command;
    option_value *parts;
    size_t count;
    line_list pictures;
    bool is_quiet;
    cli_problem *problem;
} job;

static const char *given(const job *j, const char *name) {
    const char *text = NULL;
    for (size_t i = 0; i < j->count; i++)
        if (j->parts[i].option && strcmp(j->parts[i].option->name, name) == 0)
            text = j->parts[i].text;
    return text;
}

static size_t partner_of(const cli_option *option) {
    size_t k = 0;
    while (k < PARTNERS && strcmp(partners[k].option, option->name) != 0)
        k++;
    return k;
}

static size_t output_of(const cli_option *option) {
    size_t k = 0;
    while (k < OUTPUTS && strcmp(outputs[k].option, option->name) != 0)
        k++;
    return k;
}

/* An existing folder, a name that ends like one, or a name without an ending. */
static bool is_folder_name(const char *text) {
    const char *slash = strrchr(text, '/');
    return path_names_folder(text) || !strchr(slash ? slash + 1 : text, '.');
}

/* ---- kinds of arguments --------------------------------------------------------------------- */

static size_t count_operands(const job *j) {
    size_t operands = 0;
    for (size_t i = 0; i < j->count; i++)
        operands += !j->parts[i].option;
    return operands;
}

static bool has_partner_folder(const job *j) {
    for (size_t k = 0; k < PARTNERS; k++)
        if (given(j, partners[k].option))
            return true;
    return false;
}

static bool is_for_many(const job *j) {
    const char *output = given(j, "output");
    return has_partner_folder(j) || (count_operands(j) > 1 && output && is_folder_name(output));
}

static bool list_pictures(job *j) {
    bool done = true;
    for (size_t i = 0; done && i < j->count; i++) {
        const char *path = j->parts[i].text;
        line_list found;
        if (j->parts[i].option)
            continue;
        if (!path_is_folder(path)) {
            done = lines_add(&j->pictures, path, strlen(path)) || out_of_memory(j->problem, path);
            continue;
        }
        done = frames_list(path, &found, j->problem);
        for (size_t k = 0; done && k < found.count; k++)
            done = lines_add(&j->pictures, found.lines[k], strlen(found.lines[k])) ||
                   out_of_memory(j->problem, path);
        if (done)
            lines_free(&found);
    }
    return done && (j->pictures.count > 0 ||
                    bad_input(j->problem, j->command->arguments.command, "IMAGE is missing"));
}

/* ---- one run -------------------------------------------------------------------------------- */

static bool add_text(line_list *line, const char *option, const char *value) {
    char *text = malloc(strlen(option) + (value ? strlen(value) : 0) + 4);
    if (!text)
        return false;
    sprintf(text, value ? "--%s=%s" : "--%s", option, value);
    const bool done = lines_add(line, text, strlen(text));
    free(text);
    return done;
}

/* The value of an option for a picture; the caller frees it. NULL after a problem. */
static char *value_for(const job *j, const option_value *part, const char *picture,
                       const char **name) {
    const size_t partner = partner_of(part->option), output = output_of(part->option);
    char *value;
    *name = part->option->name;
    if (partner < PARTNERS) {
        *name = partners[partner].single;
        value = path_partner(part->text, picture, partners[partner].kind);
        if (!value)
            bad_input(j->problem, part->text, "has no file with the name of %s", picture);
    } else if (output < OUTPUTS) {
        const char *ending = outputs[output].ending;
        value = path_beside(part->text, picture,
                            ending                  ? ending
                            : is_tiff_name(picture) ? ".tif"
                                                    : ".png");
        if (!value)
            out_of_memory(j->problem, picture);
    } else {
        value = strdup(part->text);
        if (!value)
            out_of_memory(j->problem, picture);
    }
    return value;
}

static bool make_line(const job *j, const char *picture, line_list *line) {
    *line = (line_list){0};
    bool done = true;
    for (size_t i = 0; done && i < j->count; i++) {
        const option_value *part = &j->parts[i];
        const char *name;
        if (!part->option)
            continue;
        char *value = value_for(j, part, picture, &name);
        done = value && (add_text(line, name, part->option->form ? value : NULL) ||
                         out_of_memory(j->problem, picture));
        free(value);
    }
    done = done && ((lines_add(line, "--", 2) && lines_add(line, picture, strlen(picture))) ||
                    out_of_memory(j->problem, picture));
    if (!done)
        lines_free(line);
    return done;
}

static bool run_one(const job *j, const char *picture) {
    line_list line;
    if (!make_line(j, picture, &line))
        return false;
    if (!j->is_quiet)
        printf("%s\n", picture);
    const bool done = run_command(j->command, (int)line.count, line.lines, j->problem);
    if (!j->is_quiet)
        putchar('\n');
    lines_free(&line);
    return done;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static bool check_stems(const job *j) {
    for (size_t i = 0; i < j->pictures.count; i++)
        for (size_t k = 0; k < i; k++) {
            char *one = path_stem(j->pictures.lines[i]), *other = path_stem(j->pictures.lines[k]);
            const bool is_same = one && other && strcmp(one, other) == 0;
            free(one);
            free(other);
            if (is_same)
                return bad_input(j->problem, j->pictures.lines[i],
                                 "has the name of %s, and so would their results",
                                 j->pictures.lines[k]);
        }
    return true;
}

static bool make_folders(const job *j) {
    for (size_t i = 0; i < j->count; i++) {
        const option_value *part = &j->parts[i];
        if (!part->option || output_of(part->option) == OUTPUTS)
            continue;
        if (!is_folder_name(part->text))
            return bad_input(j->problem, part->text,
                             "is one file, and there are several pictures; give a folder (out/)");
        if (mkdir(part->text, 0777) != 0 && errno != EEXIST)
            return failure(j->problem, part->text, "cannot be made: %s", strerror(errno));
    }
    return true;
}

static bool check_single(const job *j) {
    for (size_t k = 0; j->pictures.count > 1 && k < PARTNERS; k++) {
        const char *file = given(j, partners[k].single);
        if (file)
            return bad_input(j->problem, file,
                             "is one file, and there are several pictures; give a folder with "
                             "--%s",
                             partners[k].option);
    }
    for (size_t k = 0; k < PARTNERS; k++) {
        const char *folder = given(j, partners[k].option);
        if (folder && !path_is_folder(folder))
            return bad_input(j->problem, folder, "is not a folder; --%s takes a file",
                             partners[k].single);
    }
    return true;
}

/* A link among the outputs may lead to an input of another picture. */
static bool check_links(const job *j, const char *picture) {
    bool done = true;
    for (size_t i = 0; done && i < j->count; i++) {
        const option_value *part = &j->parts[i];
        const char *name;
        struct stat info;
        if (!part->option || output_of(part->option) == OUTPUTS)
            continue;
        char *file = value_for(j, part, picture, &name);
        done = file && (lstat(file, &info) != 0 || !S_ISLNK(info.st_mode) ||
                        bad_input(j->problem, file,
                                  "is a link; results of several pictures replace files alone"));
        free(file);
    }
    return done;
}

/* Does every picture have the files it needs? Checked before any is solved. */
static bool check_lines(const job *j) {
    bool done = true;
    for (size_t i = 0; done && i < j->pictures.count; i++) {
        line_list line;
        done = check_links(j, j->pictures.lines[i]) && make_line(j, j->pictures.lines[i], &line);
        if (done)
            lines_free(&line);
    }
    return done;
}

/* Frames that are solved together: pass the folders themselves. */
static bool run_video(const job *j) {
    line_list line = {0};
    bool done = true;
    for (size_t i = 0; done && i < j->count; i++) {
        const option_value *part = &j->parts[i];
        const size_t partner = part->option ? partner_of(part->option) : PARTNERS;
        if (part->option)
            done =
                add_text(&line, partner < PARTNERS ? partners[partner].single : part->option->name,
                         part->option->form ? part->text : NULL);
    }
    done = done && lines_add(&line, "--", 2);
    for (size_t i = 0; done && i < j->count; i++)
        if (!j->parts[i].option)
            done = lines_add(&line, j->parts[i].text, strlen(j->parts[i].text));
    done = done ? run_command(j->command, (int)line.count, line.lines, j->problem)
                : out_of_memory(j->problem, "arguments");
    lines_free(&line);
    return done;
}

static bool say_interrupted(const job *j, size_t next) {
    failure(j->problem, j->pictures.lines[next], "interrupted: %zu of %zu pictures were solved",
            next, j->pictures.count);
    j->problem->exit_status = EXIT_STATUS_INTERRUPTED;
    return false;
}

static bool run_all(job *j) {
    bool done =
        list_pictures(j) && check_single(j) && check_stems(j) && check_lines(j) && make_folders(j);
    for (size_t i = 0; done && i < j->pictures.count; i++) {
        done = run_one(j, j->pictures.lines[i]);
        if (done && interrupt_came() && i + 1 < j->pictures.count)
            done = say_interrupted(j, i + 1);
    }
    lines_free(&j->pictures);
    return done;
}

bool run_many(const cli_command *command, int count, char **arguments, bool *was_run,
              cli_problem *problem) {
    job j = {.command = command, .problem = problem};
    *was_run = false;
    j.parts = calloc((size_t)count + 1, sizeof *j.parts);
    if (!j.parts)
        return out_of_memory(problem, "arguments");
    bool done = true;
    if (arguments_split(&command->arguments, count, arguments, j.parts, &j.count) &&
        is_for_many(&j)) {
        *was_run = true;
        j.is_quiet = given(&j, "quiet") != NULL;
        done = given(&j, "temporal") ? run_video(&j) : run_all(&j);
    }
    free(j.parts);
    return done;
}
