#!/usr/bin/env python3
"""Draw the files that the pages' examples use: python3 docs/site/draw.py FOLDER (after script/build).

The photograph and the classifiers' opinions are those of the demonstration (examples/scene.c); strokes, a rough mask, a
volume, a stereo pair and a small data set are made here. Everything follows from fixed seeds.
"""
import gzip
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOUSE = 1


def save(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def scene(folder):
    subprocess.run([ROOT / "build/examples/scene", folder], check=True, stdout=subprocess.DEVNULL)
    (folder / "image.png").rename(folder / "photo.png")
    unary = np.load(folder / "unary.npy")
    np.save(folder / "logits.npy", -unary)
    return np.asarray(Image.open(folder / "photo.png").convert("RGB")), np.asarray(Image.open(folder / "truth.png")), unary


def thick(mask, pixels):
    """The mask grown by so many pixels, in squares."""
    grown = mask.copy()
    for dy in range(-pixels, pixels + 1):
        for dx in range(-pixels, pixels + 1):
            grown |= np.roll(mask, (dy, dx), (0, 1))
    return grown


def strokes(folder, photo):
    """Two lines on the house, one on what is around it."""
    inside, outside = np.zeros(photo.shape[:2], bool), np.zeros(photo.shape[:2], bool)
    inside[80, 42:82] = inside[108, 42:82] = True
    outside[30, 20:225] = outside[140, 12:150] = outside[60:120, 130] = outside[75:110, 15] = True
    inside, outside = thick(inside, 1), thick(outside, 1)
    drawn = np.zeros_like(photo)
    drawn[inside], drawn[outside] = (240, 180, 40), (40, 130, 220)
    save(folder / "strokes.png", drawn)
    save(folder / "strokes-on-photo.png", np.where(drawn.any(2, keepdims=True), drawn, photo // 2 + 60).astype(np.uint8))


def rough_mask(folder, truth, photo):
    """The house, drawn too large and in steps of eight pixels."""
    blocks = thick(truth == HOUSE, 4)[::8, ::8].repeat(8, 0).repeat(8, 1)[: truth.shape[0], : truth.shape[1]]
    save(folder / "rough.png", (blocks * 255).astype(np.uint8))
    tint = np.where(blocks[..., None], photo // 2 + np.array([115, 70, 0], np.uint8), photo)
    save(folder / "rough-on-photo.png", tint.astype(np.uint8))


def nifti(path, values, spacing):
    """A NIfTI-1 file of float32; axes of `values` are (labels,) z, y, x."""
    shape = values.shape[::-1]
    header = bytearray(348)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, len(shape), *shape, *[1] * (7 - len(shape)))
    struct.pack_into("<2h", header, 70, 16, 32)
    struct.pack_into("<8f", header, 76, 1, *spacing, *[1] * (7 - len(spacing)))
    struct.pack_into("<2f", header, 108, 352, 1)
    header[123] = 2  # millimetres
    header[344:348] = b"n+1\0"
    path.write_bytes(gzip.compress(bytes(header) + bytes(4) + values.astype("<f4").tobytes(), mtime=0))


def volume(folder):
    """A ball and a bar in a noisy scan whose slices are three times as thick as its pixels."""
    rng = np.random.default_rng(3)
    z, y, x = np.mgrid[:20, :64, :64]
    inside = (((z - 10) * 3) ** 2 + (y - 26) ** 2 + (x - 26) ** 2 < 17**2) | ((abs(y - 50) < 5) & (abs(x - 40) < 18) & (z > 4))
    likely = np.clip(0.5 + 0.22 * np.where(inside, 1, -1) + rng.normal(0, 0.2, inside.shape), 0.03, 0.97)
    scan = 200 * inside + rng.normal(0, 45, inside.shape)
    nifti(folder / "scan.nii.gz", scan, (1, 1, 3))
    save(folder / "scan-slice.png", np.clip(scan[10] / 1.6 + 60, 0, 255).astype(np.uint8))
    nifti(folder / "opinion.nii.gz", np.stack([1 - likely, likely]), (1, 1, 3))


def stereo(folder):
    """A slanted floor and a box in front of it, seen by two cameras."""
    rng = np.random.default_rng(5)
    height, width = 60, 90
    texture = rng.integers(30, 226, (height, width + 20, 3))
    disparity = np.repeat((np.arange(height) // 15)[:, None] + 2, width, 1)
    disparity[18:42, 30:60] = 9
    x = np.arange(width)[None, :] + np.zeros((height, 1), int)
    rows = np.arange(height)[:, None]
    save(folder / "right.png", texture[rows, x + disparity].astype(np.uint8))
    save(folder / "left.png", texture[:, :width].astype(np.uint8))


def data_set(folder, photo, truth, unary):
    """Four parts of the scene, two to tune on and two to test on."""
    names = {"val": ["a", "b"], "test": ["c", "d"]}
    places = {"a": (0, 0), "b": (80, 0), "c": (0, 120), "d": (80, 120)}
    for name, (top, left) in places.items():
        part = np.s_[top : top + 80, left : left + 120]
        save(folder / "images" / f"{name}.png", photo[part])
        save(folder / "gt" / f"{name}.png", truth[part].astype(np.uint8))
        (folder / "unaries").mkdir(exist_ok=True)
        np.save(folder / "unaries" / f"{name}.npy", unary[part])
    (folder / "splits").mkdir()
    for split, members in names.items():
        (folder / "splits" / f"{split}.txt").write_text("\n".join(members) + "\n")
    (folder / "dataset.json").write_text('{"labels": 5, "unary": {"kind": "energies"}}\n')
    (folder / "classes.txt").write_text("tree\nhouse\nsky\nhill\nroad\n")
    shutil.copy(folder.parent / "palette.txt", folder)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    photo, truth, unary = scene(folder)
    strokes(folder, photo)
    rough_mask(folder, truth, photo)
    volume(folder)
    stereo(folder)
    data_set(folder / "dataset", photo, truth, unary)


if __name__ == "__main__":
    main()
