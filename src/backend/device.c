/* Loads the device library, and sets the device of a workspace. */
#include "backend/device.h"

#include "core/error.h"
#include "core/owned.h"
#include "core/platform.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libdcrf-cuda.so.0"

/* ---- the library ---------------------------------------------------------------------------- */

/* The table, once found. All threads write the same value. */
static _Atomic(const struct dcrf_backend *) found_backend;

#ifndef DCRF_HAS_LOADER

static dcrf_status find_backend(const struct dcrf_backend **backend, dcrf_error *error) {
    *backend = atomic_load(&found_backend);
    return dcrf_fail(error, DCRF_ERROR_DEVICE, "there are no devices on this platform");
}

#else

/* Look next to this library, program or module, and at its place in a build folder. */
static void *open_beside(void) {
    char folder[4096], path[4096 + 64];
    if (!dcrf_own_folder(folder, sizeof folder))
        return NULL;
    static const char *const places[] = {"", "/backend/cuda", "/src/backend/cuda",
                                         "/../src/backend/cuda", "/../../src/backend/cuda"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s/" LIBRARY, folder, places[i]);
        void *library = dcrf_library_open(path);
        if (library)
            return library;
    }
    return NULL;
}

static void *open_library(dcrf_error *error) {
    const char *given = dcrf_library_setting("DCRF_CUDA_LIBRARY");
    void *library = NULL;
    char problem[256];
    if (given && *given) {
        library = dcrf_library_open(given);
        if (!library) {
            dcrf_library_problem(problem, sizeof problem);
            dcrf_fail(error, DCRF_ERROR_DEVICE, "DCRF_CUDA_LIBRARY: %s", problem);
        }
        return library;
    }
    library = open_beside();
#ifdef DCRF_LIBRARY_FOLDER
    if (!library)
        library = dcrf_library_open(DCRF_LIBRARY_FOLDER "/" LIBRARY);
#endif
    if (!library)
        library = dcrf_library_open(LIBRARY);
    if (!library) {
        dcrf_library_problem(problem, sizeof problem);
        dcrf_fail(error, DCRF_ERROR_DEVICE,
                  "there is no GPU support: %s; build dcrf where nvcc is, or set DCRF_CUDA_LIBRARY",
                  problem);
    }
    return library;
}

static dcrf_status find_backend(const struct dcrf_backend **backend, dcrf_error *error) {
    *backend = atomic_load(&found_backend);
    if (*backend)
        return DCRF_OK;
    void *library = open_library(error);
    if (!library)
        return DCRF_ERROR_DEVICE;
    dcrf_backend_entry entry = NULL;
    void *symbol = dcrf_library_symbol(library, DCRF_BACKEND_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function pointers */
    const struct dcrf_backend *table = entry ? entry() : NULL;
    if (!table || table->version != DCRF_BACKEND_VERSION) {
        dcrf_library_close(library);
        return dcrf_fail(error, DCRF_ERROR_DEVICE,
                         LIBRARY " is not of this version of dcrf: install both from one build");
    }
    atomic_store(&found_backend, table);
    *backend = table;
    return DCRF_OK;
}

#endif

/* ---- available devices ---------------------------------------------------------------------- */

dcrf_status dcrf_device_count(size_t *count, dcrf_error *error) {
    if (!count)
        return dcrf_fail_null(error, "the place for the number of devices");
    *count = 0;
    const struct dcrf_backend *backend;
    TRY(find_backend(&backend, error));
    return backend->count(count, error);
}

static dcrf_status check_index(size_t index, dcrf_error *error) {
    size_t count;
    TRY(dcrf_device_count(&count, error));
    if (index >= count)
        return dcrf_fail(error, DCRF_ERROR_DEVICE, "there is no device cuda:%zu: there are %zu",
                         index, count);
    return DCRF_OK;
}

dcrf_status dcrf_device_describe(size_t index, dcrf_device_info *info, dcrf_error *error) {
    if (!info)
        return dcrf_fail_null(error, "the place for what is known of a device");
    *info = (dcrf_device_info){0};
    TRY(check_index(index, error));
    return atomic_load(&found_backend)->describe(index, info, error);
}

/* ---- the device of a workspace -------------------------------------------------------------- */

static void close_device(void *attached) {
    struct dcrf_device *device = attached;
    device->backend->close(device->opened);
    dcrf_release(device);
}

const struct dcrf_device *dcrf_workspace_find_device(const dcrf_workspace *workspace) {
    return (const struct dcrf_device *)dcrf_workspace_source(workspace);
}

const struct dcrf_backend *dcrf_workspace_backend(const dcrf_workspace *workspace,
                                                  dcrf_backend_device **opened) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    *opened = device ? device->opened : NULL;
    return device ? device->backend : &dcrf_backend_cpu;
}

const char *dcrf_workspace_device(const dcrf_workspace *workspace) {
    const struct dcrf_device *device = workspace ? dcrf_workspace_find_device(workspace) : NULL;
    return device ? device->name : "cpu";
}

/* The number in "cuda" or "cuda:N". */
static bool parse_name(const char *name, size_t *index) {
    *index = 0;
    if (strcmp(name, "cuda") == 0)
        return true;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] == 0 || strlen(name + 5) > 3)
        return false;
    for (const char *digit = name + 5; *digit; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        *index = *index * 10 + (size_t)(*digit - '0');
    }
    return true;
}

