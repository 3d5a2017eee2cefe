/* Fuzz target: the reader of certificates, behind its checksum. Whatever the bytes, it must return,
 * and what it accepts must be written again as the same bytes. */
#include "certify/certificate.h"
#include "core/memory.h"
#include "target.h"

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
    const dcrf_status status = dcrf_certificate_decode(&content, bytes, whole, &error);
    fuzz_check(status == DCRF_OK || error.message[0] != 0);
    if (status == DCRF_OK) {
        fuzz_check(dcrf_certificate_encode(&content, &again, &count, &error) == DCRF_OK);
        /* Whether it is exact is written as 0 or 1, whatever was read. */
        fuzz_check(count == whole);
        fuzz_check(memcmp(again, bytes, 12) == 0);
        fuzz_check(memcmp(again + 16, bytes + 16, whole - 16 - DCRF_SHA256_BYTES) == 0);
        dcrf_release(again);
        dcrf_certificate_clear(&content);
    }
    free(bytes);
    return 0;
}
