"""A drop-in for pydensecrf.

>>> import dcrf.pydensecrf.densecrf as dcrf
>>> from dcrf.pydensecrf.utils import unary_from_softmax

are all that a program changes. The numbers are those of the original (differences of rounding,
below 5e-5 in a probability on everything recorded); inputs may be of any type and memory order; mean field runs on all cores
and without the interpreter lock; and mistakes are exceptions.

This is another model than that of the package dcrf: the raw lattice, blurred one way, with its
diagonal; a pair counts once, so ``compat=10`` here is a weight of 5 there.
"""

from . import densecrf, eigen, utils

__all__ = ["densecrf", "eigen", "utils"]
