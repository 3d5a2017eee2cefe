"""From strokes to a mask."""

import numpy as np

from . import _core
from ._arrays import array, one_or_many, thread_count, whole_number
from ._layout import place_channels_last

_COUNTS = ("components", "refits", "iterations")
_SETTINGS = _COUNTS + (
    "colour_weight", "colour_limit", "distance_weight", "step_length", "spatial_sigma", "spatial_weight", "bilateral_sigma",
    "bilateral_channel_sigma", "bilateral_weight",
)
_NO_STROKE = 255


def _grid_under(strokes, image, shape):
    """The grid of an image and a map of strokes."""
    if shape is not None:
        return tuple(int(size) for size in np.atleast_1d(shape))
    if strokes is not None:
        return strokes.shape
    if image.ndim >= 3 and image.shape[-1] in (1, 3, 4):
        return image.shape[:-1]
    if image.ndim == 3 and image.shape[0] in (1, 3, 4):
        return image.shape[1:]
    if image.ndim > 3:
        raise ValueError(
            f"the image has the shape {image.shape}: which axis holds its channels cannot be told; "
            "pass shape="
        )
    return image.shape


def _stroke_map(strokes):
    values = array(strokes, "the strokes", integers=True)
    if values.dtype.kind == "f":
        raise TypeError("the strokes must hold integers: labels, and -1 or 255 where there is none")
    return values


def count_labels(strokes):
    """One more than the largest label that was drawn."""
    drawn = strokes[(strokes >= 0) & (strokes != _NO_STROKE)]
    return int(drawn.max()) + 1 if drawn.size else 0


class Scribbles:
    """Interactive segmentation: a few strokes per label give every pixel a label.

    ``image`` may be (H, W), (H, W, C) or (C, H, W), or a volume with its ``spacing``; pass ``shape`` if the
    channel axis is ambiguous. What depends on the image alone is computed once, so an update after one more stroke
    is fast; it does not depend on earlier strokes. Settings are those of ``dcrf_scribbles_settings`` in C; None
    means the default.

    >>> import numpy as np
    >>> image = np.zeros((20, 30, 3), np.uint8); image[:, 15:] = 200
    >>> strokes = np.full((20, 30), -1); strokes[10, 2:8] = 0; strokes[10, 20:28] = 1
    >>> scribbles = Scribbles(image)
    >>> bool((scribbles.update(strokes) == (image[..., 0] > 0)).all())
    True
    """

    def __init__(
        self,
        image,
        labels=2,
        *,
        spacing=1.0,
        shape=None,
        threads=0,
        components=None,
        colour_weight=None,
        colour_limit=None,
        distance_weight=None,
        step_length=None,
        refits=None,
        iterations=None,
        spatial_sigma=None,
        spatial_weight=None,
        bilateral_sigma=None,
        bilateral_channel_sigma=None,
        bilateral_weight=None,
    ):
        given = locals()
        settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
        self.image = array(image, "the image")
        self.shape = _grid_under(None, self.image, shape)
        self._label_count = int(labels)
        chosen = {
            name: whole_number(value, name) if name in _COUNTS else value for name, value in settings.items()
        }
        self._core = _core.Scribbles(
            self.shape,
            one_or_many(spacing, len(self.shape), "spacing"),
            place_channels_last(self.image, self.shape, "the image"),
            self._label_count,
            chosen,
            thread_count(threads),
        )

    def __repr__(self):
        drawn = self.info["strokes"]
        return f"<dcrf.Scribbles over {self.shape}, {self._label_count} labels; {drawn} pixels drawn on>"

    def update(self, strokes):
        """The mask of these strokes, int32: a map of the label of every pixel that was drawn on, and
        -1 or 255 elsewhere."""
        strokes = place_channels_last(_stroke_map(strokes), self.shape, "the strokes")
        self._core.set_strokes(strokes)
        self._core.update()
        return self.labels

    @property
    def labels(self):
        """The mask of the last update."""
        labels = np.empty(self.shape, np.uint16)
        self._core.labels(labels)
        return labels.astype(np.int32)

    @property
    def marginals(self):
        """How sure the last update was: float32, (labels, ...)."""
        rows = np.empty(self.shape + (self._label_count,), np.float32)
        self._core.marginals(rows)
        return np.moveaxis(rows, -1, 0)

    @property
    def energies(self):
        """The unary energies of the last update, float32, (labels, ...): ``unary=`` for a ``Model``."""
        rows = np.empty(self.shape + (self._label_count,), np.float32)
        self._core.energies(rows)
        return np.moveaxis(rows, -1, 0)

    @property
    def settings(self):
        """The settings in use; sigmas of channels are in the unit of the image."""
        return self._core.settings()

    @property
    def kernels(self):
        """``spatial`` and ``bilateral`` as a ``Model`` takes them."""
        used = self.settings
        spatial = (used["spatial_sigma"], used["spatial_weight"])
        bilateral = (
            used["bilateral_sigma"],
            used["bilateral_channel_sigma"],
            used["bilateral_weight"],
        )
        return {
            "spatial": spatial if spatial[-1] > 0 else None,
            "bilateral": bilateral if bilateral[-1] > 0 else None,
        }

    @property
    def info(self):
        """Pixels drawn on, pixels that the last update changed, seconds it took."""
        return self._core.info()


def options_from_scribbles(image, scribbles, options):
    """The options of a ``Model`` from those of ``solve`` with ``scribbles=``."""
    if image is None:
        raise TypeError("scribbles= needs an image")
    if any(options.get(name) is not None for name in ("unary", "probabilities", "logits")):
        raise TypeError("give scribbles= or energies, not both")
    strokes = _stroke_map(scribbles)
    shape = _grid_under(strokes, None, options.get("shape"))
    made = Scribbles(
        image,
        max(count_labels(strokes), 2),
        shape=shape,
        spacing=options.get("spacing", 1.0),
        threads=options.get("threads", 0),
    )
    made.update(strokes)
    kernels = made.kernels
    if options.get("strength", "auto") != "auto":
        # A strength that is asked for is shared by kernels without weights.
        kernels = {name: kernel and kernel[:-1] for name, kernel in kernels.items()}
    return {**kernels, **options, "shape": shape, "unary": made.energies}
