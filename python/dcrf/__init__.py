"""The best labelling under a dense conditional random field, and a proof of how good it is.

    E(x) = sum_a phi_a(x_a)                                       unary energies, often -log p
         + sum_m sum_a sum_{b != a} w_m k_m(a, b) [x_a != x_b]    kernels, over ordered pairs
         + sum_p C_p [the pixels of clique p do not all agree]    cliques, often superpixels

``solve`` makes a model and solves it; ``Model`` keeps it; ``solve_many`` uses all cores for
many images; ``batch`` compares methods on them. ``mean_field`` goes from arrays to arrays, also on a GPU.
Programs written for pydensecrf use ``dcrf.pydensecrf``.
"""

from . import _core, metrics
from ._batch import Comparison, batch
from ._compatibility import Cuts, Tree
from ._dataset import DataSet
from ._device import Device, DeviceError, devices
from ._explain import Explanation
from ._gpu import DeviceArray
from ._many import ProblemError, solve_each, solve_many
from ._mean_field import MeanFieldResult, mean_field
from ._mean_field_many import mean_field_batch, mean_field_many
from ._model import Model
from ._once import certify, energy, solve, verify
from ._operator import Operator
from ._presets import PRESETS
from ._results import Certificate, Energy, LeftOut, Result, Verification
from ._scribbles import Scribbles
from ._superpixels import superpixels
from ._tune import tune

__version__ = _core.version()
# What a progress callback returns to stop a run.
STOP = "stop"
__all__ = [
    "Certificate",
    "Comparison",
    "Cuts",
    "DataSet",
    "Device",
    "DeviceArray",
    "DeviceError",
    "Energy",
    "Explanation",
    "LeftOut",
    "MeanFieldResult",
    "Model",
    "Operator",
    "PRESETS",
    "ProblemError",
    "Result",
    "STOP",
    "Scribbles",
    "Tree",
    "Verification",
    "batch",
    "certify",
    "devices",
    "energy",
    "mean_field",
    "mean_field_batch",
    "mean_field_many",
    "metrics",
    "solve",
    "solve_each",
    "solve_many",
    "superpixels",
    "tune",
    "verify",
]
