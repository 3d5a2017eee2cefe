"""Arrays of torch, cupy and jax on a GPU: taken and given without a copy, in their streams, of any layout, and the same
answers as from the host. What is not installed is left out; without a GPU, or with none of them, it skips itself
(status 77). With an argument it also says how long calls take."""

import importlib
import os
import statistics
import sys
import threading
import time
import traceback

import numpy as np

import dcrf

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # jax would take all memory
KERNELS = {"spatial": (3, 3.0), "bilateral": (40, 13, 5.0)}
AGREEMENT = 2e-5  # of marginals after ten updates, CPU and GPU


def scene(height, width, labels=21, seed=0):
    rng = np.random.default_rng(seed)
    truth = (np.arange(width) * labels // width)[None].repeat(height, 0)
    image = (10 * truth[..., None] + rng.normal(0, 6, (height, width, 3)) + 20).clip(0, 255).astype(np.uint8)
    logits = rng.normal(0, 1, (labels, height, width)) + 2 * (truth == np.arange(labels)[:, None, None])
    return image, logits.astype(np.float32)


def check(found, wanted, what):
    difference = np.abs(np.asarray(found.marginals) - wanted.marginals).max()
    labels = (np.asarray(found.labels) != wanted.labels).mean()
    print(f"{what}: |dQ| {difference:.2g}, {100 * labels:.3g} % of labels differ")
    assert isinstance(found.marginals, dcrf.DeviceArray) and difference <= AGREEMENT and labels <= 1e-4, what


def address(array):
    return array.__cuda_array_interface__["data"][0]


def of_torch(torch, image, logits, wanted):
    colours, numbers = torch.tensor(image, device="cuda"), torch.tensor(logits, device="cuda")
    found = dcrf.mean_field(colours, logits=numbers, **KERNELS)
    check(found, wanted, "torch")
    q, labels = torch.from_dlpack(found.marginals), torch.from_dlpack(found.labels)
    assert q.data_ptr() == address(found.marginals) and labels.dtype == torch.int32 and q.device.type == "cuda"
    before = q.clone()
    del found  # the tensor keeps the memory
    others = [dcrf.mean_field(colours, logits=-numbers, **KERNELS) for _ in range(5)]
    assert torch.equal(before, q) and len(others) == 5
    for what, given in {
        "a batch of one": numbers[None],
        "labels last": numbers.permute(1, 2, 0).contiguous(),
        "a view of labels last": numbers.permute(1, 2, 0).contiguous().permute(2, 0, 1),
        "every other element": numbers.repeat_interleave(2, -1)[..., ::2],
        "double": numbers.double(),
        "with a gradient": numbers.clone().requires_grad_(),
    }.items():
        check(dcrf.mean_field(colours.permute(2, 0, 1), logits=given, **KERNELS), wanted, f"torch, {what}")
    for kind in (torch.float16, torch.bfloat16):
        given = numbers.to(kind)
        rounded = dcrf.mean_field(image, logits=given.float().cpu().numpy(), device="cpu", **KERNELS)
        check(dcrf.mean_field(colours, logits=given, **KERNELS), rounded, f"torch, {kind}")
    room, codes = torch.empty_like(numbers), torch.empty(image.shape[:2], dtype=torch.uint8, device="cuda")
    assert dcrf.mean_field(colours, logits=numbers, marginals=room, labels=codes, **KERNELS).marginals is room
    assert torch.equal(room, before) and torch.equal(codes.int(), labels)
    in_a_stream(torch, colours, numbers, wanted)
    together(torch)
    in_threads(torch, colours, numbers, wanted)


def in_a_stream(torch, colours, numbers, wanted):
    """Numbers that are still being made when they are given: a second of multiplications comes before them."""
    stream = torch.cuda.Stream()
    large = torch.rand(8192, 8192, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        late = torch.zeros_like(numbers)
        for _ in range(60):
            large = (large @ large).clamp_(0, 1e-3)
        late.copy_(numbers)
        is_early = not stream.query()
        found = dcrf.mean_field(colours, logits=late, **KERNELS)
    print("the stream was", "still busy" if is_early else "done already: nothing was shown")
    check(found, wanted, "torch, in a stream")


def in_threads(torch, colours, numbers, wanted):
    problems = [{"image": colours, "logits": numbers} for _ in range(24)]
    for found in dcrf.mean_field_many(problems, threads=6, **KERNELS):
        assert np.abs(np.asarray(found.marginals) - wanted.marginals).max() <= AGREEMENT
    # the interpreter is free while the GPU works
    ticks, is_done = [], threading.Event()

    def tick():
        while not is_done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    first = dcrf.mean_field(colours, logits=numbers, iterations=2000, **KERNELS)
    is_done.set()
    thread.join()
    print(f"another thread ran {len(ticks)} times during one call")
    assert first.labels.size and len(ticks) > 100


def together(torch):
    """Problems of one shape in one call: the same bytes as one by one, wherever the arrays are."""
    for height, width, labels in ((41, 41, 2), (60, 80, 21)):
        scenes = [scene(height, width, labels, seed) for seed in range(40)]
        there = [{"image": torch.tensor(image, device="cuda"), "logits": torch.tensor(logits, device="cuda")} for image, logits in scenes]
        here = [{"image": image, "logits": logits} for image, logits in scenes]
        for problems in (there, here):
            alone = [dcrf.mean_field(device="cuda", **problem, **KERNELS) for problem in problems]
            many = dcrf.mean_field_many(iter(problems), threads=2, device="cuda", **KERNELS)
            for one, other in zip(alone, many):
                np.testing.assert_array_equal(np.asarray(one.marginals), np.asarray(other.marginals))
                np.testing.assert_array_equal(np.asarray(one.labels), np.asarray(other.labels))
        kept = torch.from_dlpack(dcrf.mean_field_many(there, **KERNELS)[7].marginals)
        others = dcrf.mean_field_many(there[::-1], **KERNELS)
        np.testing.assert_array_equal(kept.cpu().numpy(), np.asarray(alone[7].marginals))
        assert len(others) == 40
        stacked = {name: torch.stack([problem[name] for problem in there]) for name in ("image", "logits")}
        batch = dcrf.mean_field_batch(stacked["image"], logits=stacked["logits"], **KERNELS)
        for k, one in enumerate(alone):
            np.testing.assert_array_equal(np.asarray(batch.marginals)[k], np.asarray(one.marginals))
            np.testing.assert_array_equal(np.asarray(batch.labels)[k], np.asarray(one.labels))
    print("together: the same bytes as one by one")


def of_cupy(cupy, image, logits, wanted):
    found = dcrf.mean_field(cupy.asarray(image), logits=cupy.asarray(logits), **KERNELS)
    check(found, wanted, "cupy")
    labels = cupy.asarray(found.labels)
    assert labels.data.ptr == address(found.labels)
    np.testing.assert_array_equal(cupy.asnumpy(labels), np.asarray(found.labels))
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(found.marginals)), np.asarray(found.marginals))

    class Interface:  # without DLPack
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    flipped = cupy.asarray(np.ascontiguousarray(logits[:, ::-1]))[:, ::-1]
    check(dcrf.mean_field(Interface(cupy.asarray(image)), logits=Interface(flipped), **KERNELS), wanted, "cupy, interface")


