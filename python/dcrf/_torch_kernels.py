"""The kernels of a batch of pictures on a GPU, applied to rows (B, ..., padded labels): that of positions as a product of one small matrix
for each axis, the bilateral one as the library's lattice (``_core.Lattices``); and their derivatives by sigmas and pictures, whose
formulas stand in src/energy/pair_gradient.c and sigma_difference.c. The host waits for nothing."""

import collections
import math
import warnings
from typing import Any, Deque

import torch

from . import _core
from ._superpixels import UNIT_MESSAGE
from ._torch_work import LARGEST_DEVIATION, normalized_message

# Of taps along an axis, as in src/filter/grid/grid_taps.h.
_TRUNCATED = 8e-5
# As in src/filter/lattice/lattice_calibrate.c.
_CALIBRATION_SAMPLES, _CALIBRATION_TERMS = 128, 1 << 23
# As in src/energy/sigma_difference.c.
_STRETCH = 1.2
# Where a lattice with room for every vertex that there could be would take more, the host waits for their number.
MOST_ROOM_BYTES = 2 << 30


def _axis_matrices(size, factor, axes, is_symmetric, with_derivative):
    """exp(-(i - j)^2 factor^2 / 2) along one axis, cut off and normalized as the library does it, and if wanted its derivative by ln sigma."""
    places = torch.arange(size, dtype=torch.float64, device=factor.device)
    squares = (places * factor) ** 2
    taps = torch.exp(-0.5 * squares)
    inside = 2 * taps.cumsum(0) - 1
    total = 2 * torch.where(taps > 1e-12, taps, 0 * taps).sum() - 1
    after = torch.cat([taps[1:], 0 * taps[:1]])
    is_enough = (inside >= (1 - _TRUNCATED / axes) * total) & (after <= _TRUNCATED)
    taps = torch.where(is_enough.cumsum(0) - is_enough.to(torch.int64) == 0, taps, 0 * taps)
    distance = (places[:, None] - places[None]).abs().to(torch.int64)
    matrix = taps[distance]
    sums = matrix.sum(1)
    scale = sums.rsqrt() if is_symmetric else torch.ones_like(sums)
    normalized = scale[:, None] * matrix * scale
    if not with_derivative:
        return normalized.float(), None
    derivative = (taps * squares)[distance]
    change = -derivative.sum(1) / (2 * sums) if is_symmetric else 0 * sums
    derivative = scale[:, None] * derivative * scale + normalized * (change[:, None] + change)
    return normalized.float(), derivative.float()


class Positions:
    """The kernel of positions."""

    def __init__(self, task, shape, sigmas):
        self._task, self._shape, self._sigmas = task, shape, sigmas.detach().double()
        self._matrices, _ = self._make(False)
        self._derivatives = self._by_log_sigma = None
        self.diagonal = self._diagonal(self._matrices)

    def _make(self, with_derivatives):
        axes = len(self._shape)
        spacing = self._task.spacing if len(self._task.spacing) == axes else self._task.spacing * axes
        return zip(*[
            _axis_matrices(size, step / self._sigmas[axis], axes, self._task.is_symmetric, with_derivatives)
            for axis, (size, step) in enumerate(zip(self._shape, spacing))
        ])

    @staticmethod
    def _diagonal(matrices):
        found = torch.ones((1, 1), device=matrices[0].device)  # a place for the batch, one for the labels
        for matrix in matrices:
            found = found.unsqueeze(-2) * matrix.diagonal()[:, None]
        return found

    @staticmethod
    def _product(matrices, rows):
        shape = rows.shape
        for axis, matrix in enumerate(matrices):
            flat = rows.reshape(math.prod(shape[: axis + 1]), shape[axis + 1], -1)
            rows = torch.matmul(matrix, flat)
        return rows.reshape(shape)

    def apply(self, rows, channels):
        return self._product(self._matrices, rows)

    def begin(self, needs):
        self._by_log_sigma = [0] * len(self._matrices)
        if needs.sigmas:
            _, self._derivatives = self._make(True)

    def add_sigmas(self, span, adjoints, returned, channels):
        """Add what G . (K - diag) q says of the sigmas."""
        for axis, derivative in enumerate(self._derivatives):
            matrices = list(self._matrices)
            matrices[axis] = derivative
            diagonal = self._diagonal(matrices)
            for q, adjoint in zip(span.distributions(), adjoints):
                there = self._product(matrices, q).addcmul_(diagonal, q, value=-1)
                self._by_log_sigma[axis] = self._by_log_sigma[axis] + precise_dot(adjoint, there)

    def by_sigma(self):
        return torch.stack(self._by_log_sigma) / self._sigmas


