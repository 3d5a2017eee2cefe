/* dcrf devices: the values of --device that work on this machine. */
#include "command.h"
#include "io/output.h"

#include <dcrf/cpu.h>
#include <dcrf/device.h>

typedef struct devices_settings {
    bool unused; /* C does not allow an empty struct */
} devices_settings;

#define GIB (1024.0 * 1024 * 1024)

static bool print_cpu(cli_problem *problem) {
    dcrf_workspace *workspace = NULL;
    dcrf_error error;
    if (dcrf_workspace_new(&workspace, 0, &error) < 0)
        return library_problem(problem, "cpu", &error);
    const size_t threads = dcrf_workspace_threads(workspace);
    printf("%-10s%s, %zu thread%s\n", "cpu", dcrf_cpu_name(dcrf_cpu_in_use()), threads,
           threads == 1 ? "" : "s");
    dcrf_workspace_free(&workspace);
    return true;
}

/* One line per device, or one that says why there is none, which is not a failure. */
static void print_others(void) {
    dcrf_device_info info;
    dcrf_error error = {.message = "there is no device"};
    size_t count = 0;
    if (dcrf_device_count(&count, &error) < 0 || count == 0)
        printf("%-10snone: %s\n", "cuda", error.message);
    for (size_t i = 0; i < count; i++)
        if (dcrf_device_describe(i, &info, &error) >= 0)
            printf("%-10s%s; %.1f GiB, %.1f GiB of them free\n", info.name, info.description,
                   (double)info.memory_bytes / GIB, (double)info.free_bytes / GIB);
        else
            printf("cuda:%-5zu%s\n", i, error.message);
}

static bool run_devices(const void *settings, cli_problem *problem) {
    (void)settings;
    if (!print_cpu(problem))
        return false;
    print_others();
    return output_flush_standard(problem);
}

static const cli_option operands[] = {{0}};
static const option_group groups[] = {{0}};

const cli_command devices_command = {
    {"devices", operands, groups},
    "list what --device can be on this machine",
    "Lists the CPU with its instruction set and threads, and every GPU with its memory; without a "
    "GPU, it says why.",
    sizeof(devices_settings),
    run_devices,
};
