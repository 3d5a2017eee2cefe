#include "solver/trace.h"

#include "core/memory.h"

#define MOST_MOMENTS 16384
#define LEAST_MOMENTS 16
/* Of a run, besides the iterations: candidates, the end and the proof. */
#define OTHER_MOMENTS (DCRF_CANDIDATE_KINDS + 2)

bool dcrf_trace_init(struct dcrf_trace *trace, size_t iterations) {
    const size_t most = MOST_MOMENTS - OTHER_MOMENTS;
    size_t room = (iterations < most ? iterations : most) + OTHER_MOMENTS;
    if (room < LEAST_MOMENTS)
        room = LEAST_MOMENTS;
    *trace = (struct dcrf_trace){
        .moments = dcrf_allocate(room, sizeof *trace->moments), .room = room, .every = 1};
    return trace->moments != NULL;
}

void dcrf_trace_clear(struct dcrf_trace *trace) {
    dcrf_release(trace->moments);
    *trace = (struct dcrf_trace){0};
}

void dcrf_trace_add(struct dcrf_trace *trace, const dcrf_moment *moment) {
    if (!trace->moments || trace->seen++ % trace->every != 0)
        return;
    if (trace->count == trace->room) {
        for (size_t k = 0; 2 * k < trace->count; k++)
            trace->moments[k] = trace->moments[2 * k];
        trace->count = (trace->count + 1) / 2;
        trace->every *= 2;
        if ((trace->seen - 1) % trace->every != 0)
            return;
    }
    trace->moments[trace->count++] = *moment;
}