def dot(one, other):
    return torch.dot(one.reshape(-1), other.reshape(-1))


def precise_dot(one, other):
    """In double but for the last axis, for sums that nearly cancel."""
    return (one * other).sum(-1).sum(dtype=torch.float64)


def make_lattices(features, pictures, channels, is_symmetric):
    """The lattices of rows of features, normalized symmetrically or not at all."""
    count, dimension = features.shape
    corners = dimension + 1
    row = _core.padded(channels)
    room = count * corners * (8 * corners + 4 * 6 * row + 48)
    stream = torch.cuda.current_stream(features.device).cuda_stream
    return _core.Lattices(
        f"cuda:{features.device.index}", stream, features.data_ptr(), count, dimension, pictures, is_symmetric,
        room > MOST_ROOM_BYTES,
    )


class Bilateral:
    """The bilateral kernel: s k s, k a lattice, s = (k 1)^-1/2, which the library's lattices have in them, or one number for each
    picture."""

    def __init__(self, task, image, sigmas, channels):
        self._task, self._image, self._sigmas, self._channels = task, image, sigmas.detach().double(), channels
        self._shape, self._axes = image.shape[2:], image.ndim - 2
        self._features = self._rows(self._sigmas)
        self._lattices, self._scale, self.diagonal = self._make(self._features)
        self._needs = None
        self._kept = {}

    def keep(self, update, filtered):
        """K q of an update, for the derivatives by sigmas."""
        self._kept[update] = filtered

    def _rows(self, sigmas):
        """The last axis first, then the channels; products in double, rounded once."""
        image, axes = self._image, self._axes
        spacing = self._task.spacing if len(self._task.spacing) == axes else self._task.spacing * axes
        columns = []
        for axis in reversed(range(axes)):
            size = self._shape[axis]
            line = torch.arange(size, dtype=torch.float64, device=image.device) * (spacing[axis] / sigmas[axis])
            place = [1] * (axes + 2)
            place[axis + 1] = size
            columns.append(line.float().reshape(place).expand(len(image), *self._shape, 1))
        if image.shape[1]:
            columns.append((image.movedim(1, -1).double() * (1 / sigmas[axes:])).float())
        return torch.cat(columns, -1).reshape(len(image) * math.prod(self._shape), -1)

    def _make(self, features):
        """Lattices, the factor of each picture or None, and the diagonal."""
        pictures = len(self._image)
        place = (pictures,) + tuple(self._shape) + (1,)
        lattices = make_lattices(features, pictures, self._channels, self._task.is_symmetric)
        diagonal = torch.empty(place, device=features.device)
        lattices.diagonal(diagonal.data_ptr())
        if self._task.is_symmetric:
            return lattices, None, diagonal
        scale = self._calibration(features, self._row_sums(lattices, len(features))).reshape(place)
        return lattices, scale, diagonal * scale * scale

    def _row_sums(self, lattices, count):
        ones = torch.zeros((count, _core.padded(1)), device=self._image.device)
        ones[:, 0] = 1
        sums = torch.empty_like(ones)
        lattices.apply(ones.data_ptr(), sums.data_ptr(), 1)
        return sums[:, 0]

    def _calibration(self, features, sums):
        """Of each picture: its lattice's row sums are the formula's on the average over some variables."""
        pictures = len(self._image)
        count = len(features) // pictures
        samples = min(count, max(_CALIBRATION_TERMS // count, _CALIBRATION_SAMPLES))
        if samples == count:
            chosen = torch.arange(count, device=features.device)
        else:
            steps = torch.arange(samples, dtype=torch.float64, device=features.device) * 0.6180339887498949
            chosen = (steps % 1.0 * count).to(torch.int64)
        found = []
        for rows, raw in zip(features.reshape(pictures, count, -1), sums.reshape(pictures, count)):
            exact = 0
            for some in chosen.split(max(1, (1 << 24) // count)):
                exact = exact + torch.exp(-0.5 * (rows[some][:, None] - rows[None]).square().sum(-1)).sum(dtype=torch.float64)
            found.append((exact / raw[chosen].sum(dtype=torch.float64)).sqrt().float().expand(count))
        return torch.cat(found)

    @staticmethod
    def _filter(lattices, scale, rows, channels):
        given = (rows if scale is None else rows * scale).contiguous()
        found = torch.empty_like(given)
        lattices.apply(given.data_ptr(), found.data_ptr(), channels)
        return found if scale is None else found.mul_(scale)

    def apply(self, rows, channels):
        return self._filter(self._lattices, self._scale, rows, channels)

    # By sigmas and features. The letters are those of src/energy/pair_gradient.c.

    def begin(self, needs):
        self._needs = needs
        axes, dimension = self._axes, self._features.shape[1]
        features = self._features.reshape(len(self._image), -1, dimension).double()
        self._centred = (features - features.mean(1, keepdim=True)).float().reshape(
            (len(self._image),) + tuple(self._shape) + (dimension,)
        )
        self._h = 0
        self._by_log_sigma = [0] * axes
        self._by_feature = 0
        self._differences = []
        if not needs.sigmas or dimension == axes:
            return
        every = range(axes, dimension)
        for places in [list(every)] if self._task.channels_share_sigma else [[place] for place in every]:
            pair = []
            for ratio in (_STRETCH, 1 / _STRETCH):
                factors = [ratio if place in places else 1.0 for place in range(dimension)]
                stretched = torch.cat([self._sigmas[i : i + 1] * factor for i, factor in enumerate(factors)])
                pair.append(self._make(self._rows(stretched)))
            self._differences.append([places, pair, 0])

    def collect(self, q, adjoint, returned, channels):
        """Add what G . (K - diag) q says of the picture."""
        filtered = self.apply(q, channels)
        if self._task.is_symmetric:
            both = (adjoint * filtered).addcmul_(q, returned).sum(-1)
            self._h = self._h + self.diagonal[..., 0] * (adjoint * q).sum(-1) - both / 2
        found = []
        for place in range(self._axes, self._centred.shape[-1]):
            f = self._centred[..., place, None]
            found.append(
                (adjoint * (f * filtered - self.apply(q * f, channels))).sum(-1)
                + (q * (f * returned - self.apply(adjoint * f, channels))).sum(-1)
            )
        self._by_feature = self._by_feature - torch.stack(found, -1)

    def add_sigmas(self, span, adjoints, returned, channels):
        """The same of the sigmas, but for what the normalization adds."""
        steps, own = list(zip(span.distributions(), adjoints)), 0
        for (q, adjoint), back, filtered in zip(steps, returned, span.in_order(self._kept)):
            filtered = self.apply(q, channels) if filtered is None else filtered
            both = (adjoint * filtered).addcmul_(q, back).addcmul_(self.diagonal * adjoint, q, value=-2)
            own = own + both.sum(-1)
        if self._task.is_symmetric and not self._needs.image:
            self._h = -own / 2
        for place in range(self._axes):
            f, mixed = self._centred[..., place], 0
            for q, adjoint in steps:
                given = q * f[..., None]
                mixed = mixed + (adjoint * self.apply(given, channels).addcmul_(self.diagonal, given, value=-1)).sum(-1)
            self._by_log_sigma[place] = precise_dot(f, f * own - 2 * mixed)
        for difference in self._differences:
            for sign, (lattices, scale, diagonal) in zip((1, -1), difference[1]):
                for q, adjoint in steps:
                    there = self._filter(lattices, scale, q, channels).addcmul_(diagonal, q, value=-1)
                    difference[2] = difference[2] + sign * precise_dot(adjoint, there)

    def finish(self):
        """What the normalization adds."""
        if not self._task.is_symmetric:
            return
        f, axes, dimension = self._centred, self._axes, self._centred.shape[-1]
        plain = make_lattices(self._features, len(self._image), self._channels, False)
        sums = self._row_sums(plain, len(self._features)).reshape(f.shape[:-1] + (1,)).clamp(min=0)
        inverse = sums.sqrt()
        h = torch.where(sums > 0, self._h[..., None] / sums, 0 * sums)
        block = torch.cat([torch.ones_like(h), f, f * f, h, h * f], -1) * inverse
        width = block.shape[-1]
        block = torch.nn.functional.pad(block, (0, _core.padded(width) - width))
        found = self.apply(block, width)
        sums, mixed, squared = found[..., :1], found[..., 1 : 1 + dimension], found[..., 1 + dimension : 1 + 2 * dimension]
        if self._needs.sigmas:
            terms = h * inverse * (f * (f * sums - 2 * mixed) + squared)
            for place in range(axes):
                self._by_log_sigma[place] = self._by_log_sigma[place] + terms[..., place].sum(dtype=torch.float64)
        if self._needs.image:
            at = 1 + 2 * dimension
            terms = h * (f * sums - mixed) + f * found[..., at : at + 1] - found[..., at + 1 : at + 1 + dimension]
            self._by_feature = self._by_feature - (terms * inverse)[..., axes:]

    def by_sigma(self):
        """Axes as the caller has them, then channels."""
        positions = [self._by_log_sigma[place] for place in reversed(range(self._axes))]
        channels = [0 * positions[0]] * (self._sigmas.numel() - self._axes)
        for places, _, found in self._differences:
            channels[places[0] - self._axes] = found / (2 * math.log(_STRETCH))
        return torch.stack(positions + channels) / self._sigmas

    def by_image(self):
        return (self._by_feature / self._sigmas[self._axes :].float()).movedim(-1, 1)


# ---- the scale of pictures


_reports: Deque[Any] = collections.deque()


def on_the_scale(task, image, sigmas):
    """The picture in single precision on the scale of its sigmas, and what it was multiplied by. The device decides, and the host is told
    when it comes by again: a picture from 0 to 1 is taken 255 times with a warning, one that was normalized gives NaN and an error."""
    picture = image.detach().float()
    if not task.has_bilateral or task.image_scale is not None or not image.dtype.is_floating_point or not image.numel():
        scale = 1.0 if task.image_scale is None or not task.has_bilateral else task.image_scale
        return (picture if scale == 1 else picture * scale), scale
    _tell()
    least, most = torch.aminmax(picture)
    sigma = sigmas.detach()[-image.shape[1] :].min().float()
    is_unit = (sigma >= 1) & (least >= 0) & (most > 0) & (most <= 1)
    is_normalized = (sigma >= 1) & (least < 0) & (torch.maximum(-least, most) < LARGEST_DEVIATION)
    one = torch.ones_like(least)
    scale = torch.where(is_normalized, math.nan * one, torch.where(is_unit, 255 * one, one))
    if picture.is_cuda:
        found = torch.stack([least, most, sigma, is_unit.float(), is_normalized.float()])
        there = torch.empty(5, pin_memory=True)
        there.copy_(found, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        _reports.append((done, there))
    return picture * scale, scale


def _tell():
    while _reports and _reports[0][0].query():
        least, most, sigma, is_unit, is_normalized = _reports.popleft()[1].tolist()
        if is_normalized:
            raise ValueError(normalized_message(least, most, sigma) + " (said of an earlier batch, whose results are NaN)")
        if is_unit:
            _reports.clear()
            warnings.warn(UNIT_MESSAGE, stacklevel=2)
