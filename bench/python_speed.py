"""The drop-in's speed: mean field, 10 iterations, set-up included, for settings that people publish.

    script/bench-python [--threads N] [--repeats N] [--all-labels] [--image FILE] [--naive]

The picture is a photograph of PASCAL VOC where shared/data/voc lies beside the repository (repeated to the
size), else made: octaves of smooth noise, edges, and grain as a sensor has it; or it is yours (.npy, or
what PIL reads). Photographs with much grain fill the lattice with more vertices and take longer. With --naive the
same is done once by tests/naive_densecrf.c, plain C in one thread in the order of operations of the
original, and the ratio of processor times is given. The probabilities
are like a network's: a few labels share the picture, the others have about 1e-7. With --all-labels
every label is alive everywhere, the worst case for the filters. Each row is measured in a process of
its own; its memory is the most that the process held, Python, numpy and the arrays of the caller
included. Prints a table in Markdown.
"""

import argparse
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

# width, height, labels, spatial (sigma, compat), bilateral (sigma, colour sigma, compat), aim in s
CASES = (
    (500, 375, 21, (3, 3), (80, 13, 10), 0.15),
    (500, 375, 21, (1, 3), (67, 3, 4), 0.35),
    (500, 375, 3, (3, 3), (50, 5, 10), 0.10),
    (640, 480, 81, (1, 3), (67, 3, 4), 1.2),
)
PRESENT = 5
ITERATIONS = 10


def smooth_noise(rng, height, width, cell):
    """Noise on a grid of cells, interpolated linearly."""
    rows, columns = height // cell + 2, width // cell + 2
    values = rng.normal(0, 1, (rows, columns))
    y, x = np.arange(height) / cell, np.arange(width) / cell
    i, j = y.astype(int), x.astype(int)
    fy, fx = (y - i)[:, None], (x - j)[None]
    top = values[i][:, j] * (1 - fx) + values[i][:, j + 1] * fx
    bottom = values[i + 1][:, j] * (1 - fx) + values[i + 1][:, j + 1] * fx
    return top * (1 - fy) + bottom * fy


def make(width, height, labels, all_labels, photograph=None):
    rng = np.random.default_rng(0)
    regions = np.argmax(
        [smooth_noise(rng, height, width, 96) + 0.2 * smooth_noise(rng, height, width, 16)
         for _ in range(min(PRESENT, labels))], axis=0)
    colours = rng.uniform(40, 215, (PRESENT, 3))[regions]
    texture = sum(weight * smooth_noise(rng, height, width, cell)
                  for cell, weight in ((64, 14), (16, 7), (4, 4)))
    image = colours + texture[..., None] + rng.normal(0, 2, (height, width, 3))
    if photograph is not None:
        times = (-(-height // photograph.shape[0]), -(-width // photograph.shape[1]), 1)
        image = np.tile(photograph, times)[:height, :width]
    scores = np.full((labels, height, width), -16, np.float32)
    if all_labels:
        scores[:] = 0
    scores[:PRESENT] = 0
    scores += rng.normal(0, 1, scores.shape).astype(np.float32) * 0.5
    for i in range(min(PRESENT, labels)):
        scores[i] += 4 * (regions == i) + smooth_noise(rng, height, width, 24)
    scores = np.exp(scores - scores.max(0))
    return np.clip(image, 0, 255).astype(np.uint8), scores / scores.sum(0)


ROOT = pathlib.Path(__file__).resolve().parents[1]
PHOTOGRAPH = ROOT.parent / "shared" / "data" / "voc" / "2007_000346.png"


def read_image(path):
    """uint8 (H, W, 3)"""
    if str(path).endswith(".npy"):
        return np.load(path)
    from PIL import Image

    return np.array(Image.open(path).convert("RGB"))


def measure(index, threads, repeats, path, is_naive):
    """In a process of its own: the best time of some."""
    if is_naive:
        sys.path.insert(0, str(ROOT / "tests" / "python"))
        import naive as densecrf

        options = {}
    else:
        from dcrf.pydensecrf import densecrf

        options = {"threads": threads}
    width, height, labels, spatial, bilateral, _ = CASES[index]
    data = np.load(path)
    image, unary = data["image"], data["unary"]
    best = busy = np.inf
    for _ in range(repeats):
        start, busy_start = time.perf_counter(), time.process_time()
        crf = densecrf.DenseCRF2D(width, height, labels, **options)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseGaussian(*spatial)
        crf.addPairwiseBilateral(bilateral[0], bilateral[1], image, bilateral[2])
        crf.inference(ITERATIONS)
        best = min(best, time.perf_counter() - start)
        busy = min(busy, time.process_time() - busy_start)
        del crf
    print(best, busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all-labels", action="store_true")
    parser.add_argument("--image", metavar="FILE", help="'made' for the picture that is made")
    parser.add_argument("--naive", action="store_true", help="time the naive program too")
    parser.add_argument("--measure", nargs=3, metavar=("CASE", "FILE", "WHO"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        case, path, who = options.measure
        measure(int(case), options.threads, options.repeats, path, who == "naive")
        return
    given = options.image or (PHOTOGRAPH if PHOTOGRAPH.exists() else "made")
    photograph = None if given == "made" else read_image(given)

    import dcrf
    from dcrf.pydensecrf.utils import unary_from_softmax

    load = os.getloadavg()[0]
    print(f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
          f"{dcrf._core.cpu()}; Python {platform.python_version()}, numpy {np.__version__}; "
          f"{options.threads} threads; load before {load:.1f}"
          f"{'; all labels alive' if options.all_labels else ''}; picture: {pathlib.Path(given).name}\n")
    naive_head = (" naive, of processor, s | ratio |", "---|---|") if options.naive else ("", "")
    print("| picture, labels | spatial | bilateral | best of "
          f"{options.repeats}, s | of processor, s | aim, s | most memory, MB |{naive_head[0]}\n"
          f"|---|---|---|---|---|---|---|{naive_head[1]}")
    for index, (width, height, labels, spatial, bilateral, aim) in enumerate(CASES):
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            image, probabilities = make(width, height, labels, options.all_labels, photograph)
            np.savez(file, image=image, unary=unary_from_softmax(probabilities))
            file.flush()
            command = [sys.executable, __file__, "--threads", str(options.threads), "--measure", str(index),
                       file.name]
            seconds, busy, megabytes = subprocess.check_output(
                command + ["ours", "--repeats", str(options.repeats)], text=True).split()
            naive = ""
            if options.naive:
                slow = subprocess.check_output(command + ["naive", "--repeats", "1"], text=True).split()[1]
                naive = f" {float(slow):.2f} | {float(slow) / float(busy):.1f} |"
        print(f"| {width} x {height} x {labels} | {spatial[0]}/{spatial[1]} | "
              f"{'/'.join(map(str, bilateral))} | {float(seconds):.3f} | {float(busy):.3f} | {aim} | {float(megabytes):.0f} |{naive}",
              flush=True)


if __name__ == "__main__":
    main()
