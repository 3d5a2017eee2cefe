/* A folder of pictures: frames of a video in order, and files in other folders that belong to
 * them by name. */
#ifndef DCRF_CLI_IO_FRAMES_H
#define DCRF_CLI_IO_FRAMES_H

#include "io/lines.h"

bool path_is_folder(const char *path);

/* Does this path name a folder, either existing or to be created (out/)? */
bool path_names_folder(const char *path);

/* The pictures of a folder, sorted by name with numbers in numeric order (f9 before f10); an
 * empty folder is bad input. */
bool frames_list(const char *folder, line_list *paths, cli_problem *problem);

/* The name of a file without folder and ending; the caller frees it. NULL: out of memory. */
char *path_stem(const char *path);

typedef enum partner_kind { PARTNER_ARRAY, PARTNER_MAP } partner_kind;

/* The array or map in a folder that belongs to a picture: the file of the same name, or else the
 * only one whose name continues after a separator (photo_mask.png). The caller frees it; NULL:
 * none, or out of memory. */
char *path_partner(const char *folder, const char *picture, partner_kind kind);

/* A path in a folder with the name of a picture and this ending; the caller frees it. */
char *path_beside(const char *folder, const char *picture, const char *ending);

#endif
