#include "model/device.h"

#include "model/model_options.h"

#include <stdio.h>
#include <string.h>

const cli_option device_option_table[] = {
    {"device", 0, "cpu|cuda", "cpu", false, parse_text, offsetof(kernel_options, device),
     "where kernels are applied and methods iterate: on the CPU, or on a GPU; cuda:1 is the second "
     "one; 'dcrf devices' lists them"},
    {0},
};

static bool set_device(dcrf_workspace *workspace, const char *device, cli_problem *problem) {
    char subject[64];
    dcrf_error error;
    const dcrf_status status = dcrf_workspace_set_device(workspace, device, &error);
    if (status >= 0)
        return true;
    /* If the text is not a device at all, the message already contains it. */
    snprintf(subject, sizeof subject, "--device%s%.40s", status == DCRF_ERROR_ARGUMENT ? "" : " ",
             status == DCRF_ERROR_ARGUMENT ? "" : device);
    return library_problem(problem, subject, &error);
}

bool workspace_start(dcrf_workspace **workspace, size_t threads, const char *device,
                     cli_problem *problem) {
    dcrf_error error;
    if (dcrf_workspace_new(workspace, threads, &error) < 0)
        return library_problem(problem, "--threads", &error);
    if (!device || set_device(*workspace, device, problem))
        return true;
    dcrf_workspace_free(workspace);
    return false;
}

bool workspace_start_in_turn(dcrf_workspace **workspace, size_t threads, const char *device,
                             size_t place, cli_problem *problem) {
    char name[DCRF_DEVICE_NAME_BYTES];
    size_t count;
    dcrf_error error;
    if (device && strcmp(device, "cuda") == 0 && dcrf_device_count(&count, &error) >= 0 &&
        count > 1) {
        snprintf(name, sizeof name, "cuda:%zu", place % count);
        device = name;
    }
    return workspace_start(workspace, threads, device, problem);
}

bool device_check(const char *device, cli_problem *problem) {
    dcrf_workspace *workspace = NULL;
    const bool done = workspace_start(&workspace, 1, device, problem);
    dcrf_workspace_free(&workspace);
    return done;
}

const char *device_to_tell(const dcrf_workspace *workspace) {
    const char *device = dcrf_workspace_device(workspace);
    return strcmp(device, "cpu") == 0 ? NULL : device;
}
