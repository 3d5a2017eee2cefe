/* Fuzz target: the certificate reader, past its checksum. For any bytes it must return, and what it
 * accepts must survive being written and read again. */
#include "core/memory.h"
#include "target.h"
#include "verify/certificate.h"

#include <stdlib.h>
#include <string.h>

static void fuzz_check(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char magic[8] = {'D', 'C', 'R', 'F', 'C', 'E', 'R', 'T'};
    struct dcrf_sha256 hash;
    struct dcrf_certificate_content content;
    dcrf_error error;
    const size_t whole = sizeof magic + size + DCRF_SHA256_BYTES;
    uint8_t *bytes = malloc(whole), *again;
    size_t count;
    if (!bytes)
        return 0;
    memcpy(bytes, magic, sizeof magic);
    memcpy(bytes + sizeof magic, data, size);
    dcrf_sha256_begin(&hash);
    dcrf_sha256_add(&hash, bytes, sizeof magic + size);
    dcrf_sha256_end(&hash, bytes + sizeof magic + size);
    /* Small sizes are taken from the bytes: a mismatch would stop the reader early. */
    const size_t variables = size > 16 ? data[8] % 64u : 1, labels = size > 24 ? data[16] % 8u : 1;
    const dcrf_status status =
        dcrf_certificate_decode(&content, variables, labels, bytes, whole, NULL, &error);
    fuzz_check(status == DCRF_OK || error.message[0] != 0);
    if (status == DCRF_OK) {
        fuzz_check(dcrf_certificate_encode(&content, &again, &count, &error) == DCRF_OK);
        /* The packing of numbers is not unique, so compare the contents. */
        struct dcrf_certificate_content twice;
        fuzz_check(dcrf_certificate_decode(&twice, variables, labels, again, count, NULL, &error) ==
                   DCRF_OK);
        fuzz_check(twice.rounds == content.rounds && twice.mixture_count == content.mixture_count &&
                   memcmp(twice.labels, content.labels, variables * sizeof *twice.labels) == 0 &&
                   memcmp(twice.round, content.round, variables * sizeof *twice.round) == 0);
        dcrf_certificate_clear(&twice);
        dcrf_release(again);
        dcrf_certificate_clear(&content);
    }
    free(bytes);
    return 0;
}