dcrf_status dcrf_workspace_set_device(dcrf_workspace *workspace, const char *name,
                                      dcrf_error *error) {
    if (!workspace || !name)
        return dcrf_fail_null(error, "the workspace or the name of the device");
    DCRF_ENTER(workspace, error);
    size_t index;
    if (strcmp(name, "cpu") == 0) {
        dcrf_workspace_attach(workspace, &dcrf_operator_source_slot, NULL, NULL);
        return DCRF_OK;
    }
    if (!parse_name(name, &index))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "'%.40s' is not a device; devices are cpu, cuda and cuda:N", name);
    TRY(check_index(index, error));
    struct dcrf_device *device = dcrf_allocate_zero(1, sizeof *device);
    if (!device)
        return dcrf_fail_memory(error, "a device");
    device->backend = atomic_load(&found_backend);
    device->index = index;
    snprintf(device->name, sizeof device->name, "cuda:%zu", index);
    dcrf_status status = device->backend->open(&device->opened, index, error);
    if (status < 0) {
        dcrf_release(device);
        return status;
    }
    device->source = (struct dcrf_operator_source){device->backend->operators, device->opened};
    if (!dcrf_workspace_attach(workspace, &dcrf_operator_source_slot, device, close_device)) {
        close_device(device);
        return dcrf_fail_memory(error, "a device");
    }
    return DCRF_OK;
}

/* ---- memory on a device --------------------------------------------------------------------- */

struct dcrf_device_memory {
    const struct dcrf_backend *backend;
    dcrf_backend_memory *memory;
    void *data;
};

dcrf_status dcrf_device_find(const void *data, char *name, dcrf_error *error) {
    if (!data || !name)
        return dcrf_fail_null(error, "the array or the place for the name of its device");
    const struct dcrf_backend *backend;
    size_t index = SIZE_MAX;
    snprintf(name, DCRF_DEVICE_NAME_BYTES, "cpu");
    TRY(find_backend(&backend, error));
    TRY(backend->arrays->find(data, &index, error));
    if (index != SIZE_MAX)
        snprintf(name, DCRF_DEVICE_NAME_BYTES, "cuda:%zu", index);
    return DCRF_OK;
}

static dcrf_status need_device(const dcrf_workspace *workspace, const struct dcrf_device **device,
                               dcrf_error *error) {
    *device = dcrf_workspace_find_device(workspace);
    return *device ? DCRF_OK
                   : dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the workspace is on no device");
}

dcrf_status dcrf_device_memory_new(dcrf_device_memory **out, dcrf_workspace *workspace,
                                   size_t bytes, dcrf_error *error) {
    const struct dcrf_device *device;
    if (!out)
        return dcrf_fail_null(error, "the place for memory on a device");
    *out = NULL;
    DCRF_ENTER(workspace, error);
    TRY(need_device(workspace, &device, error));
    DCRF_SCOPED dcrf_device_memory *memory = dcrf_allocate_zero(1, sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "memory on a device");
    memory->backend = device->backend;
    TRY(device->backend->arrays->memory_new(&memory->memory, &memory->data, device->opened, bytes,
                                            error));
    *out = DCRF_PASS_ON(memory);
    return DCRF_OK;
}

void dcrf_device_memory_free(dcrf_device_memory **memory) {
    if (!memory || !*memory)
        return;
    (*memory)->backend->arrays->memory_free((*memory)->memory);
    dcrf_release(*memory);
    *memory = NULL;
}

void *dcrf_device_memory_data(const dcrf_device_memory *memory) {
    return memory ? memory->data : NULL;
}

dcrf_status dcrf_device_copy(dcrf_workspace *workspace, void *to, const void *from, size_t bytes,
                             dcrf_error *error) {
    const struct dcrf_device *device;
    if (!to || !from)
        return dcrf_fail_null(error, "one of the arrays of a copy");
    DCRF_ENTER(workspace, error);
    TRY(need_device(workspace, &device, error));
    return device->backend->arrays->copy(device->opened, to, from, bytes, error);
}

dcrf_status dcrf_device_use_stream(dcrf_workspace *workspace, void *stream, dcrf_error *error) {
    const struct dcrf_device *device;
    DCRF_ENTER(workspace, error);
    TRY(need_device(workspace, &device, error));
    device->backend->arrays->use_stream(device->opened, stream);
    return DCRF_OK;
}

dcrf_status dcrf_device_wait(dcrf_workspace *workspace, void *stream, dcrf_error *error) {
    const struct dcrf_device *device;
    DCRF_ENTER(workspace, error);
    TRY(need_device(workspace, &device, error));
    return device->backend->arrays->wait_for(device->opened, stream, error);
}

/* ---- operators of rows on a device ---------------------------------------------------------- */

dcrf_status dcrf_operator_new_on_device(dcrf_operator **op, const float *features, size_t variables,
                                        size_t dimension, size_t pictures, int is_symmetric,
                                        int is_waiting, dcrf_workspace *workspace,
                                        dcrf_error *error) {
    if (!op || !features || !workspace)
        return dcrf_fail_null(error, "the operator, the features or the workspace");
    DCRF_ENTER(workspace, error);
    *op = NULL;
    if (dimension == 0 || dimension > DCRF_MAX_FEATURES)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%zu features; 1 to %d are possible", dimension,
                         DCRF_MAX_FEATURES);
    if (variables == 0 || pictures == 0 || variables % pictures != 0)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%zu variables are not %zu equal pictures",
                         variables, pictures);
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    if (!device || !device->backend->arrays->lattice_of_rows)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "lattices of several pictures are made on a GPU only");
    return device->backend->arrays->lattice_of_rows(op, device->opened, features, variables,
                                                    dimension, pictures, is_symmetric != 0,
                                                    is_waiting != 0, error);
}
