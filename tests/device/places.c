#include "places.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool is_fake(void) {
    return getenv("DCRF_TEST_DEVICE") == NULL;
}

void must(dcrf_status status, const dcrf_error *error) {
    if (status < 0)
        fail_msg("%s", error->message);
}

dcrf_workspace *new_device_workspace(void) {
    dcrf_workspace *workspace;
    dcrf_error error;
    if (is_fake())
        setenv("DCRF_CUDA_LIBRARY", FAKE_BACKEND, 1);
    if (dcrf_workspace_new(&workspace, 1, &error) == DCRF_OK &&
        dcrf_workspace_set_device(workspace, is_fake() ? "cuda" : getenv("DCRF_TEST_DEVICE"),
                                  &error) == DCRF_OK)
        return workspace;
    printf("%s\n", error.message);
    dcrf_workspace_free(&workspace);
    return NULL;
}

int status_without_device(void) {
    size_t count;
    dcrf_error error;
    if (is_fake() || dcrf_device_count(&count, &error) == DCRF_OK)
        return 0;
    printf("skipped: %s\n", error.message);
    return 77;
}

fake_function find_in_fake(const char *name) {
    void *library = dlopen(FAKE_BACKEND, RTLD_NOW);
    void *symbol = dlsym(library, name);
    fake_function found;
    memcpy(&found, &symbol, sizeof found);
    assert_non_null(found);
    return found;
}

size_t fake_alive(void) {
    return ((size_t(*)(void))find_in_fake("fake_backend_alive"))();
}

size_t fake_pictures(void) {
    return ((size_t(*)(void))find_in_fake("fake_backend_pictures"))();
}

struct place put(dcrf_workspace *workspace, bool is_there, const void *from, size_t bytes) {
    struct place place = {0};
    dcrf_error error;
    if (!is_there) {
        place.data = place.owned = malloc(bytes);
        assert_non_null(place.data);
        memcpy(place.data, from, bytes);
        return place;
    }
    must(dcrf_device_memory_new(&place.memory, workspace, bytes, &error), &error);
    place.data = dcrf_device_memory_data(place.memory);
    must(dcrf_device_copy(workspace, place.data, from, bytes, &error), &error);
    return place;
}

void fetch(dcrf_workspace *workspace, const struct place *place, void *to, size_t bytes) {
    dcrf_error error;
    if (place->memory)
        must(dcrf_device_copy(workspace, to, place->data, bytes, &error), &error);
    else
        memcpy(to, place->data, bytes);
}

void drop(struct place *place) {
    dcrf_device_memory_free(&place->memory);
    free(place->owned);
}

void nothing_is_left(void **state) {
    if (!is_fake())
        skip();
    assert_int_equal(fake_alive(), *state ? 1 : 0);
}
