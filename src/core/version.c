#include <dcrf/dcrf.h>

const char *dcrf_version(void) {
    return DCRF_VERSION;
}
