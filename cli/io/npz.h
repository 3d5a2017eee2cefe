/* Archives of arrays, as numpy.savez writes them: ZIP files of .npy members, stored or deflated. */
#ifndef DCRF_CLI_IO_NPZ_H
#define DCRF_CLI_IO_NPZ_H

#include "io/file.h"

bool npz_recognize(const uint8_t *data, size_t size);

/* Replace the bytes of an archive by its only array with at least two axes; other files are left
 * as they are. An archive with none or several such arrays is refused, and its bytes are kept. */
bool npz_unpack(file_bytes *bytes, const char *file, cli_problem *problem);

#endif
