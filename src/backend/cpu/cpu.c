#include "backend/cpu/cpu.h"

const struct dcrf_backend dcrf_backend_cpu = {
    .version = DCRF_BACKEND_VERSION,
    .iterate = &dcrf_cpu_iterate,
    .lp = &dcrf_cpu_lp,
    .flow = &dcrf_cpu_flow,
    .moves = &dcrf_cpu_moves,
};
