"""Data sets for tests of batch and tune: pictures of coloured blocks, the truth, and unary energies that
are right more often than not. Standard library only, and the same for the same arguments."""

import json
import os
import random

import formats

VOID = 255
CLASSES = ["sky", "a<b&c", "absent", "road"]
COLOURS = [(70, 130, 220), (60, 160, 60), (0, 0, 0), (120, 110, 100)]
ENERGY_PER_UNIT = 0.05


def truth_of(chance, width, height):
    """Blocks of the classes but the absent one, and a line of void."""
    cut_x, cut_y = chance.randrange(width // 3, width), chance.randrange(height // 3, height)
    rows = [[0 if y < cut_y else 3 if x < cut_x else 1 for x in range(width)] for y in range(height)]
    rows[height // 2] = [VOID] * width
    return rows


def picture_of(chance, truth):
    seen = lambda label: COLOURS[0 if label == VOID else label]
    return [[tuple(min(255, max(0, c + chance.randrange(-12, 13))) for c in seen(label)) for label in row]
            for row in truth]


def unary_of(chance, truth):
    """Energies of 8 bits, (H, W, labels): low for the truth at three pixels of four."""
    values = []
    for row in truth:
        for label in row:
            likely = label if label != VOID and chance.random() < 0.75 else chance.randrange(len(CLASSES))
            values += [chance.randrange(0, 12) if i == likely else chance.randrange(20, 60)
                       for i in range(len(CLASSES))]
    return values


def put(path, data):
    with open(path, "wb") as stream:
        stream.write(data)


def put_scene(folder, name, picture, unary, truth):
    put(os.path.join(folder, "images", name + ".png"), formats.png(picture))
    put(os.path.join(folder, "unaries", name + ".npy"), unary)
    if truth:
        put(os.path.join(folder, "gt", name + ".png"), formats.number_png(truth))


def write(folder, scenes, splits, description, classes=()):
    """The folder of a data set. Scenes are (name, picture, bytes of the unary's .npy, truth or None);
    splits are names by split."""
    for part in ["images", "unaries", "splits"] + (["gt"] if any(s[3] for s in scenes) else []):
        os.makedirs(os.path.join(folder, part))
    for scene in scenes:
        put_scene(folder, *scene)
    for split, names in splits.items():
        put(os.path.join(folder, "splits", split + ".txt"), "".join(n + "\n" for n in names).encode())
    put(os.path.join(folder, "dataset.json"), json.dumps(description).encode())
    if classes:
        put(os.path.join(folder, "classes.txt"), "".join(c + "\n" for c in classes).encode())


def make(folder, count=6, width=24, height=18, truth=True, seed=1):
    """A data set of `count` images named p0, p1, ...; returns the names."""
    chance = random.Random(seed)
    names, scenes = ["p%d" % k for k in range(count)], []
    for name in names:
        labels = truth_of(chance, width, height)
        picture = picture_of(chance, labels)
        unary = formats.npy(unary_of(chance, labels), (height, width, len(CLASSES)), descr="|u1")
        scenes.append((name, picture, unary, labels if truth else None))
    half = count // 2
    write(folder, scenes, {"val": names[:half], "test": names[half:]},
          {"labels": len(CLASSES), "void": VOID, "unary": {"energy_per_unit": ENERGY_PER_UNIT}}, CLASSES)
    return names
