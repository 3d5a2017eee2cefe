#!/usr/bin/env python3
"""Disparities of a rectified stereo pair, and a proof of how good they are: numpy and dcrf alone.

    stereo.py LEFT.png RIGHT.png -o disparity.png [--disparities 60] [--method lp] [--picture colours.png]

Every pixel of the reference picture has one label per disparity. Its unary energy compares colours and horizontal
gradients with the pixel that many columns away in the other picture; pairs of pixels that are near and alike pay for
different disparities, by min(|difference|, T). The disparities are written as a 16-bit PNG, 256 steps a pixel.

Pictures are PNG files of 8 bits, not interlaced.
"""

import argparse
import struct
import sys
import zlib

import numpy as np

import dcrf

# Chosen on two pairs, each by the errors on the other (docs/howto/stereo.md).
COLOUR, MOST_COLOUR = 0.15, 20
GRADIENT, MOST_GRADIENT = 1.05, 6
SPATIAL, BILATERAL = (2, 0.3), (12, 8, 2)
TRUNCATION = 4


# ---- pictures


def read_png(path):
    """An 8-bit PNG as an array of floats, (height, width, 3)."""
    with open(path, "rb") as stream:
        data = stream.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        sys.exit(f"{path}: not a PNG file")
    place, packed, header = 8, b"", None
    while place + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", data[place + 8 : place + 21])
        if kind == b"IDAT":
            packed += data[place + 8 : place + 8 + length]
        place += length + 12
    width, height, depth, colour, _, _, interlace = header
    channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(colour)
    if depth != 8 or interlace or channels is None:
        sys.exit(f"{path}: only PNG files of 8 bits, grey or RGB, not interlaced")
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    picture = np.zeros((height, width, channels), np.uint8)
    above = np.zeros((width, channels), np.int32)
    for y, row in enumerate(rows):
        above = unfilter(row[0], row[1:].reshape(width, channels).astype(np.int32), above)
        picture[y] = above
    if channels < 3:
        return np.repeat(picture[..., :1], 3, axis=2).astype(np.float32)
    return picture[..., :3].astype(np.float32)


def unfilter(kind, row, above):
    """One row of a PNG as it was before the filter."""
    if kind == 0:
        return row
    if kind == 1:
        return np.cumsum(row, axis=0) & 255
    if kind == 2:
        return (row + above) & 255
    out = np.zeros_like(row)
    left = corner = np.zeros(row.shape[1], np.int32)
    for x in range(len(row)):
        if kind == 3:
            guess = (left + above[x]) // 2
        else:
            a, b, c = np.abs(above[x] - corner), np.abs(left - corner), np.abs(left + above[x] - 2 * corner)
            guess = np.where((a <= b) & (a <= c), left, np.where(b <= c, above[x], corner))
        corner = above[x]
        left = out[x] = (row[x] + guess) & 255
    return out


def write_png(path, picture):
    """8 or 16 bits, grey (H, W) or colours (H, W, 3)."""
    height, width = picture.shape[:2]
    depth = 8 * picture.dtype.itemsize
    lines = picture.astype(picture.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    raw = np.hstack([np.zeros((height, 1), np.uint8), lines]).tobytes()

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, depth, 2 if picture.ndim == 3 else 0, 0, 0, 0)
    with open(path, "wb") as stream:
        stream.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)))
        stream.write(chunk(b"IEND", b""))


def in_colours(disparity, most):
    """Far is blue, near is red."""
    t = np.clip(disparity / max(most, 1), 0, 1)[..., None]
    stops = np.array([[30, 30, 110], [30, 120, 200], [90, 200, 150], [250, 220, 80], [220, 60, 40]], float)
    place = t[..., 0] * (len(stops) - 1)
    low = np.minimum(place.astype(int), len(stops) - 2)
    part = (place - low)[..., None]
    return np.rint(stops[low] * (1 - part) + stops[low + 1] * part).astype(np.uint8)


# ---- the model


def gradient(picture):
    """Half the difference of the neighbours to the right and to the left, of the brightness."""
    grey = picture @ np.array([0.299, 0.587, 0.114], np.float32)
    wide = np.pad(grey, ((0, 0), (1, 1)), mode="edge")
    return (wide[:, 2:] - wide[:, :-2]) / 2


def matching_costs(reference, other, disparities, direction):
    """Unary energies (H, W, disparities): pixel x of the reference is at x + direction * d of the other."""
    height, width = reference.shape[:2]
    costs = np.empty((height, width, disparities), np.float32)
    gradients = gradient(reference), gradient(other)
    for d in range(disparities):
        there = np.clip(np.arange(width) + direction * d, 0, width - 1)
        colour = np.abs(reference - other[:, there]).mean(axis=2)
        change = np.abs(gradients[0] - gradients[1][:, there])
        costs[..., d] = COLOUR * np.minimum(colour, MOST_COLOUR) + GRADIENT * np.minimum(change, MOST_GRADIENT)
    return costs


def stereo_model(reference, costs, compatibility=f"truncated-linear:{TRUNCATION}", spatial=SPATIAL, bilateral=BILATERAL, **more):
    return dcrf.Model(reference, unary=costs, labels_axis=-1, spatial=spatial, bilateral=bilateral, compatibility=compatibility, **more)


# ---- the command


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("left")
    parser.add_argument("right")
    parser.add_argument("-o", "--output", required=True, help="disparities, 16-bit PNG, 256 steps a pixel")
    parser.add_argument("--picture", help="the same in colours")
    parser.add_argument("--disparities", type=int, default=60)
    parser.add_argument("--method", choices=("mf", "qp", "lp"), default="mf")
    parser.add_argument("--reference", choices=("left", "right"), default="left")
    parser.add_argument("--compatibility", default=f"truncated-linear:{TRUNCATION}")
    parser.add_argument("--time-limit", type=float, default=600, help="of the lp, in seconds")
    options = parser.parse_args()
    left, right = read_png(options.left), read_png(options.right)
    if left.shape != right.shape:
        sys.exit(f"the pictures have different sizes: {left.shape[:2]} and {right.shape[:2]}")
    reference, other, direction = (left, right, -1) if options.reference == "left" else (right, left, 1)
    costs = matching_costs(reference, other, options.disparities, direction)
    model = stereo_model(reference, costs, options.compatibility)
    settings = {"gap": 1e-3, "time_limit_s": options.time_limit} if options.method == "lp" else {}
    result = model.solve(options.method, **settings)
    print(f"energy {result.energy:.1f}" + (f", at most {100 * result.relative_gap:.3f} % above the lowest" if options.method == "lp" else ""))
    write_png(options.output, (256 * result.labels.astype(np.uint32)).astype(np.uint16))
    if options.picture:
        write_png(options.picture, in_colours(result.labels, options.disparities - 1))


if __name__ == "__main__":
    main()
