/* Output files that appear whole or not at all.
 *
 * All outputs of a run are written into temporary files in the folders of their targets; when every
 * one of them is complete, they are renamed into place. A run that fails before leaves nothing
 * behind, and what was there stays. Devices and pipes (/dev/null) are written directly, and the
 * name "-" is the standard output. */
#ifndef DCRF_CLI_IO_OUTPUT_H
#define DCRF_CLI_IO_OUTPUT_H

#include "problem.h"

#include <stddef.h>
#include <stdio.h>

#define OUTPUTS_MAX 16

typedef struct cli_output {
    const char *path; /* as the user wrote it */
    char *target;     /* where links end; NULL: written directly */
    char *temporary;
    FILE *stream;
} cli_output;

typedef enum output_place {
    OUTPUT_OF_USER, /* a link is followed and stays */
    OUTPUT_IN_STORE /* one of many in a folder, where a link is replaced: it may lead anywhere */
} output_place;

typedef struct cli_outputs {
    cli_output of[OUTPUTS_MAX];
    size_t count;
    output_place place;
} cli_outputs;

/* Is this the name of the standard output? */
bool output_is_standard(const char *path);

/* Can this output be written, as far as can be told before anything is? For use before the work. */
bool output_check(const char *path, cli_problem *problem);

/* Would this output replace another file: under the same name or another spelling of it, behind a
 * link, or as another name of the same file? Devices and pipes are the same by name only. */
bool output_is_same_file(const char *output, const char *other, bool other_is_output);

/* Does a path lead into a folder, however deep, or to the folder itself? */
bool output_folder_holds(const char *folder, const char *path);

/* What was printed is out, or it is a failure. For use before the outputs are put in place, so that
 * files and exit status agree. */
bool output_flush_standard(cli_problem *problem);

/* A temporary file (io/temporary.h) beside an output; in $TMPDIR or /tmp where that is NULL, or no
 * file. A descriptor, or -1 with errno set; *name is to be freed. */
int output_create_beside(const char *path, char **name);

/* Begin an output; write to *stream. The stream belongs to `outputs`. */
bool output_begin(cli_outputs *outputs, const char *path, FILE **stream, cli_problem *problem);

/* All bytes of all outputs are written, none is in place yet. For use where something is to be said
 * in between; a commit does it too. */
bool outputs_finish(cli_outputs *outputs, cli_problem *problem);

/* Finish all outputs. */
bool outputs_commit(cli_outputs *outputs, cli_problem *problem);

/* Drop all that was not committed; after a commit this does nothing. */
void outputs_discard(cli_outputs *outputs);

#endif
