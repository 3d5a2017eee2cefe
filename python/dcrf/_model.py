"""Model, solve and their friends."""

import concurrent.futures
import math
import os

import numpy as np

from . import _core
from ._arrays import array, one_or_many
from ._choices import NORMALIZATIONS, OPERATORS, choice
from ._layout import find_grid, grid_of_image, place_channels_last
from ._results import Certificate, Energy, Result

# A probability of zero is an energy of -log of this.
SMALLEST_PROBABILITY = 1e-5


_DEFAULTS = _core.defaults()
DEFAULT_SPATIAL = _DEFAULTS["spatial_sigma"]
DEFAULT_BILATERAL = (_DEFAULTS["bilateral_sigma"], _DEFAULTS["colour_sigma"])


def _energies(unary, probabilities, logits):
    """Energies from exactly one of the three."""
    given = [name for name in (unary, probabilities, logits) if name is not None]
    if len(given) != 1:
        raise TypeError("give exactly one of unary=, probabilities= and logits=")
    if unary is not None:
        return array(unary, "unary")
    if probabilities is not None:
        values = array(probabilities, "probabilities")
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        if values.size and not (np.nanmin(values) >= 0 and np.nanmax(values) <= 1 + 1e-3):
            raise ValueError("probabilities must lie between 0 and 1 (logits= takes any numbers)")
        return -np.log(np.maximum(values, SMALLEST_PROBABILITY))
    values = array(logits, "logits")
    # Energies that differ by a constant at a pixel are the same model; keep them positive.
    return -(values if values.dtype.kind == "f" else values.astype(np.float64))


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
            f"labels run from {given.min()} to {given.max()}; they must lie between 0 and {count - 1}"
        )
    return np.ascontiguousarray(given, dtype=np.uint16).reshape(grid)


