/* The lists of a data set: splits/SPLIT.txt (even first byte) or classes.txt, in an otherwise valid
 * folder. Refused with a message, or names that can be written. */
#include "check.h"
#include "dataset/dataset.h"
#include "target.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* In memory: on a disk, replacing a file would wait for I/O. */
static char folder[] = "/dev/shm/dcrf-fuzz-XXXXXX";

static bool put(const char *name, const void *data, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "wb");
    if (!stream)
        return false;
    const bool written = size == 0 || fwrite(data, size, 1, stream) == 1;
    return fclose(stream) == 0 && written;
}

static void remove_folder(void) {
    static const char *const names[] = {
        "splits/s.txt", "classes.txt", "dataset.json", "splits", "images", "unaries", ""};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
}

static bool make_folder(void) {
    static const char *const parts[] = {"splits", "images", "unaries"};
    static bool is_made;
    char path[128];
    if (is_made)
        return true;
    if (!mkdtemp(folder))
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        if (mkdir(path, 0700) != 0)
            return false;
    }
    atexit(remove_folder);
    return is_made = put("dataset.json", "{\"labels\": 3}", 13);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dataset found;
    cli_problem problem = {0, ""};
    if (size < 1 || !make_folder())
        return 0;
    const bool is_split = data[0] % 2 == 0;
    if (!put("splits/s.txt", is_split ? data + 1 : (const uint8_t *)"a\n",
             is_split ? size - 1 : 2) ||
        !put("classes.txt", is_split ? (const uint8_t *)"x\ny\nz\n" : data + 1,
             is_split ? 6 : size - 1))
        return 0;
    if (dataset_open(&found, folder, "s", &problem)) {
        for (size_t i = 0; i < found.count; i++)
            fuzz_check(found.items[i].name && found.items[i].name[0] &&
                       !strchr(found.items[i].name, '\n'));
        for (size_t i = 0; i < found.labels; i++)
            fuzz_check(found.classes[i] && !strchr(found.classes[i], '\n'));
    } else {
        fuzz_check_refused(&problem);
    }
    dataset_free(&found);
    return 0;
}
