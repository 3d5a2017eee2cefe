/* The speed of the exact operator on the device, without copies from and to the host. Exits 77
 * where there is no device. */
#include "exact_scene.cuh"

template <typename F> static double median_ms(cudaStream_t stream, int runs, F work) {
    std::vector<float> times;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int i = -3; i < runs; i++) {
        cudaEventRecord(begin, stream);
        work();
        cudaEventRecord(end, stream);
        need_cuda(cudaEventSynchronize(end));
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (i >= 0)
            times.push_back(ms);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static void measure(dcrf_backend_device *device, size_t width, size_t height, double sigma,
                    double channel_sigma) {
    problem p;
    make_photograph(p, width, height, sigma, channel_sigma, DCRF_NORMALIZE_SYMMETRIC);
    const size_t n = width * height, channels = 21, stride = 24;
    struct exact_operator *op = nullptr;
    const double set_up = median_ms(device->stream, 3, [&] {
        if (op)
            op->base.base.methods->free(&op->base.base);
        op = build(device, p);
    });
    const std::vector<float> y = new_marginals(n, stride);
    float *in = to_device(y), *out = to_device(y);
    double *precise;
    need_cuda(cudaMalloc(&precise, n * channels * sizeof(double)));
    struct dcrf_application application = {};
    application.in = in;
    application.out = out;
    application.channels = channels;
    application.stride = stride;
    application.factor = 1;
    struct dcrf_line line = {};
    line.epsilon = 1.0 / 64;
    line.y = in;
    line.out = out;
    line.channels = channels;
    line.stride = stride;
    const int runs = n < 100000 ? 21 : 9;
    const double apply_ms = median_ms(device->stream, runs, [&] {
        need(op->base.apply_on_device(&op->base, &application, &why));
    });
    application.channels = 1;
    const double one_ms = median_ms(device->stream, runs, [&] {
        need(op->base.apply_on_device(&op->base, &application, &why));
    });
    const double line_ms =
        median_ms(device->stream, runs, [&] { need(exact_line(op, &line, &why)); });
    line.epsilon = 0;
    const double sign_ms =
        median_ms(device->stream, runs, [&] { need(exact_line(op, &line, &why)); });
    const double double_ms = median_ms(device->stream, 3, [&] {
        need(exact_apply_double(op, nullptr, precise, 1,
                                1u << EXACT_IN_DOUBLE | 1u << EXACT_IN_BOTH, &why));
    });
    const double line_double_ms = median_ms(device->stream, 3, [&] {
        need(exact_line_double(op, 1.0 / 64, in, stride, precise, channels, &why));
    });
    printf("%s, 21 labels: %.1f %% of the pairs of tiles, %u parts, %zu MiB\n"
           "  set-up %.2f ms; apply %.3f ms (one channel %.3f ms); line %.3f ms, sign %.3f ms; in "
           "double: one channel %.2f ms, line %.2f ms\n",
           p.name, 100 * shown_fraction(op), op->parts, op->base.base.bytes >> 20, set_up, apply_ms,
           one_ms, line_ms, sign_ms, double_ms, line_double_ms);
    op->base.base.methods->free(&op->base.base);
    cudaFree(in);
    cudaFree(out);
    cudaFree(precise);
}

int main() {
    dcrf_backend_device *device = open_device();
    if (!device)
        return 77;
    measure(device, 320, 213, 80, 13);
    measure(device, 320, 213, 50, 5);
    measure(device, 500, 375, 80, 13);
    return 0;
}
