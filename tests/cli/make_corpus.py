#!/usr/bin/env python3
"""Write the seed files of a fuzz target, or run its short fixed run on them.

    make_corpus.py npy|png FOLDER            write the seeds
    make_corpus.py npy|png --smoke PROGRAM   write them somewhere and run PROGRAM on them
"""

import os
import subprocess
import sys
import tempfile

import formats

ROUNDS = 400


def npy_seeds():
    for descr in ("|b1", "|u1", ">i2", "<u4", "<i8", "<f2", ">f4", "<f8"):
        for shape in ((6,), (2, 3), (1, 2, 3), (3, 1, 2, 1)):
            values = list(range(6)) if descr != "|b1" else [True, False] * 3
            yield formats.npy(values, shape, descr, fortran=len(shape) == 2)
    yield formats.npy([1.0] * 4, (2, 2), version=(2, 0))
    yield formats.npy([1.0] * 4, (2, 2), version=(3, 0))
    for _, data, _ in formats.malformed_npy((2, 3)):
        yield data


def png_seeds():
    palette = [(9 * i, 5 * i, 255 - 7 * i) for i in range(16)]
    for interlace in (False, True):
        for colour, depths in ((formats.GREY, (1, 2, 4, 8, 16)), (formats.RGB, (8, 16)),
                               (formats.PALETTE, (1, 2, 4, 8)), (formats.GREY_ALPHA, (8, 16)),
                               (formats.RGBA, (8, 16))):
            for depth in depths:
                limit = min(2**depth, 16 if colour == formats.PALETTE else 2**16)
                rows = [[tuple((x * 7 + y * 3 + c) % limit for c in range(formats.CHANNELS[colour]))
                         for x in range(9)] for y in range(10)]
                used = palette[:limit] if colour == formats.PALETTE else None
                yield formats.png(rows, depth, colour, used, interlace)
    for _, data, _ in formats.malformed_png(5, 4):
        yield data


def write_seeds(kind, folder):
    paths = []
    for number, data in enumerate(npy_seeds() if kind == "npy" else png_seeds()):
        paths.append(os.path.join(folder, "seed%03d.%s" % (number, kind)))
        with open(paths[-1], "wb") as stream:
            stream.write(data)
    return paths


def main():
    kind, target = sys.argv[1], sys.argv[2]
    if target != "--smoke":
        os.makedirs(target, exist_ok=True)
        write_seeds(kind, target)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.argv[3], str(ROUNDS), *write_seeds(kind, folder)]
        return subprocess.run(command, timeout=300, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
