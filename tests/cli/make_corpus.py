#!/usr/bin/env python3
"""Write the seed files of a fuzz target, or run its short fixed run on them.

    make_corpus.py FORMAT FOLDER            write the seeds
    make_corpus.py FORMAT --smoke PROGRAM   write them somewhere and run PROGRAM on them

FORMAT is bmp, webp, one of SEEDS below.
"""

import gzip
import io
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

import bitmaps
import formats
import pictures
import volumes

ROUNDS = 300


def npy_seeds():
    for descr in ("|b1", "|u1", ">i2", "<u4", "<i8", "<f2", ">f4", "<f8"):
        for shape in ((6,), (2, 3), (1, 2, 3), (3, 1, 2, 1)):
            values = list(range(6)) if descr != "|b1" else [True, False] * 3
            yield formats.npy(values, shape, descr, fortran=len(shape) == 2)
    yield formats.npy([1.0] * 4, (2, 2), version=(2, 0))
    yield formats.npy([1.0] * 4, (2, 2), version=(3, 0))
    for _, data, _ in formats.malformed_npy((2, 3)):
        yield data


def palette_seeds():
    yield b"#010203\n#FA8007\r\n"
    yield b"GIMP Palette\nName: mine\nColumns: 3\n#\n  1   2   3\tfirst\n250 128   7\n"
    for data, _ in formats.MALFORMED_PALETTES:
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


def packed(numbers):
    """Numbers below 64 as a certificate has them: differences, and no runs."""
    differences = [b - a for a, b in zip([0, *numbers], numbers)]
    return b"".join(bytes([2 * d if d > 0 else -2 * d - 1]) if d else b"\0\0" for d in differences)


def certificate_seeds():
    """Behind the magic and without the checksum, which are the target's; some with cuts."""
    for n, labels, rounds, mixtures, cliques, cuts in ((1, 1, 0, 0, 0, None), (4, 2, 1, 0, 0, None), (5, 3, 2, 1, 1, None), (6, 2, 1, 2, 0, None),
                                                       (4, 2, 0, 1, 0, 0), (5, 3, 0, 1, 1, 2), (6, 7, 0, 2, 0, 9)):
        cells = packed([a * 7 % 50 for a in range(n)])
        point = struct.pack("<ddIII", 0.5, 0.25, 14, 208, labels) + struct.pack(f"<{labels}H", *range(labels)) + cells * labels
        out = struct.pack("<II7Q", 2 if cuts is None else 3, n % 2, n, labels, 1, cliques, rounds, 1, mixtures) + struct.pack("<dd", 2, 1) + bytes(64)
        out += struct.pack("<dII", 0.5, 1, 2) + bytes(64) + struct.pack("<2d", 0.1, 0.1)
        if cuts is not None:  # the sets have at most seven labels
            out += struct.pack("<I", cuts) + b"".join(struct.pack("<dB", 0.5, c % 2**labels) for c in range(cuts))
        out += struct.pack(f"<{rounds}d", *[0.25] * rounds)
        out += packed([a % labels for a in range(n)]) + packed([a % (rounds + 1) for a in range(n)])
        out += struct.pack("<QH", 1, labels - 1) + cells
        for _ in range(mixtures):
            out += struct.pack("<III", 0, 2, cliques) + 2 * point + cliques * labels * cells
        yield out


