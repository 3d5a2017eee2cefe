"""A kernel as a linear operator: the bilateral filter by itself."""

import numpy as np

from . import _core
from ._arrays import array, one_or_many, thread_count
from ._choices import NORMALIZATIONS, OPERATORS, choice
from ._device import on_device
from ._layout import grid_of_image, place_channels_last

_DIRECTIONS = {"symmetric": 0, "forward": 1, "adjoint": 2}


class Operator:
    """The N x N matrix K of one Gaussian kernel over N pixels, planned once, applied many times and never
    stored: k(a, b) = exp(-|f_a - f_b|^2 / 2), with ``normalize="symmetric"`` divided by the square roots of
    its row sums on both sides.

    ``Operator(shape=(H, W), sigma=3)`` is a spatial kernel, ``Operator(image, sigma=80, channel_sigma=13)`` a
    bilateral one, ``Operator(features=f)`` one over your own features (..., d), already divided by their
    sigmas. ``operator`` is "fast" (a convolution, or the permutohedral lattice), "exact", "grid" or
    "lattice". ``device`` is as for ``Model``.

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
            self.shape = tuple(shape) if shape is not None else channels.shape[:-1]
            channels = place_channels_last(channels, self.shape, "the features")
        elif image is not None:
            image = array(image, "the image")
            self.shape = grid_of_image(image, shape)
            channels = place_channels_last(image, self.shape, "the image")
            channel_sigmas = one_or_many(channel_sigma, channels.shape[-1], "channel_sigma")
        elif shape is None:
            raise TypeError("a spatial kernel needs shape=")
        else:
            self.shape = tuple(int(size) for size in np.atleast_1d(shape))
        if sigma is not None:
            sigmas = one_or_many(sigma, len(self.shape), "sigma")
        self._core = on_device(
            _core.Operator,
            device,
            self.shape,
            one_or_many(spacing, len(self.shape), "spacing"),
            sigmas,
            channels,
            channel_sigmas,
            choice(normalize, NORMALIZATIONS, "normalize"),
            choice(operator, OPERATORS, "operator"),
            thread_count(threads),
        )

    def __repr__(self):
        info = self._core.info()
        vertices = f", {info['vertices']} vertices" if info["vertices"] else ""
        return f"<dcrf.Operator {self.kind} over {self.shape}{vertices}, {info['bytes']} bytes>"

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
        """Of the lattice; 0 elsewhere."""
        return self._core.info()["vertices"]

    @property
    def nbytes(self):
        """The memory that the plan holds."""
        return self._core.info()["bytes"]

    def apply(self, values, out=None, direction="symmetric"):
        """K times values over the grid, or over the grid with channels as a last axis: float32.

        On the lattice a single pass is not symmetric: "forward" is one, "adjoint" its transpose, and
        "symmetric" their mean, which is what models use. Elsewhere all three are one.
        """
        given = array(values, "values")
        if given.shape == self.shape:
            channels = 1
        elif given.ndim == len(self.shape) + 1 and given.shape[:-1] == self.shape and given.shape[-1] > 0:
            channels = given.shape[-1]
        else:
            raise ValueError(
                f"values has the shape {given.shape}; {self.shape} or {self.shape + ('channels',)} is needed"
            )
        row = _core.padded(channels)
        rows = np.zeros(self.shape + (row,), np.float32)
        rows[..., :channels] = given.reshape(self.shape + (channels,))
        if not np.isfinite(rows).all():
            raise ValueError("values holds NaN or infinity")
        result = np.empty_like(rows)
        self._core.apply(choice(direction, _DIRECTIONS, "direction"), rows, result, channels)
        return _into(out, result[..., :channels].reshape(given.shape))

    def adjoint(self, values, out=None):
        """The transpose of one pass: ``apply(values, direction="adjoint")``."""
        return self.apply(values, out, "adjoint")

    def __matmul__(self, values):
        return self.apply(values)

    def row_sums(self, out=None):
        """K 1, over the grid."""
        result = np.empty(self.shape, np.float32)
        self._core.row_sums(result)
        return _into(out, result)

    def diagonal(self, out=None):
        """The diagonal of K, over the grid."""
        result = np.empty(self.shape, np.float32)
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