class Model:
    """A model that is solved more than once: change a weight and keep the lattice.

    ``image`` may be (H, W), (H, W, C) or (C, H, W), or a volume; the energies (labels, ...) or
    (..., labels). ``spatial`` is a sigma, (sigma, weight) or None, ``bilateral`` is (sigma, channel
    sigma), (sigma, channel sigma, weight) or None; a sigma is a number or one for each axis, slowest
    first. Kernels are numbered in that order.

    A kernel without a weight has a part of the ``strength``: what it costs a pixel to disagree with
    everything around it, in the unit of the energies. "auto" measures what suits the energies (see
    ``measured_strength``), times ``strength_factor``; ``spatial_share`` is the spatial kernel's part where two kernels share it.
    The energies are divided by ``temperature``.

    >>> import numpy as np
    >>> unary = np.zeros((2, 4, 5)); unary[1] = 0.1; unary[0, 2, 2] = 1
    >>> model = Model(unary=unary, spatial=(1, 1), bilateral=None)
    >>> model.solve("mf").labels.sum()
    0
    >>> model.set_weight(0, 0.0)
    >>> model.solve("mf").labels.sum()
    1
    """

    def __init__(
        self,
        image=None,
        *,
        unary=None,
        probabilities=None,
        logits=None,
        spatial=DEFAULT_SPATIAL,
        bilateral=DEFAULT_BILATERAL,
        strength="auto",
        strength_factor=1.0,
        spatial_share=_DEFAULTS["spatial_share"],
        temperature=1.0,
        normalize="symmetric",
        cliques=None,
        clique_cost=None,
        spacing=1.0,
        shape=None,
        operator="fast",
        threads=0,
    ):
        self.image = None if image is None else array(image, "the image")
        energies = _energies(unary, probabilities, logits)
        self.shape, energies = find_grid(self.image, energies, shape)
        self.labels = energies.shape[-1]
        self._normalize = normalize
        choice(normalize, NORMALIZATIONS, "normalize")
        self._core = _core.Model(
            self.shape,
            one_or_many(spacing, len(self.shape), "spacing"),
            self.labels,
            choice(operator, OPERATORS, "operator"),
            threads,
        )
        self._temperature = float(temperature)
        self._strength = _check_strength(strength)
        self._strength_factor = float(strength_factor)
        if not 0 < self._strength_factor < math.inf:
            raise ValueError(f"strength_factor is {strength_factor!r}; it must be above zero")
        self._spatial_share = float(spatial_share)
        if not 0 <= self._spatial_share <= 1:
            raise ValueError(f"spatial_share is {spatial_share!r}; it must lie between 0 and 1")
        self._sharing = {}  # kernels without weights of their own: their number, is it spatial?
        self._core.set_unary(energies)
        self._core.apply_temperature(self._temperature)
        if spatial is not None:
            sigma, weight = _with_weight(spatial, 1, "spatial", "a sigma, (sigma, weight) or None")
            self._add_spatial(*sigma, weight)
        if bilateral is not None and self.image is not None:
            sigmas, weight = _with_weight(
                bilateral, 2, "bilateral",
                "(sigma, channel sigma), (sigma, channel sigma, weight) or None"
            )
            self._add_bilateral(*sigmas, weight)
        if self._strength is not None and not self._sharing and self._core.counts()["kernels"]:
            raise ValueError(
                "every kernel has a weight of its own; leave out a weight, or leave out strength="
            )
        self._share_strength()
        if cliques is not None:
            self.set_cliques(cliques, clique_cost)

    # ---- what the model is made of

    def set_unary(self, unary=None, *, probabilities=None, logits=None):
        """Replace the energies; the grid and the number of labels stay."""
        energies = place_channels_last(
            _energies(unary, probabilities, logits), self.shape, "the energies"
        )
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
        if image is None:
            image = self.image
        if image is None:
            raise ValueError("a bilateral kernel needs an image")
        channels = place_channels_last(image, self.shape, "the image")
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
        """Change the weight of a kernel; nothing has to be built again."""
        self._core.set_weight(kernel, float(weight))
        self._sharing.pop(kernel, None)

    @property
    def strength(self):
        """What it costs a pixel to disagree with everything around it: twice the sum of the weights."""
        return self._core.strength()[0]

    def set_strength(self, strength="auto"):
        """Change the strength that kernels without weights of their own share, a number or "auto";
        nothing has to be built again."""
        self._strength = _check_strength(strength)
        if not self._sharing:
            raise ValueError("every kernel has a weight of its own; use set_weight")
        self._share_strength()

    def measured_strength(self):
        """What suits the energies, as a dictionary: ``strength``, the one that "auto" takes; ``rho``, how
        often neighbours of like colour disagree, as a part of what independent errors with the
        probability that the energies state would give; ``temperature``, what the energies would have
        to be divided by to make that 1; ``margin``, the geometric mean of the differences between the
        two best energies; ``pairs``, the neighbours that were compared."""
        return self._core.measure_strength()

    def _share_strength(self):
        if not self._sharing:
            return
        strength = self._strength
        if strength is None:
            strength = self._strength_factor * self._core.measure_strength()["strength"]
        # Several kernels of one kind have equal parts of what is that kind's.
        spatial = sum(self._sharing.values())
        others = len(self._sharing) - spatial
        share = 1.0 if not others else self._spatial_share if spatial else 0.0
        for number, is_spatial in self._sharing.items():
            part = share / spatial if is_spatial else (1 - share) / others
            self._core.set_weight(number, strength / 2 * part)

    def set_compatibility(self, kernel, compatibility):
        """None (Potts: unlike labels cost 1), a vector (its diagonal) or a symmetric matrix."""
        if compatibility is not None:
            compatibility = np.ascontiguousarray(
                array(compatibility, "the compatibility"), dtype=np.float32
            )
            if compatibility.ndim not in (1, 2):
                raise ValueError("a compatibility is None, a vector or a matrix")
        self._core.set_compatibility(kernel, compatibility)

    def set_cliques(self, cliques, cost=None):
        """Regions that are to agree: a map of region numbers (negative: none), the name of a method
        of ``superpixels`` ("slic", "meanshift"), or None.

        ``cost`` is a number, or (gamma, eta) for gamma * exp(-variance of the colours / eta); without
        one, gamma goes with the strength of the kernels as it is now.
        """
        if cliques is None:
            self._core.set_cliques(None, 0.0)
            return
        if isinstance(cliques, str):
            if self.image is None:
                raise ValueError("superpixels need an image")
            cliques = superpixels(self.image, cliques, shape=self.shape)
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
        image = place_channels_last(self.image, self.shape, "the image")
        self._core.set_cliques(regions, 0.0)
        self._core.set_clique_costs(image, float(gamma), float(eta))

    # ---- what it is good for

    def solve(self, method="mf", *, start=None, marginals=True, trace=True, progress=None, **settings):
        """The best labelling that a method finds: "mf", "qp" or "lp", the last with a lower bound.

        ``progress`` is called after every iteration with a dictionary; a true answer stops the run.
        Settings are those of the library: iterations, time_limit_s, gap, stationarity, damping,
        rounding_draws, seed, polish, polish_rounds, lp_schedule ("huber", "proximal" or "paper").
        """
        settings = {name: value for name, value in settings.items() if value is not None}
        for name, value in settings.items():
            if isinstance(value, (float, np.floating)) and float(value).is_integer():
                if name in ("iterations", "rounding_draws", "polish_rounds"):
                    settings[name] = int(value)
        settings["trace"] = bool(trace)
        labels = np.empty(self.shape, np.uint16)
        rows = None
        if marginals:
            padded = -(-self.labels // 8) * 8
            rows = np.empty(self.shape + (padded,), np.float32)
        if start is not None:
            start = _labelling(start, self.shape, self.labels)
        info = self._core.solve(method, settings, labels, rows, start, progress)
        if rows is not None:
            rows = np.moveaxis(rows[..., : self.labels], -1, 0)
        return Result(labels, rows, info, self.image)

    def energy(self, labels):
        """The energy of a labelling, and its parts."""
        return Energy(**self._core.energy(_labelling(labels, self.shape, self.labels)))

    def certify(self, labels, *, time_limit_s=None, gap=None, iterations=None, progress=None):
        """A proof of how good a labelling is, wherever it comes from: a lower bound on the energy of
        every labelling."""
        return Certificate(
            **self._core.certify(
                _labelling(labels, self.shape, self.labels),
                -1.0 if time_limit_s is None else float(time_limit_s),
                -1.0 if gap is None else float(gap),
                -1 if iterations is None else int(iterations),
                progress,
            )
        )


def _check_strength(strength):
    """None for "auto", else the number."""
    if isinstance(strength, str):
        if strength != "auto":
            raise ValueError(f'strength is {strength!r}; it must be "auto" or a number')
        return None
    number = float(strength)
    if not 0 <= number < math.inf:
        raise ValueError(f"strength is {strength!r}; it must not be negative")
    return number


def _with_weight(values, sigmas, what, meaning):
    """The sigmas, and the weight or None."""
    if sigmas == 1 and np.ndim(values) == 0:
        return (values,), None
    try:
        unpacked = tuple(values)
    except TypeError:
        unpacked = ()
    if len(unpacked) not in (sigmas, sigmas + 1):
        raise ValueError(f"{what} is {values!r}; it must be {meaning}")
    return unpacked[:sigmas], unpacked[sigmas] if len(unpacked) > sigmas else None


def _unpack(values, count, what, meaning):
    try:
        unpacked = tuple(values)
    except TypeError:
        unpacked = ()
    if len(unpacked) != count:
        raise ValueError(f"{what} is {values!r}; it must be {meaning}")
    return unpacked


_MODEL_OPTIONS = (
    "unary probabilities logits spatial bilateral strength strength_factor spatial_share temperature normalize cliques clique_cost "
    "spacing shape operator threads"
).split()


def solve(image=None, *, method="mf", **options):
    """Make a model and solve it: all options of ``Model`` and of ``Model.solve``.

    >>> import numpy as np
    >>> image = np.zeros((6, 8, 3), np.uint8); image[:, 4:] = 200
    >>> probabilities = np.full((6, 8, 2), 0.5); probabilities[3, 1] = 0.9, 0.1
    >>> probabilities[3, 6] = 0.1, 0.9
    >>> result = solve(image, probabilities=probabilities, method="mf", spatial=None)
    >>> bool((result.labels == (image[..., 0] > 0)).all())
    True
    """
    own = {name: options.pop(name) for name in _MODEL_OPTIONS if name in options}
    return Model(image, **own).solve(method, **options)


def solve_many(problems, *, threads=0, **options):
    """Solve many problems over all cores; results come in the order of the problems.

    A problem is a dictionary of options of ``solve`` (with ``image``, if there is one); ``options`` are
    common to all. Each problem is solved in one thread, so results are those of ``solve``.

    >>> import numpy as np
    >>> problems = [{"unary": np.random.default_rng(i).random((2, 5, 6))} for i in range(4)]
    >>> [result.labels.shape for result in solve_many(problems, method="mf")]
    [(5, 6), (5, 6), (5, 6), (5, 6)]
    """
    problems = [dict(options, **problem) for problem in problems]
    if threads == 0:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if threads < 1:
        raise ValueError(f"threads is {threads}; it must not be negative")

    def one(problem):
        return solve(problem.pop("image", None), threads=1, **problem)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(one, problem) for problem in problems]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def energy(image=None, *, labels, **options):
    """The energy of a labelling under a model with the options of ``Model``.

    >>> import numpy as np
    >>> energy(unary=np.array([[0.0, 1], [1, 0], [1, 0]]), labels=[0, 1, 1], spatial=(1, 0)).total
    0.0
    """
    return Model(image, **options).energy(labels)