def verify_seeds():
    """A model and places that are damaged: every kind of each."""
    for model in range(32):
        yield bytes([model])
        for place in range(8, 1000, 121):
            yield bytes([model, place % 256, place // 256, place % 4 + 64 * (place % 2), place % 9])


def dataset_seeds():
    yield b'{"labels": 2}'
    for kind in (b"energies", b"probabilities", b"logits"):
        yield (b'{"labels": 21, "void": 255, "unary": {"kind": "' + kind +
               b'", "energy_per_unit": 0.05}}')
    for data, _ in formats.MALFORMED_DATASETS:
        yield data


def bmp_seeds():
    rows = [[(x * 7 % 256, y * 3, 9) for x in range(9)] for y in range(5)]
    numbers = [[(x + y) % 2 for x in range(9)] for y in range(5)]
    palette = [(i, 255 - i, i // 2) for i in range(256)]
    for top_down in (False, True):
        yield bitmaps.bmp(rows, top_down=top_down)
        yield bitmaps.bmp(rows, 32, top_down=top_down)
        yield bitmaps.bmp([[31 * v << 5 for v in row] for row in numbers], 16, top_down=top_down)
        for bits in (1, 4, 8):
            yield bitmaps.bmp(numbers, bits, palette[:2**bits], top_down=top_down)
    yield bitmaps.bmp([[v << 20 for v in row] for row in numbers], 32, masks=(0xff << 20, 0xff << 10, 0xff),
                      compression=bitmaps.MASKS)
    for _, data, _ in bitmaps.malformed_bmp(5, 4):
        yield data


def webp_seeds():
    yield bitmaps.LOSSLESS_WEBP
    yield bitmaps.LOSSY_WEBP
    for _, data, _ in bitmaps.malformed_webp():
        yield data


def jpeg_seeds():
    yield pictures.jpeg([(10, 20, 30), (200, 100, 50), (0, 255, 128), (77, 77, 77)], 2)
    yield pictures.jpeg([(10,), (200,), (0,), (255,), (128,), (3,)], 3)
    for _, data, _ in pictures.malformed_jpeg():
        yield data


GEO = {33550: (pictures.DOUBLE, [0.5, 0.5, 0.0]), 33922: (pictures.DOUBLE, [0.0, 0.0, 0.0, 5e5, 5.4e6, 0.0]),
       34735: (pictures.SHORT, [1, 1, 0, 1, 1025, 0, 1, 2]), 34737: (pictures.ASCII, list(b"WGS 84|\0")),
       42113: (pictures.ASCII, list(b"-9999\0"))}


def geo_seeds():
    rows = [[(x * 9, y * 8, 7) for x in range(5)] for y in range(4)]
    for order in "<>":
        yield pictures.tiff(rows, order=order, fields=GEO)
    yield pictures.tiff(rows, fields={34264: (pictures.DOUBLE, [1.0] * 16)})
    yield b"0.25\n0.01\n-0.02\n-0.25\n1000.5\n2000.25\n"
    yield b"1 2 3 4 5"


def pnm_seeds():
    for kind in range(1, 7):
        for largest in (1,) if kind in (1, 4) else (1, 255, 1000, 65535):
            rows = [[tuple((x * 7 + y * 3 + c) % (largest + 1) for c in range(1 + 2 * (kind % 3 == 0)))
                     for x in range(9)] for y in range(5)]
            yield pictures.pnm(rows, kind, largest)
    for _, data, _ in pictures.malformed_pnm(5, 4):
        yield data


def tiff_seeds():
    for order in "<>":
        for channels in (1, 2, 3, 4):
            for bits in (1, 2, 4, 8, 16) if channels == 1 else (8, 16):
                rows = [[tuple((x * 7 + y * 3 + c) % 2**bits for c in range(channels))
                         for x in range(20)] for y in range(18)]
                kind = pictures.TIFF_RGB if channels > 2 else pictures.BLACK_IS_ZERO
                for compression in (1, 8, 32773):
                    yield pictures.tiff(rows, bits, kind, order, compression, rows=7)
                yield pictures.tiff(rows, bits, kind, order, 1, tile=(16, 16))
                yield pictures.tiff(rows, bits, kind, order, 8, planar=True)
    palette = [(i, 255 - i, i // 2) for i in range(256)]
    yield pictures.tiff([[(9 * x,) for x in range(20)]] * 3, 8, pictures.TIFF_PALETTE,
                        palette=palette)
    for _, data, _ in pictures.malformed_tiff(5, 4):
        yield data
    for code in pictures.DEEP:
        for order in "<>":
            yield pictures.tiff([[(x * 9, y * 8, 7) for x in range(5)] for y in range(4)], code, order=order, fields=GEO)


def nifti_seeds():
    for datatype in volumes.CODE:
        for size in ((3, 2, 2), (2, 2, 2, 3), (5, 4), (7,)):
            count = 1
            for extent in size:
                count *= extent
            values = [i % 100 for i in range(count)]
            yield volumes.nifti(values, size, datatype, "<")
            yield volumes.nifti(values, size, datatype, ">", slope=0.5, intercept=3)
            yield volumes.nifti(values, size, datatype, "<", version=2)
            yield gzip.compress(volumes.nifti(values, size, datatype), mtime=0)
    for _, data, _ in volumes.malformed_nifti((3, 2, 2)):
        yield data


def settings_seeds():
    yield (b'{"image": "a.png", "unary": "u.npy", "spatial": [2, 0.25], "no-polish": true, '
           b'"iterations": 3, "gap": null, "quiet": false, "normalize": "none"}')
    yield b'{"settings": {"preset": "weak", "spatial": "9,9", "gap": 1e-3, "iterations": "12"}}'
    yield b'{"labels": 3, "normalize": "symmetric", "weight": [1.5, "x"]}'
    for data, _ in formats.MALFORMED_SETTINGS:
        yield data


def arguments_seeds():
    yield b"photo.png\n--unary\nu.npy\n--gap=0.25\n-n\n12\n--no-polish"
    yield b"--normalize\nsymmetric\n--weight\n3e-1\n--\n-odd.png"
    yield b"--help"
    yield b"--seed\n18446744073709551616\nx"


def distance_seeds():
    yield b"\0\x020 pets 0.5\n1 pets .5 # a cat\npets all 1\n\n2 all 2.25\n"
    yield b"\0\x04all cost 5: animals 3 4\nanimals cost 2: pets 2\r\npets cost 1: 0 1\n"
    yield b"\0\x020 a 1\n1 a 1\n0 1 1\n"
    yield b"\1\x03.5: 0 2\n# two labels\n1e3: 1 2 3\n"
    yield b"\1\x021e308: 0\n1e308: 0 1\n"


def lists_seeds():
    yield b"0p0\np1\n  p2 \r\n\n"
    yield b"1sky\nroad & <b>\nthe other\n"
    yield b"0../../etc/passwd\n"
    yield b"1a\x00b\n"


def log_seeds():
    yield b"number,phase,score,sigma,weight,accuracy,iou,check\n"
    yield b"number,phase,score,sigma,weight,accuracy,iou,check\n1,start,0.5,1,2,0.75,0.5,00000000\n"
    yield struct.pack("<8d", 1.5, 0.1, 0.7, 0.6, 3, 1e-300, 0.25, 1 / 3)


def record_seeds():
    yield b'{"seed": 1, "method": "qp", "budgets": [1]}'
    yield b'{"seed": 1, "method": "qp", "budgets": [20, 30]}'
    yield b'{"seed": 2}'
    yield b'{"seed": 1, "method": "qp", "budgets": [-1, 1e99]}'


def map_seeds():
    rows = [[(x + y) % 3 for x in range(5)] for y in range(4)]
    flat = [v for row in rows for v in row]
    sizes = bytes([4, 3])
    yield sizes + formats.number_png(rows)
    yield sizes + formats.png([[(80 * v, 0, 255) for v in row] for row in rows])
    yield sizes + formats.png([[(80 * v, 80 * v, 80 * v) for v in row] for row in rows])
    # On its side, by an EXIF orientation of 6.
    exif = b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 274, 3, 1, 6, 0, 0)
    turned = [[rows[3 - x][y] for x in range(4)] for y in range(5)]
    yield bytes([3, 4]) + formats.number_png(rows, extra=formats.chunk(b"eXIf", exif))
    yield sizes + formats.number_png(turned, extra=formats.chunk(b"eXIf", exif))
    yield sizes + pictures.tiff([[(v,) for v in row] for row in turned], photometric=pictures.BLACK_IS_ZERO,
                                fields={274: (pictures.SHORT, [6])})
    for descr in ("|u1", "<i4", "<f4", ">i8", "|b1"):
        yield sizes + formats.npy([v % 2 for v in flat], (4, 5), descr)
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", compression) as members:
            members.writestr("labels.npy", formats.npy(flat, (4, 5), "|u1"))
        yield sizes + archive.getvalue()
    yield bytes([4, 128 + 3]) + volumes.nifti(flat * 2, (5, 4, 2), volumes.I16)


def made_seeds():
    for kind in range(15):
        yield bytes([0, kind, 7, 5, kind % 2]) + bytes((37 * i + kind) % 256 for i in range(400))
    yield b"\x01" + volumes.nifti(list(range(12)), (3, 2, 2), volumes.I16)
    yield b"\x01" + volumes.nifti([0.5] * 8, (2, 2, 2), volumes.F64, version=2)


def window_seeds():
    """Instructions as fuzz_window.c reads them, and what the file is made of."""
    as_it_is, png, tiff, pnm, npy, nifti = range(6)
    colours, label_map, array, map_of_volume, array_of_volume = range(5)

    def seed(form, use, kind, detail=0, cut=0, option=0, fill=bytes((37 * i) % 251 for i in range(300))):
        return bytes([form, use, 20, 18, 2, kind, detail, cut, option, 3, 5, 1, 9, 8, 1]) + fill

    small = bytes(i * i % 3 for i in range(50))
    for kind in range(15):
        yield seed(png, label_map if kind % 3 == 0 else colours, kind, kind % 2)
    for kind in range(4):
        yield seed(tiff, colours, kind, 5 * kind % 8)
        yield seed(tiff, label_map, kind, 7 * kind % 8, fill=small)
    for kind in range(6):
        yield seed(pnm, colours, kind, kind % 3)
        yield seed(pnm, label_map, kind, kind % 2, cut=40 * (kind % 3), fill=small)
    for kind in range(16):
        yield seed(npy, array, kind, 32 + kind % 5, cut=100 * (kind == 9))
        yield seed(npy, label_map, kind, 5, option=kind, fill=small[:1] if kind > 2 else small)
    for kind in range(6, 16):
        yield seed(npy, array_of_volume, kind, 32 + kind % 5)
    for kind in range(3):
        yield seed(npy, map_of_volume, kind, 5, fill=small)
        yield seed(nifti, map_of_volume, kind, fill=small if kind == 0 else b"\1\0\0\0")
        yield seed(nifti, array_of_volume, kind, 32)
    yield seed(npy, array, 240, 33)
    yield seed(npy, array, 12, 161)
    for make in (bmp_seeds, jpeg_seeds):
        yield seed(as_it_is, colours, 0, fill=next(make()))


def outcome_seeds():
    whole = (b'{"width": 3, "height": 2, "iterations": 5, "stop": "stationary", "constant": false, '
             b'"pixels_changed": 1, "energy_rounded": 2.5, "setup_s": 0.1, "solve_s": 0.2, "polish_s": 0, '
             b'"energy": 2.5, "energy_unary": 1, "energy_pairwise": 1.5, "energy_cliques": 0, '
             b'"lower_bound": null, "relative_gap": null, "proven": null}')
    yield whole
    yield whole.replace(b"0.2", b"null")  # a time that is not known was taken and could not be written


SEEDS = {"arguments": arguments_seeds, "bmp": bmp_seeds, "certificate": certificate_seeds, "dataset": dataset_seeds,
         "distance": distance_seeds, "geo": geo_seeds, "jpeg": jpeg_seeds, "lists": lists_seeds, "log": log_seeds,
         "made": made_seeds, "map": map_seeds,
         "nifti": nifti_seeds, "npy": npy_seeds, "outcome": outcome_seeds, "palette": palette_seeds, "png": png_seeds,
         "pnm": pnm_seeds, "record": record_seeds, "settings": settings_seeds, "tiff": tiff_seeds,
         "verify": verify_seeds, "webp": webp_seeds, "window": window_seeds}


def write_seeds(kind, folder):
    paths = []
    for number, data in enumerate(SEEDS[kind]()):
        paths.append(os.path.join(folder, "seed%03d.%s" % (number, kind)))
        with open(paths[-1], "wb") as stream:
            stream.write(data)
    return paths


def main():
    kind, target = sys.argv[1], sys.argv[2]
    if target != "--smoke":
        os.makedirs(target, exist_ok=True)
        if kind in SEEDS:
            write_seeds(kind, target)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.argv[3], str(ROUNDS), *write_seeds(kind, folder)]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