def of_jax(jax, image, logits, wanted):
    found = dcrf.mean_field(jax.numpy.asarray(image), logits=jax.numpy.asarray(logits), **KERNELS)
    check(found, wanted, "jax")
    again = jax.dlpack.from_dlpack(found.marginals)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(found.marginals))


def measure_small(torch):
    for height, width, labels in ((41, 41, 2), (100, 100, 2), (224, 224, 21), (213, 320, 21)):
        image, logits = scene(height, width, labels)
        count = 1024 if width <= 100 else 256
        for what, given in (
            ("GPU", {"image": torch.tensor(image, device="cuda"), "logits": torch.tensor(logits, device="cuda")}),
            ("host", {"image": image, "logits": logits}),
        ):
            rates = []
            for turn in range(3):  # the first one takes memory
                for shapes in (False, True):
                    # an option that differs keeps neighbours apart
                    problems = [{**given, "iterations": 10 if shapes else 10 + k % 2} for k in range(count)]
                    began = time.perf_counter()
                    found = dcrf.mean_field_many(problems, threads=4, device="cuda", **KERNELS)
                    rates.append(count / (time.perf_counter() - began))
                    del found
            stack = torch.stack if what == "GPU" else np.stack
            images, numbers = (stack([given[name]] * count) for name in ("image", "logits"))
            for _ in range(3):
                began = time.perf_counter()
                found = dcrf.mean_field_batch(images, logits=numbers, device="cuda", **KERNELS)
                rate = count / (time.perf_counter() - began)
                del found
            print(f"{width} x {height} x {labels}, {what}, 4 workers: one by one {rates[4]:.0f}, together {rates[5]:.0f}, "
                  f"a batch in one array {rate:.0f} images/s")


def measure(torch):
    for height, width in ((213, 320), (375, 500)):
        image, logits = scene(height, width)
        colours, numbers = torch.tensor(image, device="cuda"), torch.tensor(logits, device="cuda")
        for what, given in (("GPU", (colours, numbers)), ("host", (image, logits))):
            times = []
            for _ in range(30):
                began = time.perf_counter()
                dcrf.mean_field(given[0], logits=given[1], device="cuda", **KERNELS)
                times.append(1e3 * (time.perf_counter() - began))
            print(f"{width} x {height} x 21, arrays on the {what}: {statistics.median(times):.2f} ms a call")
            for workers in (2, 4, 8):
                problems = [{"image": given[0], "logits": given[1]} for _ in range(200)]
                began = time.perf_counter()
                dcrf.mean_field_many(problems, threads=workers, device="cuda", **KERNELS)
                print(f"  {workers} workers: {200 / (time.perf_counter() - began):.0f} images/s")


def main():
    if not dcrf.devices():
        print("skipped: there is no GPU")
        return 77
    image, logits = scene(120, 160)
    wanted = dcrf.mean_field(image, logits=logits, device="cpu", **KERNELS)
    tested = failed = 0
    for name, test in (("torch", of_torch), ("cupy", of_cupy), ("jax.dlpack", of_jax)):
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed")
            continue
        tested += 1
        try:
            test(sys.modules[name.partition(".")[0]], image, logits, wanted)
        except Exception:
            traceback.print_exc()
            failed += 1
    if tested and len(sys.argv) > 1:
        measure(importlib.import_module("torch"))
        measure_small(importlib.import_module("torch"))
    return 1 if failed else 0 if tested else 77


if __name__ == "__main__":
    sys.exit(main())
