"""Models."""

import copy
import math
import warnings

import numpy as np

from . import _core
from ._arrays import array, one_or_many, split_mask, thread_count, whole_number
from ._choices import NORMALIZATIONS, OPERATORS, choice
from ._compatibility import prepare
from ._explain import explain
from ._kernels import check_share, check_strength, parts_of_strength, several, with_weight
from ._layout import find_grid, place_channels_last
from ._options import options_of, outside_the_package
from ._presets import PRESETS
from ._recorded import RecordedModel
from ._results import Certificate, Energy, Result, Verification
from ._superpixels import on_the_scale, superpixels, without_bools
from ._unary import confidence_map, label_energies, label_map, one_grey, place_map, two_labels, unary_energies, unary_numbers

_DEFAULTS = _core.defaults()
WAYS = "unary=, probabilities=, logits= and labels_prior= (strokes: dcrf.Scribbles)"
DEFAULT_SPATIAL = _DEFAULTS["spatial_sigma"]
DEFAULT_BILATERAL = (_DEFAULTS["bilateral_sigma"], _DEFAULTS["colour_sigma"])


def _labelling(labels, grid, count):
    """Labels as the library takes them: uint16, checked."""
    given = array(labels, "labels", integers=True)
    if given.shape != grid and not (given.ndim == 1 and given.size == math.prod(grid)):
        turned = " (its height and width are swapped)" if given.shape == grid[::-1] else ""
        raise ValueError(f"labels has the shape {given.shape}; {grid} is needed{turned}")
    if given.dtype.kind == "f" and not (given == np.floor(given)).all():
        raise ValueError("labels must be whole numbers")
    if given.size and not (0 <= given.min() and given.max() < count):
        raise ValueError(
            f"labels run from {given.min()} to {given.max()}; they must lie between 0 and {count - 1} (void= is for a "
            "number that is no label)"
        )
    return np.ascontiguousarray(given, dtype=np.uint16).reshape(grid)


