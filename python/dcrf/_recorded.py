"""A model of the library that knows what it was made of, so that it can be shown, copied, pickled and built
again with another sigma."""

import numpy as np

from . import _core
from ._device import on_device

_SIGMAS, _CHANNELS, _CHANNEL_SIGMAS, _WEIGHT, _IS_SYMMETRIC = range(5)


class RecordedModel:
    """``_core.Model``, and a record of the calls that describe it. What is not recorded goes through."""

    def __init__(self, shape, spacing, labels, operator, threads, device=None):
        arguments = (tuple(shape), tuple(spacing), labels, operator, threads)
        self._unary = None
        self._temperature = 1.0
        self._kernels = []
        self._compatibilities = {}
        self._cliques = None
        self._clique_costs = None
        self.model = on_device(_core.Model, device, *arguments)
        self._arguments = arguments + (self.model.device(),)

    def __getattr__(self, name):
        if name == "model":  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self.model, name)

    # ---- what is recorded

    def set_unary(self, energies):
        self.model.set_unary(energies)
        self._unary, self._temperature = energies, 1.0

    def apply_temperature(self, temperature):
        self.model.apply_temperature(temperature)
        self._temperature *= temperature

    def add_kernel(self, sigmas, channels, channel_sigmas, weight, is_symmetric):
        if channels is not None:
            channels = np.array(channels)  # the caller's may change
        kernel = [sigmas, channels, channel_sigmas, weight, is_symmetric]
        self.model.add_kernel(*kernel)
        self._kernels.append(kernel)

    def set_weight(self, kernel, weight):
        self.model.set_weight(kernel, weight)
        self._kernels[kernel][_WEIGHT] = weight

    def set_compatibility(self, kernel, compatibility):
        self.model.set_compatibility(kernel, compatibility)
        self._compatibilities[kernel] = compatibility

    def set_cliques(self, regions, cost):
        self.model.set_cliques(regions, cost)
        self._cliques, self._clique_costs = (regions, cost), None

    def set_clique_costs(self, image, gamma, eta):
        self.model.set_clique_costs(image, gamma, eta)
        self._clique_costs = (image, gamma, eta)

    # ---- what the record is for

    def set_sigma(self, kernel, sigmas, channel_sigmas):
        """Change sigmas (None: as they are) of a kernel, and build the model again."""
        if not 0 <= kernel < len(self._kernels):
            raise ValueError(f"there is no kernel {kernel}: there are {len(self._kernels)}")
        old = self._kernels[kernel]
        changed = list(old)
        for place, values in ((_SIGMAS, sigmas), (_CHANNEL_SIGMAS, channel_sigmas)):
            if values is not None and old[place] is None:
                raise ValueError(f"kernel {kernel} has no such sigma")
            changed[place] = old[place] if values is None else values
        self._kernels[kernel] = changed
        try:
            self.model = self._build()
        except Exception:
            self._kernels[kernel] = old
            raise

    def arguments(self):
        """Shape, spacing, labels, operator, threads, device."""
        return self._arguments

    def parts(self):
        """The kernels as ``_core`` takes them: sigmas, channels, channel sigmas, weight, is it symmetric?"""
        return [tuple(kernel) for kernel in self._kernels]

    def unary(self):
        """The unary energies, (..., labels)."""
        return self._unary

    def kernels(self):
        """The kernels as dictionaries."""
        result = []
        for number, (sigmas, channels, channel_sigmas, weight, is_symmetric) in enumerate(self._kernels):
            kind = "spatial" if channels is None else "features" if sigmas is None else "bilateral"
            kernel = {"kind": kind, "weight": weight, "normalize": "symmetric" if is_symmetric else "none"}
            if sigmas is not None:
                kernel["sigma"] = sigmas
            if channel_sigmas is not None:
                kernel["channel_sigma"] = channel_sigmas
            kernel["compatibility"] = self._compatibilities.get(number)
            result.append(kernel)
        return result

    def __copy__(self):
        state = self.__getstate__()
        state["_kernels"] = [list(kernel) for kernel in self._kernels]
        state["_compatibilities"] = dict(self._compatibilities)
        other = RecordedModel.__new__(RecordedModel)
        other.__setstate__(state)
        return other

    def __getstate__(self):
        state = dict(self.__dict__)
        del state["model"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.model = self._build()

    def _build(self):
        model = _core.Model(*self._arguments)
        if self._unary is not None:
            model.set_unary(self._unary)
        if self._temperature != 1:
            model.apply_temperature(self._temperature)
        for kernel in self._kernels:
            model.add_kernel(*kernel)
        for kernel, compatibility in self._compatibilities.items():
            model.set_compatibility(kernel, compatibility)
        if self._cliques is not None:
            model.set_cliques(*self._cliques)
        if self._clique_costs is not None:
            model.set_clique_costs(*self._clique_costs)
        return model
