/* Output files that appear whole or not at all.
 *
 * All outputs of a run are written into temporary files in the folders of their targets; when
 * all of them are complete, they are renamed into place. A run that fails earlier leaves nothing
 * behind and existing files unchanged. Devices and pipes (/dev/null) are written directly, and
 * the name "-" means standard output. */
#ifndef DCRF_CLI_IO_OUTPUT_H
#define DCRF_CLI_IO_OUTPUT_H

#include "problem.h"

#include <stddef.h>
#include <stdio.h>

#define OUTPUTS_MAX 16

typedef struct cli_output {
    const char *path; /* as the user wrote it */
    char *target;     /* with links resolved; NULL: written directly */
    char *temporary;
    FILE *stream;
} cli_output;

typedef enum output_place {
    OUTPUT_OF_USER, /* a link is followed and kept */
    OUTPUT_IN_STORE /* one of many in a folder, where a link is replaced: it may lead anywhere */
} output_place;

typedef struct cli_outputs {
    cli_output of[OUTPUTS_MAX];
    size_t count;
    output_place place;
} cli_outputs;

/* Is this the name of standard output? */
bool output_is_standard(const char *path);

/* Can this output be written, as far as can be checked in advance? For use before the work. */
bool output_check(const char *path, cli_problem *problem);

/* Would this output replace the other file: by the same path or another spelling of it, through
 * a link, or as a hard link? Devices and pipes are compared by name only. */
bool output_is_same_file(const char *output, const char *other, bool other_is_output);

/* Is a path inside a folder, at any depth, or the folder itself? */
bool output_folder_holds(const char *folder, const char *path);

/* Flush standard output and report errors. For use before the outputs are put in place, so that
 * files and exit status agree. */
bool output_flush_standard(cli_problem *problem);

/* A temporary file (io/temporary.h) beside an output; in $TMPDIR or /tmp if the path is NULL or
 * not a file. Returns a descriptor, or -1 with errno set; the caller frees *name. */
int output_create_beside(const char *path, char **name);

/* Begin an output; write to *stream, which `outputs` owns. */
bool output_begin(cli_outputs *outputs, const char *path, FILE **stream, cli_problem *problem);

/* Write all bytes of all outputs, without putting any in place. For use if something is to be
 * printed in between; a commit does this too. */
bool outputs_finish(cli_outputs *outputs, cli_problem *problem);

/* Finish all outputs and put them in place. */
bool outputs_commit(cli_outputs *outputs, cli_problem *problem);

/* Remove all that was not committed; a no-op after a commit. */
void outputs_discard(cli_outputs *outputs);

#endif
