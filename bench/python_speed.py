"""The drop-in's speed: mean field, 10 iterations, set-up included, for settings that people publish.

    script/bench-python [--repeats N] [--few-labels] [--image FILE] [--save]

The pictures are two photographs of PASCAL VOC, one of them with much grain, where shared/data/voc lies beside the
repository; else one is made: octaves of smooth noise, edges, and grain as a sensor has it. --image takes yours (.npy,
or what PIL reads). Grain fills the lattice with vertices and takes longer.

The reference of the same run is tests/oracle/naive_densecrf.c: plain C in one thread, compiled with -O3 for any x86-64, in the
order of operations of the original. Times of processor are compared, which others on the machine disturb least; the
time that passes is given for two threads. Every label is alive everywhere, the worst case for the filters; with
--few-labels five share the picture and the others have about 1e-7, as after a sharp network. Each figure is the best of
N (default 3; the naive program: of 2) and measured in a process of its own; memory is the most that the process held
with one thread, Python, numpy and the arrays of the caller included. --save writes docs/results/python.md.
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

# labels, spatial (sigma, compat), bilateral (sigma, colour sigma, compat)
CASES = (
    (21, (3, 3), (80, 13, 10)),
    (21, (1, 3), (67, 3, 4)),
    (3, (3, 3), (50, 5, 10)),
    (81, (1, 3), (67, 3, 4)),
)
PRESENT = 5
ITERATIONS = 10
ROOT = pathlib.Path(__file__).resolve().parents[1]
PHOTOGRAPHS = [ROOT.parent / "shared" / "data" / "voc" / f"{name}.png" for name in ("2007_000129", "2007_000346")]
MADE = "a made picture"


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


def make_regions(rng, height, width, count):
    return np.argmax(
        [smooth_noise(rng, height, width, 96) + 0.2 * smooth_noise(rng, height, width, 16)
         for _ in range(count)], axis=0)


def make_picture(height=375, width=500):
    rng = np.random.default_rng(0)
    colours = rng.uniform(40, 215, (PRESENT, 3))[make_regions(rng, height, width, PRESENT)]
    texture = sum(weight * smooth_noise(rng, height, width, cell)
                  for cell, weight in ((64, 14), (16, 7), (4, 4)))
    image = colours + texture[..., None] + rng.normal(0, 4, (height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def make_probabilities(height, width, labels, few_labels):
    rng = np.random.default_rng(1)
    regions = make_regions(rng, height, width, min(PRESENT, labels))
    scores = np.full((labels, height, width), -16 if few_labels else 0, np.float32)
    scores[:PRESENT] = 0
    scores += rng.normal(0, 0.5, scores.shape).astype(np.float32)
    for i in range(min(PRESENT, labels)):
        scores[i] += (4 if few_labels else 2) * (regions == i)
    scores = np.exp(scores - scores.max(0))
    return scores / scores.sum(0)


def read_image(path):
    """uint8 (H, W, 3)"""
    if str(path).endswith(".npy"):
        return np.load(path)
    from PIL import Image

    return np.array(Image.open(path).convert("RGB"))


def measure(index, threads, repeats, path):
    """In a process of its own: the best times of some. No threads: the naive program."""
    if threads == 0:
        sys.path.insert(0, str(ROOT / "tests" / "python"))
        import naive as densecrf

        options = {}
    else:
        from dcrf.pydensecrf import densecrf

        options = {"threads": threads}
    labels, spatial, bilateral = CASES[index]
    data = np.load(path)
    image, unary = data["image"], data["unary"]
    best = busy = np.inf
    for _ in range(repeats):
        start, busy_start = time.perf_counter(), time.process_time()
        crf = densecrf.DenseCRF2D(image.shape[1], image.shape[0], labels, **options)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseGaussian(*spatial)
        crf.addPairwiseBilateral(bilateral[0], bilateral[1], image, bilateral[2])
        crf.inference(ITERATIONS)
        best = min(best, time.perf_counter() - start)
        busy = min(busy, time.process_time() - busy_start)
        del crf
    print(best, busy, most_memory_mb())


def most_memory_mb():
    """Of this program alone: what getrusage says begins with what the process had before."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def describe(options):
    import dcrf

    return (f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
            f"{dcrf._core.cpu()}; Python {platform.python_version()}, numpy {np.__version__}; load before "
            f"{os.getloadavg()[0]:.1f}; {'few labels' if options.few_labels else 'all labels'} alive; "
            f"best of {options.repeats}\n")


def rows(name, image, options):
    from dcrf.pydensecrf.utils import unary_from_softmax

    height, width = image.shape[:2]
    for index, (labels, spatial, bilateral) in enumerate(CASES):
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            probabilities = make_probabilities(height, width, labels, options.few_labels)
            np.savez(file, image=image, unary=unary_from_softmax(probabilities))
            file.flush()

            def run(threads, repeats, path=file.name, case=index):
                command = [sys.executable, __file__, "--measure", str(case), str(threads), str(repeats), path]
                return [float(word) for word in subprocess.check_output(command, text=True).split()]

            one, two, naive = run(1, options.repeats), run(2, options.repeats), run(0, min(2, options.repeats))
        yield (f"| {name if index == 0 else ''} | {labels} | {spatial[0]}/{spatial[1]} | {'/'.join(map(str, bilateral))} | "
               f"{naive[1]:.3f} | {one[1]:.3f} | {naive[1] / one[1]:.1f} | {two[0]:.3f} | {naive[1] / two[0]:.1f} | "
               f"{one[2]:.0f} |")


HEAD = ("| picture | labels | spatial | bilateral | naive, CPU s | one thread, CPU s | ratio | "
        "two threads, s wall time | ratio | memory, MB |\n|---|---|---|---|---|---|---|---|---|---|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--few-labels", action="store_true")
    parser.add_argument("--image", metavar="FILE", help="'made' for the picture that is made")
    parser.add_argument("--save", action="store_true", help="write docs/results/python.md, all and few labels alive")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        case, threads, repeats, path = options.measure
        measure(int(case), int(threads), int(repeats), path)
        return
    paths = [options.image] if options.image else [path for path in PHOTOGRAPHS if path.exists()] or ["made"]
    lines = []

    def show(line):
        print(line, flush=True)
        lines.append(line)

    for few_labels in (False, True) if options.save else (options.few_labels,):
        options.few_labels = few_labels
        show(describe(options))
        show(HEAD)
        for path in paths:
            image = make_picture() if path == "made" else read_image(path)
            name = MADE if path == "made" else pathlib.Path(path).stem
            for line in rows(f"{name}, {image.shape[1]} x {image.shape[0]}", image, options):
                show(line)
        show("")
    if options.save:
        text = (f"# python\n\nMean field through the drop-in for pydensecrf, {ITERATIONS} iterations, set-up included, next to the "
                f"naive program (tests/oracle/naive_densecrf.c). Measured on {time.strftime('%Y-%m-%d')} by "
                "`script/bench-python --save`; docs/notes/speed.md says what the figures mean.\n\n")
        (ROOT / "docs" / "results" / "python.md").write_text(text + "\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
