"""A kernel as a linear operator: the bilateral filter by itself."""

import math

import numpy as np

from . import _core
from ._arrays import array, one_or_many, thread_count
from ._choices import NORMALIZATIONS, OPERATORS, choice
from ._device import on_device
from ._layout import grid_of_image, place_channels_last
from ._superpixels import on_the_scale, without_bools

_DIRECTIONS = {"symmetric": 0, "forward": 1, "adjoint": 2}


class Operator:
    """The N x N matrix K of one Gaussian kernel over N pixels, planned once, applied many times and never
    stored: ``k(a, b) = exp(-|f_a - f_b|^2 / 2)``, with ``normalize="symmetric"`` divided by the square roots
    of its row sums on both sides.

    ``Operator(shape=(H, W), sigma=3)`` is a spatial kernel, ``Operator(image, sigma=80, channel_sigma=13)`` a
    bilateral one, ``Operator(features=f)`` one over your own features (..., d), already divided by their
    sigmas. ``operator`` is "fast" (a convolution, or the permutohedral lattice), "exact", "grid" or
    "lattice". ``device`` is as for ``Model``.

    ``shape`` is (N, N), ``grid`` that of the pixels. ``scipy.sparse.linalg`` takes it as a linear operator:
    ``cg(K, b)``, ``aslinearoperator(K)``.

    >>> import numpy as np
    >>> image = np.zeros((6, 8), np.uint8); image[:, 4:] = 200
    >>> K = Operator(image, sigma=3, channel_sigma=10, normalize="none", operator="exact")
    >>> smooth = K @ image.astype(np.float32) / K.row_sums()      # an edge stays an edge
    >>> round(float(smooth[:, :4].max())), round(float(smooth[:, 4:].min()))
    (0, 200)
    """

    def __init__(
        self,
        image=None,
        *,
        sigma=None,
        channel_sigma=None,
        features=None,
        shape=None,
        spacing=1.0,
        normalize="symmetric",
        operator="fast",
        threads=0,
        device=None,
    ):
        if (image is None) != (channel_sigma is None):
            raise TypeError("a bilateral kernel takes an image and channel_sigma=")
        if (features is None) == (sigma is None):
            raise TypeError("give sigma= (with or without an image), or features= alone")
        if features is not None and image is not None:
            raise TypeError("features= takes no image: it has all features")
        channels = channel_sigmas = sigmas = None
        if features is not None:
            channels = array(features, "the features")
            self.grid = tuple(shape) if shape is not None else channels.shape[:-1]
            channels = place_channels_last(channels, self.grid, "the features")
        elif image is not None:
            image = array(without_bools(image), "the image")
            self.grid = grid_of_image(image, shape)
            channels = on_the_scale(place_channels_last(image, self.grid, "the image"), channel_sigma)
            channel_sigmas = one_or_many(channel_sigma, channels.shape[-1], "channel_sigma")
        elif shape is None:
            raise TypeError("a spatial kernel needs shape=")
        else:
            self.grid = tuple(int(size) for size in np.atleast_1d(shape))
        if sigma is not None:
            sigmas = one_or_many(sigma, len(self.grid), "sigma")
        self._made_of = (
            self.grid,
            one_or_many(spacing, len(self.grid), "spacing"),
            sigmas,
            channels,
            channel_sigmas,
            choice(normalize, NORMALIZATIONS, "normalize"),
            choice(operator, OPERATORS, "operator"),
            thread_count(threads),
        )
        if channels is not None:  # the caller's may change
            self._made_of = self._made_of[:3] + (np.array(channels),) + self._made_of[4:]
        self._core = on_device(_core.Operator, device, *self._made_of)

    def __getstate__(self):
        return self.grid, self._made_of, self.device

    def __setstate__(self, state):
        self.grid, self._made_of, device = state
        self._core = on_device(_core.Operator, device, *self._made_of)

    @property
    def shape(self):
        """(N, N): that of the matrix."""
        size = math.prod(self.grid)
        return size, size

    @property
    def dtype(self):
        return np.dtype(np.float32)

    def __repr__(self):
        info = self._core.info()
        vertices = f", {info['vertices']} vertices" if info["vertices"] else ""
        return f"<dcrf.Operator {self.kind} over {self.grid}{vertices}, {info['bytes']} bytes>"

    @property
    def device(self):
        """Where it is applied: "cpu", "cuda:0", ..."""
        return self._core.device()

    @property
    def kind(self):
        """"exact", "grid" or "lattice"."""
        number = self._core.info()["kind"]
        return next(name for name, value in OPERATORS.items() if value == number)

    @property
    def vertices(self):
        """The number of lattice vertices; 0 for other operators."""
        return self._core.info()["vertices"]

    @property
    def nbytes(self):
        """The memory that the plan holds."""
        return self._core.info()["bytes"]

    def apply(self, values, out=None, direction="symmetric"):
        """K times values over the grid, or over the grid with channels as a last axis: float32.

        On the lattice a single pass is not symmetric: "forward" is one, "adjoint" its transpose, and
        "symmetric" their mean, which is what models use. For other operators all three are the same.
        """
        given = array(values, "values")
        if given.shape == self.grid:
            channels = 1
        elif given.ndim == len(self.grid) + 1 and given.shape[:-1] == self.grid and given.shape[-1] > 0:
            channels = given.shape[-1]
        else:
            raise ValueError(
                f"values has the shape {given.shape}; {self.grid} or {self.grid + ('channels',)} is needed"
            )
        row = _core.padded(channels)
        rows = np.zeros(self.grid + (row,), np.float32)
        rows[..., :channels] = given.reshape(self.grid + (channels,))
        if not np.isfinite(rows).all():
            raise ValueError("values holds NaN or infinity")
        result = np.empty_like(rows)
        self._core.apply(choice(direction, _DIRECTIONS, "direction"), rows, result, channels)
        return _into(out, result[..., :channels].reshape(given.shape))

    def adjoint(self, values, out=None):
        """The transpose of one pass: ``apply(values, direction="adjoint")``."""
        return self.apply(values, out, "adjoint")

    def matvec(self, values):
        """K times a vector of N numbers, or (N, 1); float32, as scipy's linear operators expect."""
        given = np.asarray(values)
        if given.shape not in (self.shape[:1], (self.shape[0], 1)):
            raise ValueError(f"values has the shape {given.shape}; {self.shape[:1]} is needed")
        return self.apply(given.reshape(self.grid)).reshape(given.shape)

    def matmat(self, values):
        """K times a matrix (N, k)."""
        given = np.asarray(values)
        if given.ndim != 2 or given.shape[0] != self.shape[0]:
            raise ValueError(f"values has the shape {given.shape}; ({self.shape[0]}, k) is needed")
        return self.apply(given.reshape(self.grid + given.shape[1:])).reshape(given.shape)

    # K is symmetric.
    rmatvec = matvec
    rmatmat = matmat

    def __matmul__(self, values):
        """K times values over the grid, with channels or without, or flattened: (N,) or (N, k)."""
        shape = np.shape(values)
        is_flat = len(self.grid) > 1 and shape[:1] == self.shape[:1] and len(shape) <= 2
        if is_flat and shape != self.grid:
            return self.matvec(values) if len(shape) == 1 else self.matmat(values)
        return self.apply(values)

    def row_sums(self, out=None):
        """K 1, over the grid."""
        result = np.empty(self.grid, np.float32)
        self._core.row_sums(result)
        return _into(out, result)

    def diagonal(self, out=None):
        """The diagonal of K, over the grid."""
        result = np.empty(self.grid, np.float32)
        self._core.diagonal(result)
        return _into(out, result)


def _into(out, result):
    """The result, in the caller's array where there is one."""
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError(f"out has the shape {out.shape}; {result.shape} is needed")
    np.copyto(out, result, casting="same_kind")
    return out
