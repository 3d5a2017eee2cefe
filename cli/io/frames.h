/* A folder of pictures: frames of a video in their order, and files in other folders that belong to
 * them by their names. */
#ifndef DCRF_CLI_IO_FRAMES_H
#define DCRF_CLI_IO_FRAMES_H

#include "io/lines.h"

bool path_is_folder(const char *path);

/* Is this the name of one, there or to be made (out/)? */
bool path_names_folder(const char *path);

/* The pictures of a folder, in the order of their names with numbers by their size (f9 before f10);
 * none is bad input. */
bool frames_list(const char *folder, line_list *paths, cli_problem *problem);

/* The name of a file without its folder and its ending, to be freed; NULL: memory is out. */
char *path_stem(const char *path);

typedef enum partner_kind { PARTNER_ARRAY, PARTNER_MAP } partner_kind;

/* The array or map in a folder that belongs to a picture: of the same name, or, where there is one
 * such file, of that name with more behind a mark (photo_mask.png). To be freed; NULL: there is
 * none, or no memory. */
char *path_partner(const char *folder, const char *picture, partner_kind kind);

/* A file in a folder with the name of a picture and this ending, to be freed. */
char *path_beside(const char *folder, const char *picture, const char *ending);

#endif
