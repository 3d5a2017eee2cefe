"""Arrays on a GPU, without a copy: those of other libraries as they come (by DLPack or by the CUDA array
interface), and ours, which speak both.

https://dmlc.github.io/dlpack/latest/python_spec.html,
https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html (version 3)
"""

import math

import numpy as np

from . import _core

# DLDeviceType: memory of CUDA, and memory that it manages; DLDataTypeCode and bits.
_CUDA, _CUDA_MANAGED = 2, 13
_DLPACK_TYPES = {
    (1, 8): "u1", (1, 16): "u2", (0, 16): "i2", (0, 32): "i4", (2, 16): "f2", (2, 32): "f4", (2, 64): "f8", (6, 8): "u1",
}
_BFLOAT = (4, 16)  # for which numpy has no type: uint16 here
_DEFAULT_STREAM = 1
_TYPES = "uint8, uint16, int16, int32, float16, float32, float64 and bfloat16"


class DeviceArray:
    """An array on a GPU. Other libraries use it without a copy:

        torch.from_dlpack(array), cupy.asarray(array), jax.dlpack.from_dlpack(array)

    and ``numpy.asarray(array)`` copies it to the host. Its contents are complete: there is no stream to wait
    for. Its memory is freed with the last reference; work of another library that still uses it then must be in
    the default stream.
    """

    def __init__(self, owner, address, dtype, shape, strides, device, stream=0, is_bfloat=False, is_read_only=False):
        self._owner = owner
        self._address = address
        self.dtype = np.dtype(dtype)
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.device = device
        self._stream = stream  # to wait for; 0: none
        self._is_bfloat = is_bfloat
        self._is_read_only = is_read_only

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._address, self._is_read_only),
            "strides": self.strides,
            "stream": self._stream or None,
            "version": 3,
        }

    def __dlpack_device__(self):
        return _CUDA, _index(self.device)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Complete for every ``stream``. A copy, or a copy elsewhere, is not for us to make."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__() or copy:
            raise BufferError("this array is given where it is, without a copy")
        elements = tuple(stride // self.dtype.itemsize for stride in self.strides)
        return _core.to_dlpack(
            self._address, self.dtype.char, self.shape, elements, _index(self.device), self
        )

    def _part(self, index):
        """What is at a place of the first axis."""
        return DeviceArray(
            self._owner, self._address + index * self.strides[0], self.dtype, self.shape[1:], self.strides[1:], self.device,
            self._stream, self._is_bfloat, self._is_read_only,
        )

    def numpy(self):
        """A copy on the host."""
        low, high = _reach(self.shape, self.strides)
        memory = np.empty(high - low + self.dtype.itemsize if self.size else 0, np.uint8)
        _core.fetch(self._address + low, self.device, self._stream, memory)
        view = np.ndarray(self.shape, self.dtype, memory, -low, self.strides)
        if self._is_bfloat:
            return (view.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return view if view.flags.c_contiguous else view.copy()

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array on a GPU has to be copied to be one of numpy")
        return self.numpy().astype(dtype or self.dtype, copy=False)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self):
        return f"<dcrf.DeviceArray of {self.dtype} {self.shape} on {self.device}>"


def on_gpu(values, what):
    """The ``DeviceArray`` of an array of any library that is on a GPU; None for everything else."""
    if isinstance(values, DeviceArray):
        return values
    if _speaks_dlpack(values):
        return _by_dlpack(values, what)
    interface = getattr(values, "__cuda_array_interface__", None)
    return None if interface is None else _by_interface(values, interface, what)


def is_on_gpu(values):
    return _speaks_dlpack(values) or getattr(values, "__cuda_array_interface__", None) is not None


def _speaks_dlpack(values):
    """And is it on a GPU?"""
    where = getattr(values, "__dlpack_device__", None)
    if not callable(where):
        return False
    try:
        return where()[0] in (_CUDA, _CUDA_MANAGED)
    except Exception:  # numpy of a masked array, a tensor that has no place
        return False


def _by_dlpack(values, what):
    # The producer makes the default stream wait for its own, and we wait for that.
    capsule = values.__dlpack__(stream=_DEFAULT_STREAM)
    owner, address, code, bits, shape, strides, _, _ = _core.from_dlpack(capsule)
    is_bfloat = (code, bits) == _BFLOAT
    name = "u2" if is_bfloat else _DLPACK_TYPES.get((code, bits))
    if name is None:
        raise TypeError(
            f"{what} on the GPU has elements of a type that is not taken there; {_TYPES} are (.float() in torch)"
        )
    dtype = np.dtype(name)
    steps = contiguous(shape, dtype.itemsize) if strides is None else [n * dtype.itemsize for n in strides]
    _check_size(shape, what)
    return DeviceArray(
        owner, address, dtype, shape, steps, _device_of(address, what), _DEFAULT_STREAM, is_bfloat
    )


def _by_interface(values, interface, what):
    if interface.get("mask") is not None:
        raise ValueError(f"{what} has a mask, for which there is no meaning on the GPU")
    dtype = np.dtype(interface["typestr"])
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    if dtype.kind not in "uif" or not dtype.isnative or dtype.char not in "BHhifde":
        raise TypeError(f"{what} on the GPU has elements of type {dtype}; {_TYPES} are taken there")
    shape, (address, is_read_only) = tuple(interface["shape"]), interface["data"]
    strides = interface.get("strides") or contiguous(shape, dtype.itemsize)
    _check_size(shape, what)
    # Without a word of it the default stream is as good a guess as there is; None says that there is none.
    stream = interface.get("stream", _DEFAULT_STREAM)
    if stream == 0:
        raise ValueError(f"{what} says that its stream is 0, which the CUDA array interface has not")
    return DeviceArray(
        values, address, dtype, shape, strides, _device_of(address, what), stream or 0, is_read_only=is_read_only
    )


def _check_size(shape, what):
    if not math.prod(shape):
        raise ValueError(f"{what} has the shape {shape}: it is empty")


def _device_of(address, what):
    device = _core.device_of(address)
    if device == "cpu":
        raise ValueError(f"{what} says that it is on a GPU, and its memory is that of the host")
    return device


def stand_in(there):
    """An array of numpy with the shape and the strides of one on a GPU, over memory that is never touched: for finding
    out which axes are which."""
    low, high = _reach(there.shape, there.strides)
    memory = np.empty(high - low + there.dtype.itemsize, np.uint8)
    return np.ndarray(there.shape, there.dtype, memory, -low, there.strides)


def as_stood_in(there, before, after, what):
    """What a view ``after`` of the stand-in ``before`` is of the array itself, as `_core.mean_field` takes it."""
    if not np.may_share_memory(before, after):
        raise ValueError(f"{what} on the GPU has a layout that only a copy could bring into order: make it contiguous")
    moved = after.__array_interface__["data"][0] - before.__array_interface__["data"][0]
    return there._address + moved, "E" if there._is_bfloat else there.dtype.char, after.shape, after.strides


def contiguous(shape, step):
    """The strides of an array without gaps, of elements of ``step`` bytes."""
    strides = []
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def _reach(shape, strides):
    """How many bytes the first and the last element are from the one with the number zero."""
    reach = [(size - 1) * stride for size, stride in zip(shape, strides) if size > 0]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)


def _index(device):
    return int(device.partition(":")[2] or 0)
