#include "io/room.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t asked_for = SIZE_MAX;

void room_limit(size_t bytes) {
    asked_for = bytes;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t times(uint64_t count, uint64_t bytes) {
    return bytes > 0 && count > SIZE_MAX / bytes ? SIZE_MAX : (size_t)(count * bytes);
}

/* The sum of these lines of /proc/meminfo; SIZE_MAX if there are none. */
static size_t machine_bytes(void) {
    char line[128];
    uint64_t kilobytes, sum = 0;
    bool found = false;
    FILE *stream = fopen("/proc/meminfo", "r");
    while (stream && fgets(line, sizeof line, stream))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) == 1 ||
            sscanf(line, "SwapFree: %" SCNu64, &kilobytes) == 1) {
            found = true;
            sum += kilobytes;
        }
    if (stream)
        fclose(stream);
    return found ? times(sum, 1024) : SIZE_MAX;
}

/* The limit of the control group; "max" means no limit. */
static size_t group_bytes(void) {
    uint64_t bytes;
    FILE *stream = fopen("/sys/fs/cgroup/memory.max", "r");
    const bool found = stream && fscanf(stream, "%" SCNu64, &bytes) == 1;
    if (stream)
        fclose(stream);
    return found ? times(bytes, 1) : SIZE_MAX;
}

/* What ulimit -v leaves. */
static size_t address_bytes(void) {
    struct rlimit limit;
    uint64_t pages = 0;
    const long page_bytes = sysconf(_SC_PAGE_SIZE);
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || page_bytes <= 0)
        return SIZE_MAX;
    FILE *stream = fopen("/proc/self/statm", "r");
    if (stream && fscanf(stream, "%" SCNu64, &pages) != 1)
        pages = 0;
    if (stream)
        fclose(stream);
    const size_t taken = times(pages, (uint64_t)page_bytes), whole = times(limit.rlim_cur, 1);
    return whole > taken ? whole - taken : 0;
}

size_t room_bytes(void) {
    return smaller(smaller(asked_for, machine_bytes()), smaller(group_bytes(), address_bytes()));
}

bool room_check(size_t bytes, const char *file, cli_problem *problem) {
    const size_t room = room_bytes();
    return bytes <= room ||
           failure(problem, file, "takes about %zu MiB when it is decoded, and there are %zu%s",
                   (bytes >> 20) + 1, room >> 20, room == asked_for ? " by --memory" : " free");
}
