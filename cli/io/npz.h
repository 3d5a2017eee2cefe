/* Archives of arrays, as numpy.savez writes them: ZIP files of .npy members, stored or deflated. */
#ifndef DCRF_CLI_IO_NPZ_H
#define DCRF_CLI_IO_NPZ_H

#include "io/file.h"

bool npz_recognize(const uint8_t *data, size_t size);

/* Put the one array of an archive that has pixels (two axes at least) in the place of its bytes;
 * what is no archive stays as it is. An archive with none or several is refused, and its bytes
 * stay. */
bool npz_unpack(file_bytes *bytes, const char *file, cli_problem *problem);

#endif
