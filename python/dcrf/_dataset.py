"""A folder with a data set, as ``dcrf batch`` reads it (docs/reference/formats.md)."""

import importlib
import json
import os

import numpy as np

from . import _core
from ._layout import find_grid

_PICTURES = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".tif", ".tiff", ".bmp", ".webp")
_MAPS = (".png", ".npy", ".pgm", ".tif", ".tiff")


class DataSet:
    """A data set: a sequence of problems for ``batch``, ``solve_many`` and ``tune``, read on demand.

    ``names`` are those of the split, or of all images; ``labels`` how many there are, ``classes`` their names, ``void``
    the number in the truth that is not scored. A problem is a dictionary with ``image`` and its unary numbers; the truth
    comes from ``truth(index)``. Pictures are read by PIL.
    """

    def __init__(self, folder, split=None):
        self.folder = os.fspath(folder)
        with open(os.path.join(self.folder, "dataset.json"), encoding="utf-8") as stream:
            description = json.load(stream)
        self.labels = int(description["labels"])
        self.void = int(description.get("void", 255))
        unary = description.get("unary", {})
        self._unit = unary.get("energy_per_unit")
        self._kind = unary.get("kind", "auto" if self._unit is None else "energies")
        names = self._lines("classes.txt") if os.path.exists(os.path.join(self.folder, "classes.txt")) else []
        self.classes = [names[i] if i < len(names) else f"label {i}" for i in range(self.labels)]
        if split is not None:
            self.names = self._lines(os.path.join("splits", split + ".txt"))
        else:
            files = sorted(os.listdir(os.path.join(self.folder, "images")))
            stems = (os.path.splitext(file) for file in files if not file.startswith("."))
            self.names = [stem for stem, ending in stems if ending in _PICTURES]
        self.has_truth = os.path.isdir(os.path.join(self.folder, "gt"))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        image = np.asarray(_open_picture(self._find("images", name, _PICTURES)).convert("RGB"))
        numbers = np.load(self._find("unaries", name, (".npy",)))
        problem = {"image": image, "name": name}
        if numbers.ndim == 3 and self.labels in (numbers.shape[0], numbers.shape[-1]):
            problem["labels_axis"] = -1 if numbers.shape[-1] == self.labels else 0
        if self._unit is not None and self._unit != 1:
            numbers = numbers * float(self._unit)
        kind = self._kind if self._kind != "auto" else _kind_of(image, numbers, problem.get("labels_axis"))
        problem[{"energies": "unary"}.get(kind, kind)] = numbers
        return problem

    def truth(self, index):
        """The ground truth of an image, or None if the data set has none."""
        if not self.has_truth:
            return None
        path = self._find("gt", self.names[index], _MAPS)
        return np.load(path) if path.endswith(".npy") else np.asarray(_open_picture(path))

    def _lines(self, file):
        with open(os.path.join(self.folder, file), encoding="utf-8") as stream:
            return [line.strip() for line in stream if line.strip()]

    def _find(self, subfolder, name, endings):
        for ending in endings:
            path = os.path.join(self.folder, subfolder, name + ending)
            if os.path.exists(path):
                return path
        raise FileNotFoundError(f"there is no {subfolder}/{name}{endings[0]} in {self.folder}")


def _open_picture(path):
    try:
        images = importlib.import_module("PIL.Image")
    except ImportError as error:
        raise ImportError("the pictures of a data set are read by PIL (Pillow), which is not installed") from error
    return images.open(path)


def _kind_of(image, numbers, labels_axis):
    """What unary numbers plainly are; energies where that is not plain."""
    grid, placed, own = find_grid(image, numbers, None, labels_axis)
    try:
        return _core.unary_energies(placed, own, "auto", own, None, np.empty(placed.shape, np.float32))[0]
    except ValueError:
        return "energies"