class Model:
    """A model that is solved more than once: change a weight and keep the lattice.

    The labels' likelihood is given as ``unary`` energies, ``probabilities`` or ``logits``, at the size of the
    picture or smaller; or as ``labels_prior``, a rough label map (255 or masked: unknown; only 0 and 255: a mask),
    whose borders move to the picture's edges: energies follow from the distance to the borders and the labels'
    colours, with kernels that suit them unless others are given. A ``confidence`` for each pixel, an array of the
    map's shape, says how far the map is to be believed there, from 0 to 1: it keeps its label. With one number, or
    without a picture (0.7), the map is right with this probability at every pixel, regardless of its surroundings.

    ``image`` may be (H, W), (H, W, C) or (C, H, W), or a volume; the energies (labels, ...) or
    (..., labels). ``spatial`` is a sigma, (sigma, weight) or None, ``bilateral`` is (sigma, channel
    sigma), (sigma, channel sigma, weight) or None; a sigma is a number, or one number per axis, slowest first.
    Kernels are numbered in that order.

    Kernels without a weight share the ``strength``: the cost of disagreeing with all surroundings, in the unit of
    the energies. "auto" measures it from the energies (see ``measured_strength``), times ``strength_factor``;
    ``spatial_share`` is the spatial kernel's share if two kernels share it. The energies are divided by
    ``temperature``. ``normalize`` is "symmetric" (the default) or "none".

    ``preset`` is a name of ``dcrf.PRESETS``: its kernels, normalization and cliques are used unless others are
    given (``cliques=False``: none), and so are its method and iterations.

    A single label, a foreground map, becomes two: 0 is the background.

    ``device`` is "cpu", "cuda" or "cuda:1": where kernels are applied and methods iterate. None means the
    environment variable DCRF_DEVICE, or the CPU if it is not set.

    >>> import numpy as np
    >>> unary = np.zeros((2, 4, 5)); unary[1] = 0.1; unary[0, 2, 2] = 1
    >>> model = Model(unary=unary, spatial=(1, 1), bilateral=None)
    >>> int(model.solve("mf").labels.sum())
    0
    >>> model.set_weight(0, 0.0)
    >>> int(model.solve("mf").labels.sum())
    1

    A mask that was drawn too large:

    >>> image = np.zeros((60, 80, 3), np.uint8); image[20:40, 30:50] = 200
    >>> rough = np.zeros((60, 80), np.uint8); rough[18:42, 28:52] = 255
    >>> model = Model(image, labels_prior=rough)
    >>> bool((model.solve("mf").labels == (image[..., 0] > 0)).all())
    True
    """

    def __init__(
        self,
        image=None,
        *,
        unary=None,
        probabilities=None,
        logits=None,
        labels_prior=None,
        confidence=None,
        labels=None,
        preset=None,
        spatial=DEFAULT_SPATIAL,
        bilateral=DEFAULT_BILATERAL,
        strength="auto",
        strength_factor=1.0,
        spatial_share=_DEFAULTS["spatial_share"],
        temperature=1.0,
        compatibility=None,
        normalize=None,
        cliques=None,
        clique_cost=None,
        spacing=1.0,
        shape=None,
        labels_axis=None,
        channels_axis=None,
        operator="fast",
        threads=0,
        device=None,
    ):
        self.image = None if image is None else one_image(array(without_bools(image), "the image"))
        rough = certainty = None
        if labels_prior is not None:
            if not (unary is None and probabilities is None and logits is None):
                raise TypeError(f"give exactly one of {WAYS}")
            rough, labels = label_map(one_grey(labels_prior, self.image), labels)
            if np.ndim(confidence):
                certainty, confidence = confidence_map(confidence, rough, self.image), None
            if confidence is not None or self.image is None:
                unary, rough = label_energies(rough, labels, confidence), None
            labels_axis = -1
        elif confidence is not None or labels is not None:
            raise TypeError("confidence= and labels= go with labels_prior=")
        if channels_axis is not None and self.image is not None:
            self.image = np.moveaxis(self.image, channels_axis, -1)
        if rough is not None:
            if certainty is not None:
                certainty = place_map(certainty, self.image, shape)[1]
            self.shape, rough = place_map(rough, self.image, shape)
            self.labels = labels
        else:
            self.shape, energies = self._read_unary(unary, probabilities, logits, shape, labels_axis)
            self.labels = energies.shape[-1]
        self._channels = None
        if self.image is not None:
            axis = None if channels_axis is None else -1
            self._channels = place_channels_last(self.image, self.shape, "the image", axis)
        self._preset = {} if preset is None else choice(preset, PRESETS, "preset")
        if self._preset:
            spatial = self._preset["spatial"] if spatial is DEFAULT_SPATIAL else spatial
            bilateral = self._preset["bilateral"] if bilateral is DEFAULT_BILATERAL else bilateral
        if normalize is None:
            normalize = self._preset.get("normalize", "symmetric")
        if compatibility is None:
            compatibility = self._preset.get("compatibility")
        min_region = None
        if cliques is None and "cliques" in self._preset:
            cliques, min_region = self._preset["cliques"], self._preset["min_region"]
            clique_cost = self._preset["clique_cost"] if clique_cost is None else clique_cost
        self._normalize = normalize
        choice(normalize, NORMALIZATIONS, "normalize")
        self._spacing = one_or_many(spacing, len(self.shape), "spacing")
        self._core = RecordedModel(
            self.shape,
            self._spacing,
            self.labels,
            choice(operator, OPERATORS, "operator"),
            thread_count(threads),
            device,
        )
        self._temperature = float(temperature)
        self._strength = check_strength(strength)
        self._strength_factor = float(strength_factor)
        if not 0 < self._strength_factor < math.inf:
            raise ValueError(f"strength_factor is {strength_factor!r}; it must be above zero")
        self._spatial_share = check_share(spatial_share)
        self._is_strength_judged = True
        self._is_of_a_map = labels_prior is not None
        self._sharing = {}  # kernels without weights of their own: their number, is it spatial?
        if rough is not None:
            energies, for_masks = self._refine(rough, certainty)
            if spatial is DEFAULT_SPATIAL and bilateral is DEFAULT_BILATERAL and normalize == "symmetric":
                # A strength that is asked for is shared by kernels without weights.
                spatial, bilateral = for_masks if self._strength is None else (for_masks[0][:-1], for_masks[1][:-1])
                # What suits is measured for energies whose pixels err by themselves.
                self._is_strength_judged = self._strength is not None
        self._core.set_unary(energies)
        self._core.apply_temperature(self._temperature)
        for kernel in several(spatial):
            sigma, weight = with_weight(kernel, 1, "spatial", "a sigma, (sigma, weight) or None")
            self._add_spatial(*sigma, weight)
        for kernel in several(bilateral) if self.image is not None else ():
            sigmas, weight = with_weight(
                kernel, 2, "bilateral",
                "(sigma, channel sigma), (sigma, channel sigma, weight) or None"
            )
            self._add_bilateral(*sigmas, weight)
        self._set_compatibilities(compatibility)
        if self._strength is not None and not self._sharing and self._core.counts()["kernels"]:
            raise ValueError(
                "every kernel has a weight of its own; leave out a weight, or leave out strength="
            )
        self._share_strength()
        if cliques is not None and cliques is not False:
            self._set_cliques(cliques, clique_cost, min_region)

    # ---- what the model is made of

    def _read_unary(self, unary, probabilities, logits, shape, labels_axis, ways=WAYS):
        """The grid, and energies over it with the labels last."""
        numbers, kind, mask = unary_numbers(unary, probabilities, logits, ways)
        grid, placed, own = find_grid(self.image, numbers, shape, labels_axis)
        if mask is not None:
            mask = find_grid(self.image, mask, shape, labels_axis)[1]
        if placed.shape[-1] == 1:
            placed = two_labels(placed, kind)
        return grid, unary_energies(placed, kind, mask, grid, own, self.image)

    def _refine(self, rough, certainty):
        """Energies and kernels of a rough label map over the grid."""
        is_colour = self._channels.shape[-1] == 3
        energies = np.empty(self.shape + (self.labels,), np.float32)
        channels = on_the_scale(self._channels) if is_colour else self._channels
        return energies, self._core.mask_energies(channels, rough, certainty, energies)

    def set_unary(self, unary=None, *, probabilities=None, logits=None):
        """Replace the energies; the grid and the number of labels stay."""
        _, energies = self._read_unary(unary, probabilities, logits, self.shape, None, "unary=, probabilities= and logits=")
        if energies.shape[-1] != self.labels:
            raise ValueError(f"the model has {self.labels} labels, the unary array {energies.shape[-1]}")
        self._core.set_unary(energies)
        self._core.apply_temperature(self._temperature)
        self._share_strength()

    def add_spatial(self, sigma, weight=None, normalize=None):
        """Add a kernel over positions; returns its number. Without a weight it shares the strength."""
        number = self._add_spatial(sigma, weight, normalize)
        self._share_strength()
        return number

    def add_bilateral(self, sigma, channel_sigma, weight=None, image=None, normalize=None):
        """Add a kernel over positions and the channels of an image; returns its number. Without a
        weight it shares the strength."""
        number = self._add_bilateral(sigma, channel_sigma, weight, image, normalize)
        self._share_strength()
        return number

    def _add_spatial(self, sigma, weight, normalize=None):
        sigmas = one_or_many(sigma, len(self.shape), "sigma")
        return self._add(sigmas, None, None, weight, normalize)

    def _add_bilateral(self, sigma, channel_sigma, weight, image=None, normalize=None):
        channels = self._channels if image is None else place_channels_last(image, self.shape, "the image")
        if channels is None:
            raise ValueError("a bilateral kernel needs an image")
        channels = on_the_scale(channels, channel_sigma)
        return self._add(
            one_or_many(sigma, len(self.shape), "sigma"),
            channels,
            one_or_many(channel_sigma, channels.shape[-1], "channel_sigma"),
            weight,
            normalize,
        )

    def add_features(self, features, weight, normalize=None):
        """Add a kernel over your own features, already divided by their sigmas; returns its number."""
        channels = place_channels_last(features, self.shape, "the features")
        return self._add(None, channels, None, weight, normalize)

    def _add(self, sigmas, channels, channel_sigmas, weight, normalize):
        is_symmetric = choice(
            self._normalize if normalize is None else normalize, NORMALIZATIONS, "normalize"
        )
        if weight is None and not is_symmetric:
            raise ValueError("a kernel that is not normalized needs a weight of its own")
        own = 0.0 if weight is None else float(weight)
        self._core.add_kernel(sigmas, channels, channel_sigmas, own, is_symmetric)
        number = self._core.counts()["kernels"] - 1
        if weight is None:
            self._sharing[number] = channels is None
        return number

    def set_weight(self, kernel, weight):
        """Change the weight of a kernel; nothing is rebuilt."""
        self._core.set_weight(kernel, float(weight))
        self._sharing.pop(kernel, None)

    @property
    def strength(self):
        """The cost of disagreeing with all surroundings: twice the sum of the weights."""
        return self._core.strength()[0]

    def set_strength(self, strength="auto"):
        """Change the strength that kernels without weights of their own share, a number or "auto"; nothing is
        rebuilt."""
        self._strength = check_strength(strength)
        if not self._sharing:
            raise ValueError("every kernel has a weight of its own; use set_weight")
        self._share_strength()

    def measured_strength(self):
        """The measured strength, as a dictionary: ``strength``, the value that "auto" uses; ``rho``, how often
        neighbours of similar colour disagree, relative to independent errors with the stated probabilities;
        ``temperature``, the divisor of the energies that makes this ratio 1; ``margin``, the geometric mean of
        the differences between the two best energies; ``pairs``, the neighbours that were compared."""
        return self._core.measure_strength()

    def _share_strength(self):
        if not self._sharing:
            return
        strength = self._strength
        if strength is None:
            strength = self._strength_factor * self._core.measure_strength()["strength"]
        parts = parts_of_strength(list(self._sharing.values()), self._spatial_share)
        for number, part in zip(self._sharing, parts):
            self._core.set_weight(number, strength / 2 * part)

    def set_sigma(self, kernel, sigma=None, channel_sigma=None):
        """Change the sigmas of a kernel, of its axes or its channels; the kernel is rebuilt."""
        kernels = self._core.kernels()
        if not 0 <= kernel < len(kernels):
            raise ValueError(f"there is no kernel {kernel}: there are {len(kernels)}")
        if sigma is not None:
            sigma = one_or_many(sigma, len(self.shape), "sigma")
        if channel_sigma is not None:
            count = len(kernels[kernel].get("channel_sigma", ()))
            channel_sigma = one_or_many(channel_sigma, count, "channel_sigma")
        self._core.set_sigma(kernel, sigma, channel_sigma)

    @property
    def device(self):
        """Where the work is done: "cpu", "cuda:0", ..."""
        return self._core.device()

    @property
    def kernels(self):
        """The kernels as dictionaries: kind, sigma, channel_sigma, weight, normalize, compatibility."""
        return self._core.kernels()

    def __copy__(self):
        other = Model.__new__(Model)
        other.__dict__.update(self.__dict__)
        for name, value in self.__dict__.items():
            if isinstance(value, (RecordedModel, dict)):
                setattr(other, name, copy.copy(value))
        return other

    def __repr__(self):
        kernels = ", ".join(f"{kernel['kind']} {kernel['weight']:g}" for kernel in self.kernels)
        where = "" if self.device == "cpu" else f"; on {self.device}"
        return f"<dcrf.Model over {self.shape}, {self.labels} labels; kernels: {kernels or 'none'}{where}>"

    def set_compatibility(self, kernel, compatibility):
        """The cost of different labels: None or "potts" (1), "linear" (the difference of their numbers),
        "truncated-linear:4" (at most 4), a ``Tree``, ``Cuts``, a symmetric matrix or a vector (its diagonal)."""
        self._core.set_compatibility(kernel, prepare(compatibility, self.labels))

    def _set_compatibilities(self, compatibility):
        """One for all kernels, or a list with one for each."""
        if compatibility is None:
            return
        count = self._core.counts()["kernels"]
        each = compatibility if isinstance(compatibility, list) else [compatibility] * count
        if len(each) != count:
            raise ValueError(f"compatibility has {len(each)} entries for {count} kernels")
        for kernel, one in enumerate(each):
            self.set_compatibility(kernel, one)

    def set_cliques(self, cliques, cost=None):
        """Regions that should agree: a map of region numbers (negative: none), the name of a method of
        ``superpixels`` ("slic", "meanshift"), or None.

        ``cost`` is a number, or (gamma, eta) for gamma * exp(-variance of the colours / eta); without one,
        gamma follows the present strength of the kernels.
        """
        self._set_cliques(cliques, cost, None)

    def _set_cliques(self, cliques, cost, min_region):
        if cliques is None:
            self._core.set_cliques(None, 0.0)
            return
        if isinstance(cliques, str):
            if self.image is None:
                raise ValueError("superpixels need an image")
            cliques = superpixels(
                self._channels, cliques, shape=self.shape, spacing=self._spacing, min_region=min_region
            )
        regions = array(cliques, "the clique map", integers=True)
        if regions.dtype.kind == "f":
            raise TypeError("the clique map must hold integers")
        regions = place_channels_last(regions, self.shape, "the clique map")
        if cost is None:
            gamma = self._core.strength()[1]
            cost = (gamma, _DEFAULTS["eta"]) if self.image is not None else gamma
        if np.ndim(cost) == 0:
            self._core.set_cliques(regions, float(cost))
            return
        gamma, eta = _unpack(cost, 2, "the clique cost", "a number or (gamma, eta)")
        if self.image is None:
            raise ValueError("costs that depend on colours need an image")
        self._core.set_cliques(regions, 0.0)
        self._core.set_clique_costs(on_the_scale(self._channels), float(gamma), float(eta))

    # ---- what it is good for

    def solve(
        self,
        method=None,
        *,
        start=None,
        marginals=True,
        trace=None,
        progress=None,
        out=None,
        proof=False,
        certificate=False,
        iterations=None,
        time_limit_s=None,
        gap=None,
        stationarity=None,
        damping=None,
        evaluate_every=None,
        rounding_draws=None,
        seed=None,
        polish=None,
        polish_rounds=None,
        lp_schedule=None,
    ):
        """The best labelling that a method finds: "mf", "qp" or "lp", the last with a lower bound. None means the
        method of the model's preset, or "mf".

        ``progress`` is called with a dictionary after every candidate and iteration, and at the end of later stages
        (its ``stage`` says which); returning ``dcrf.STOP`` ends the run with the best labelling so far, and
        exceptions propagate. ``out`` is an array for the labels.

        Settings (None: the library's default): ``iterations``, ``time_limit_s``, ``gap``, ``stationarity``,
        ``damping``, ``evaluate_every``, ``rounding_draws``, ``seed``, ``polish_rounds``, ``lp_schedule`` ("huber",
        "proximal" or "paper"). Moves that improve the labelling (``polish``) and the figures of what is done
        (``trace``) take time: "mf" on a network's output without cliques does them only on request; everything
        else does them, like the command.

        ``proof`` finds which labels are possible at every pixel; ``certificate`` does the same in a form that
        others can check. Both need the method "lp".
        """
        settings = {name: value for name, value in locals().items() if name in SETTINGS}
        return self._solve(
            method, settings, start=start, marginals=marginals, trace=trace, progress=progress, out=out, proof=proof,
            certificate=certificate,
        )

    def _solve(
        self, method, settings, *, start=None, marginals=True, trace=None, progress=None, out=None, proof=False,
        certificate=False, warns=True, is_unwanted=None,
    ):
        """``warns``: through ``warnings``; ``is_unwanted`` is asked in all stages of a run."""
        if method is None:
            method = self._preset.get("method", "mf")
        if settings.get("iterations") is None and method == self._preset.get("method"):
            settings = {**settings, "iterations": self._preset.get("iterations")}
        is_fast = method == "mf" and not self._is_of_a_map and not self._core.counts()["cliques"]
        settings = {"polish": not is_fast, **{name: value for name, value in settings.items() if value is not None}}
        settings["trace"] = not is_fast if trace is None else bool(trace)
        for name in ("iterations", "evaluate_every", "rounding_draws", "polish_rounds"):
            if name in settings:
                settings[name] = whole_number(settings[name], name)
        labels = np.empty(self.shape, np.uint16)
        rows = None
        if marginals:
            rows = np.empty(self.shape + (_core.padded(self.labels),), np.float32)
        if start is not None:
            start = _labelling(start, self.shape, self.labels)
        possible = None
        if proof or certificate:
            possible = np.empty(self.shape + (self.labels,), np.uint8)
        info = self._core.solve(
            method, settings, labels, rows, start, progress, possible, bool(certificate), self._is_strength_judged,
            is_unwanted,
        )
        if rows is not None:
            rows = np.moveaxis(rows[..., : self.labels], -1, 0)
        if possible is not None:
            possible = np.moveaxis(possible.astype(bool), -1, 0)
        result = Result(_as_integers(labels, out), rows, info, self.image, possible)
        for text in result.warnings if warns else ():
            warnings.warn(text, stacklevel=outside_the_package())
        return result

    def explain(self):
        """What the settings mean for this image: how far kernels reach, how strong they are relative to the
        energies, and the results of mean field with weaker and stronger ones. ``print`` it."""
        return explain(self)

    def verify(self, certificate, labels=None, void=None):
        """Check a certificate (bytes) of ``solve(..., certificate=True)``, and compare a labelling with it.
        Raises ValueError if it was changed, belongs to another model, or does not hold. The check always runs
        on the CPU."""
        possible = np.empty(self.shape + (self.labels,), np.uint8)
        if labels is not None:
            labels = self._complete(labels, void)
        found = self._core.verify(certificate, labels, possible)
        return Verification(possible=np.moveaxis(possible.astype(bool), -1, 0), **found)

    def energy(self, labels, void=None):
        """The energy of a labelling, and its parts. Pixels that are masked or hold ``void`` have no label: they get
        that of their smallest unary energy."""
        return Energy(**self._core.energy(self._complete(labels, void)))

    def _complete(self, labels, void):
        """A labelling without gaps."""
        values, unknown = split_mask(labels)
        values = array(values, "labels", integers=True)
        if void is not None:
            unknown = (values == void) if unknown is None else unknown | (values == void)
        if unknown is not None and values.size == math.prod(self.shape):
            best = self._core.unary().argmin(-1)
            values = np.where(unknown.reshape(self.shape), best, values.reshape(self.shape))
        return _labelling(values, self.shape, self.labels)

    def certify(self, labels, *, void=None, time_limit_s=None, gap=None, iterations=None, progress=None):
        """A proof of how good a labelling from any program is: a lower bound on the energy of every labelling."""
        return Certificate._made(
            **self._core.certify(
                self._complete(labels, void),
                -1.0 if time_limit_s is None else float(time_limit_s),
                -1.0 if gap is None else float(gap),
                -1 if iterations is None else int(iterations),
                progress,
            )
        )


def one_image(image):
    """Without the axis of a batch of one, (1, channels, H, W)."""
    return image[0] if image.ndim == 4 and image.shape[0] == 1 and image.shape[1] <= 4 else image


def _as_integers(labels, out):
    """Labels as int32, which torch reads too, in the caller's array where there is one."""
    if out is None:
        return labels.astype(np.int32)
    if out.shape != labels.shape or out.dtype.kind not in "iu":
        raise ValueError(f"out must be an array of integers of the shape {labels.shape}")
    np.copyto(out, labels, casting="unsafe")
    return out


def _unpack(values, count, what, meaning):
    try:
        unpacked = tuple(values)
    except TypeError:
        unpacked = ()
    if len(unpacked) != count:
        raise ValueError(f"{what} is {values!r}; it must be {meaning}")
    return unpacked


# What of a run the library is given as its settings.
SETTINGS = frozenset(options_of(Model.solve)) - set(
    ("start", "marginals", "trace", "progress", "out", "proof", "certificate")
)
