/* Unit tests on a device: with --wrap=dcrf_workspace_new, every workspace a test makes gets the
 * device named by the environment variable DCRF_TEST_DEVICE, and so do all plans made with it. So
 * the oracles for the CPU's operators and methods also test those of the device. */
#include <dcrf/device.h>

#include <stdio.h>
#include <stdlib.h>

dcrf_status __real_dcrf_workspace_new(dcrf_workspace **workspace, size_t threads,
                                      dcrf_error *error);
dcrf_status __wrap_dcrf_workspace_new(dcrf_workspace **workspace, size_t threads,
                                      dcrf_error *error);

dcrf_status __wrap_dcrf_workspace_new(dcrf_workspace **workspace, size_t threads,
                                      dcrf_error *error) {
    const char *device = getenv("DCRF_TEST_DEVICE");
    dcrf_status status = __real_dcrf_workspace_new(workspace, threads, error);
    if (status == DCRF_OK && device)
        status = dcrf_workspace_set_device(*workspace, device, error);
    if (status < 0)
        dcrf_workspace_free(workspace);
    return status;
}

/* Skip the test if there is no device. */
__attribute__((constructor)) static void need_device(void) {
    size_t count;
    dcrf_error error;
    if (getenv("DCRF_TEST_DEVICE") && dcrf_device_count(&count, &error) < 0) {
        printf("skipped: %s\n", error.message);
        exit(77);
    }
}
