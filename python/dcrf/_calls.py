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
        self.was_measured = False  # the strength of a problem's kernels
        self._left = expected
        self._calls = []
        self._rooms = {}

    def __len__(self):
        return len(self._calls)

    def empty(self, shape, dtype, device):
        """Room for a result on a device, or where that is None on the host."""
        dtype = np.dtype(dtype)
        if device is None:
            return np.empty(shape, dtype)
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


class Stack(Calls):
    """Calls of the images of a batch, whose arrays have the images as their first axis: what the first one was made
    of says what the others are. Results are whole arrays too."""

    def __init__(self, count):
        super().__init__()
        self.count = count
        self._whole = []

    def empty(self, shape, dtype, device):
        whole = super().empty((self.count,) + shape, dtype, device)
        self._whole.append(whole)
        return self.part(whole, 0)

    def whole(self, first):
        """The results of all, of which this is the first."""
        return next((whole for whole in self._whole if self._address(whole) == self._address(first)), first)

    def repeat(self, strides):
        """The other images, from the first one. All arrays are on a device; ``strides`` are bytes to the next image, of the
        unary, the image, the marginals and the labels."""
        unary, image, marginals, labels = strides
        device, threads, streams, first = self._calls[0]
        for k in range(1, self.count):
            kernels = [(kernel[0], _moved(kernel[1], k * image)) + kernel[2:] for kernel in first[4]]
            arguments = (
                first[:2] + (_moved(first[2], k * unary), first[3], kernels) + first[5:7]
                + (_moved(first[7], k * marginals), _moved(first[8], k * labels))
            )
            self.add(device, threads, streams, arguments)

    @staticmethod
    def part(array, index):
        return array[index] if isinstance(array, np.ndarray) else array._part(index)

    @staticmethod
    def _address(array):
        return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array._address


def _moved(passed, step):
    """An array on a device, as `_core.mean_field` takes it, ``step`` bytes further."""
    return passed if passed is None else (passed[0] + step,) + passed[1:]
