"""Functions that make a model and use it once."""

from ._model import SETTINGS, Model
from ._options import check_options, options_of, with_options_of
from ._scribbles import options_from_scribbles

_MODEL_OPTIONS = frozenset(options_of(Model))


@with_options_of(Model, Model.solve)
def solve(image=None, *, method=None, scribbles=None, **options):
    """Make a model and solve it: all options of ``Model`` and of ``Model.solve``.

    ``scribbles``, instead of energies, is a map of strokes as ``Scribbles.update`` takes it; energies
    and kernels are then those of ``Scribbles``, unless kernels are given.

    >>> import numpy as np
    >>> image = np.zeros((6, 8, 3), np.uint8); image[:, 4:] = 200
    >>> probabilities = np.full((6, 8, 2), 0.5); probabilities[3, 1] = 0.9, 0.1
    >>> probabilities[3, 6] = 0.1, 0.9
    >>> result = solve(image, probabilities=probabilities, method="mf", spatial=None)
    >>> bool((result.labels == (image[..., 0] > 0)).all())
    True
    """
    return solve_until(None, image, method=method, scribbles=scribbles, **options)


def solve_until(is_unwanted, image=None, *, method=None, scribbles=None, **options):
    """``solve``; ``is_unwanted`` is asked in all stages whether to give up."""
    check_options(solve, options)
    own = {name: options.pop(name) for name in _MODEL_OPTIONS & options.keys()}
    has_scribble_kernels = scribbles is not None and not own.keys() & {"spatial", "bilateral", "strength"}
    if scribbles is not None:
        own = options_from_scribbles(image, scribbles, own)
    model = Model(image, **own)
    model._is_of_a_map = model._is_of_a_map or scribbles is not None
    if has_scribble_kernels:
        # What suits is measured for energies whose pixels err by themselves, and those of scribbles do not.
        model._is_strength_judged = False
    settings = {name: options.pop(name) for name in SETTINGS & options.keys()}
    return model._solve(method, settings, is_unwanted=is_unwanted, **options)


@with_options_of(Model)
def energy(image=None, *, labels, void=None, **options):
    """The energy of a labelling under a model with the options of ``Model``.

    >>> import numpy as np
    >>> energy(unary=np.array([[0.0, 1], [1, 0], [1, 0]]), labels=[0, 1, 1], spatial=(1, 0)).total
    0.0
    """
    check_options(energy, options)
    return Model(image, **options).energy(labels, void)


@with_options_of(Model, without=("labels",))
def certify(image=None, *, labels, void=None, time_limit_s=None, gap=None, iterations=None, **options):
    """A lower bound, and how far a labelling can be from the best one."""
    check_options(certify, options)
    return Model(image, **options).certify(
        labels, void=void, time_limit_s=time_limit_s, gap=gap, iterations=iterations
    )


@with_options_of(Model, without=("labels",))
def verify(image=None, *, certificate, labels=None, void=None, **options):
    """Check a certificate against an image and its unaries; the options are those of ``Model``.

    >>> import numpy as np
    >>> image = np.zeros((6, 8, 3), np.uint8); image[:, 4:] = 200
    >>> probabilities = np.full((6, 8, 2), 0.5); probabilities[:, :4] = 0.6, 0.4
    >>> result = solve(image, probabilities=probabilities, method="lp", certificate=True)
    >>> found = verify(image, probabilities=probabilities, certificate=result.certificate)
    >>> bool((found.proven == result.proven).all())
    True
    """
    check_options(verify, options)
    return Model(image, **options).verify(certificate, labels, void)
