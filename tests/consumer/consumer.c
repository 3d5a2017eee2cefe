/* A program of somebody else, for the tests of the installed library: public headers only. */
#include <dcrf/dcrf.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    if (strcmp(dcrf_version(), DCRF_VERSION) != 0) {
        fprintf(stderr, "header %s, library %s\n", DCRF_VERSION, dcrf_version());
        return 1;
    }
    if (dcrf_workspace_new(&workspace, 2, &error) < 0) {
        fprintf(stderr, "%s: %s\n", dcrf_status_name(error.status), error.message);
        return 1;
    }
    printf("dcrf %s, %zu threads\n", dcrf_version(), dcrf_workspace_threads(workspace));
    dcrf_workspace_free(&workspace);
    return 0;
}