def certify(image=None, *, labels, time_limit_s=None, gap=None, iterations=None, **options):
    """A lower bound, and how far a labelling can be from the best one."""
    return Model(image, **options).certify(
        labels, time_limit_s=time_limit_s, gap=gap, iterations=iterations
    )


def superpixels(
    image,
    method="slic",
    *,
    region_size=None,
    compactness=None,
    spatial_bandwidth=None,
    range_bandwidth=None,
    min_region=None,
    shape=None,
    threads=0,
):
    """Regions of one colour: int32, numbered from 0. ``method`` is "slic" or "meanshift".

    The image is (H, W), (H, W, 3) or (3, H, W), on the scale 0 to 255.

    >>> import numpy as np
    >>> image = np.zeros((32, 32, 3), np.uint8); image[:, 16:] = 255
    >>> len(np.unique(superpixels(image, region_size=16)))
    4
    """
    values = array(image, "the image")
    shape = grid_of_image(values, shape)
    channels = place_channels_last(values, tuple(shape), "the image")
    regions = np.empty(shape, np.int32)
    numbers = [
        -1.0 if value is None else float(value)
        for value in (region_size, compactness, spatial_bandwidth, range_bandwidth)
    ]
    least = -1 if min_region is None else int(min_region)
    _core.superpixels(tuple(shape), channels, method, *numbers, least, threads, regions)
    return regions
