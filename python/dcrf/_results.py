"""What a solver gives back."""

import dataclasses
import math
import typing

import numpy as np

from ._png import palette
from ._report import data_address, page_of_result, table


@dataclasses.dataclass(frozen=True)
class Energy:
    """An energy and its parts."""

    total: float
    unary: float
    pairwise: float
    cliques: float


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """What the LP's lower bound leaves out, if the cuts found for a compatibility do not add up to it.

    At most ``distance`` of the cost of two labels, ``fraction`` relative to that cost, and ``energy`` of the energy
    of this labelling. So its gap stays above ``gap``, however long the LP runs. The last two are NaN if there was
    no time for them.
    """

    distance: float
    fraction: float
    energy: float
    gap: float

    def __str__(self):
        text = f"the bound leaves out up to {self.distance:.4g} ({100 * self.fraction:.4g} %) of the cost of two labels"
        if math.isnan(self.energy):
            return text
        return text + f" and {self.energy:.6g} of this energy: the gap stays above {100 * self.gap:.3g} %"


def _left_out(given):
    return None if given is None else LeftOut(**given)


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What is proven about a labelling."""

    energies: dict
    lower_bound: float
    relative_gap: float
    best_energy: float
    is_constant: bool
    iterations: int
    stop: str
    seconds: float
    right: int  # pixels whose label is proven to be that of every optimal labelling,
    wrong: int  # and those whose label is proven to be that of none
    left_out: typing.Optional[LeftOut]  # by the bound; None: nothing

    @classmethod
    def _made(cls, left_out, **found):
        return cls(left_out=_left_out(left_out), **found)

    @property
    def energy(self):
        return self.energies["total"]

    def __str__(self):
        text = (
            f"energy {self.energy:.6g}, no labelling is below {self.lower_bound:.6g}: "
            f"within {100 * self.relative_gap:.3g} % of the best"
        )
        return text if self.left_out is None else f"{text}; {self.left_out}"


@dataclasses.dataclass(frozen=True)
class Verification:
    """What a certificate proves, recomputed. ``possible`` is bool (labels, ...), ``proven`` bool."""

    is_exact: bool
    energy: float
    lower_bound: float
    relative_gap: float
    labels_energy: float
    labels_gap: float
    right: int
    wrong: int
    seconds: float
    possible: np.ndarray

    @property
    def proven(self):
        return self.possible.sum(0) == 1


_TRACE = ("iteration", "time_s", "objective", "best_energy", "lower_bound", "stage")


class Result:
    """A labelling and what is known about it.

    ``labels`` uint16 over the grid; ``marginals`` float32 (labels, ...) or None: the method's last
    distributions; ``energy``, ``energies`` (its parts), ``lower_bound`` and ``relative_gap`` (NaN where
    the method has none); ``iterations``, ``stop`` (why the run ended), ``is_constant`` (one label everywhere:
    the weights outweigh the unary energies); ``trace``, a dictionary of arrays; ``seconds``; ``changes``, a
    dictionary of what changed from the unary minimum (``pixels_changed``, ``labels_before``, ``labels_after``,
    ``labels_vanished``, ``largest_label``, ``largest_share``), and ``warnings``, a list of texts that point out
    suspicious results; ``proven_share``, the fraction of pixels whose label is proven to be that of every
    optimal labelling (NaN without a bound); ``left_out``, what the bound leaves out of a compatibility (a
    ``LeftOut``; None: nothing); ``rounded_energy``, that of the last marginals rounded. After
    ``solve(..., proof=True)``: ``possible`` bool (labels, ...), the labels that an optimal labelling can have,
    and ``proven`` bool, where that is one; with ``certificate=True`` also ``certificate``, bytes for
    ``dcrf.verify``. Else these are None.
    """

    def __init__(self, labels, marginals, info, image=None, possible=None):
        self.possible = possible
        self.proven = None if possible is None else possible.sum(0) == 1
        self.certificate = info.get("certificate")
        self.labels = labels
        self.marginals = marginals
        self.method = info["method"]
        self.energies = Energy(**info["energies"])
        self.energy = self.energies.total
        self.objective = info["objective"]
        self.lower_bound = info["lower_bound"]
        self.relative_gap = info["relative_gap"]
        self.unpolished_energy = info["unpolished_energy"]
        self.rounded_energy = info["rounded_energy"]
        self.proven_share = info["proven_share"]
        self.left_out = _left_out(info["left_out"])
        self.iterations = info["iterations"]
        self.stop = info["stop"]
        self.is_constant = info["is_constant"]
        self.seconds = info["seconds"]
        self.changes = info["changes"]
        self.warnings = self.changes["warnings"]
        columns = zip(*info["trace"]) if info["trace"] else [()] * len(_TRACE)
        self.trace = dict(zip(_TRACE, map(np.array, columns)))
        self._image = image

    def __repr__(self):
        text = f"<dcrf.Result {self.method}: energy {self.energy:.6g}"
        if not math.isnan(self.lower_bound):
            text += f", lower bound {self.lower_bound:.6g} (gap {100 * self.relative_gap:.3g} %)"
        if self.left_out is not None:
            text += f", {self.left_out}"
        text += f", {self.changes['pixels_changed']} pixels changed"
        return text + f", {self.iterations} iterations, stopped by {self.stop}>"

    def overlay(self, image=None, opacity=0.5):
        """The picture with the labels in colours over it, uint8 (H, W, 3); for PIL's ``Image.fromarray`` and
        matplotlib's ``imshow``. ``image`` is by default the model's, on the scale 0 to 255 or 0 to 1."""
        image = self._image if image is None else np.asarray(image)
        colours = self.picture()
        if image is None:
            return colours
        image = np.asarray(image, np.float64)
        while image.ndim > 2 and image.shape[:2] != colours.shape[:2] and image.shape[-2:] != colours.shape[:2]:
            image = image[image.shape[0] // 2]
        if image.ndim == 3 and image.shape[:2] != colours.shape[:2]:
            image = np.moveaxis(image, 0, -1)
        if image.ndim == 3 and image.shape[-1] != 3:
            image = image.mean(-1)
        if image.ndim == 2:
            image = image[..., np.newaxis].repeat(3, -1)
        scale = 255 if image.size and image.max() <= 1 else 1
        return ((1 - opacity) * image.clip(0, 255) * scale + opacity * colours).clip(0, 255).astype(np.uint8)

    def picture(self):
        """The labelling in colours, uint8 (H, W, 3); of a volume, its middle slice."""
        labels = self.labels
        while labels.ndim > 2:
            labels = labels[labels.shape[0] // 2]
        return palette(np.atleast_2d(labels))

    def report(self, image=None, classes=None, title="dcrf"):
        """An HTML page with pictures, figures and the course of the run, as a string; it needs no other file.
        ``classes`` are names of the labels."""
        return page_of_result(self, image, classes, title)

    def figures(self):
        """Names and values of what is known about the labelling, as texts."""
        rows = [
            ("energy", f"{self.energy:.6g}"),
            ("unary + pairwise + cliques", " + ".join(
                f"{part:.6g}"
                for part in (self.energies.unary, self.energies.pairwise, self.energies.cliques)
            )),
        ]
        if not math.isnan(self.lower_bound):
            rows += [
                ("lower bound", f"{self.lower_bound:.6g}"),
                ("gap", f"{100 * self.relative_gap:.3g} %"),
            ]
        if self.left_out is not None:
            rows.append(("note", str(self.left_out)))
        rows += [
            ("method", f"{self.method}, {self.iterations} iterations, {sum(self.seconds.values()):.2f} s"),
            ("stopped by", self.stop),
        ]
        rows.insert(0, ("pixels changed", f"{100 * self.changes['pixels_changed'] / self.labels.size:.2f} %"))
        if not math.isnan(self.proven_share):
            rows.insert(-2, ("proven", f"{100 * self.proven_share:.2f} % of the pixels"))
        return rows + [("warning", text) for text in self.warnings]

    def _repr_html_(self):
        return (
            f"<div><img style='image-rendering:pixelated;max-width:320px' "
            f"src='{data_address(self.picture())}'>{table(self.figures())}</div>"
        )
