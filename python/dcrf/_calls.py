"""Calls of mean field that are made together: problems that are alike share the launches of a GPU."""

import math

import numpy as np

from . import _core
from ._device import device_name, on_device
from ._gpu import DeviceArray, contiguous

_ALIGNED = 256  # bytes at which the results of others begin


class Calls:
    """What is collected for one call of the library, of about ``expected`` problems. Their results on a GPU lie in
    the same memory, which is freed when the last of them is let go."""

    def __init__(self, expected=1):
        self._left = expected
        self._calls = []
        self._rooms = {}

    def __len__(self):
        return len(self._calls)

    def empty(self, shape, dtype, device):
        """Room for a result on a device."""
        dtype = np.dtype(dtype)
        step = -(-math.prod(shape) * dtype.itemsize // _ALIGNED) * _ALIGNED
        owner, address, left = self._rooms.pop((step, device), (None, 0, 0))
        if not left:
            left = max(1, self._left - len(self._calls))
            owner, address = _core.device_memory(left * step, device)
        if left > 1:
            self._rooms[step, device] = owner, address + step, left - 1
        return DeviceArray(owner, address, dtype, shape, contiguous(shape, dtype.itemsize), device)

    def add(self, device, threads, streams, arguments):
        self._calls.append((device, threads, streams, arguments))

    def run(self):
        """All of them; neighbours for the same device in one go."""
        self._rooms.clear()
        begin = 0
        while begin < len(self._calls):
            device, threads, _, _ = self._calls[begin]
            end = begin + 1
            while end < len(self._calls) and self._calls[end][:2] == (device, threads):
                end += 1
            self._run(begin, end)
            begin = end

    def run_each(self):
        """One by one; for each None, or what went wrong."""
        outcomes = []
        for begin in range(len(self._calls)):
            try:
                outcomes.append(self._run(begin, begin + 1))
            except Exception as error:
                outcomes.append(error)
        return outcomes

    def _run(self, begin, end):
        device, threads = self._calls[begin][:2]
        streams = sorted({stream for _, _, streams, _ in self._calls[begin:end] for stream in streams})
        on_device(
            _core.mean_field,
            device,
            [arguments for _, _, _, arguments in self._calls[begin:end]],
            threads if device_name(device) == "cpu" else 1,
            streams,
        )
