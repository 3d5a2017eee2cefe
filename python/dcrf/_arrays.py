"""From what callers have to what the library reads.

The library takes element types B, H, h, i, f, d and any strides. Everything else is converted here,
and every complaint says what was given and what is needed.
"""

import os

import numpy as np

from ._gpu import on_gpu

# DLDeviceType of https://dmlc.github.io/dlpack: the CPU, and memory of the host that CUDA or ROCm has pinned.
_DLPACK_ON_HOST = (1, 3, 11)
_NATIVE = tuple(np.dtype(code) for code in ("u1", "u2", "i2", "i4", "f4", "f8"))


def array(values, what, integers=False):
    """An array of a type that the library reads: a view if possible, otherwise a copy."""
    values = _detached(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{what} has masked elements, for which there is no meaning here; fill them in: .filled(...)"
        )
    result = _as_numpy(values, what)
    if result.dtype == object or result.dtype.kind not in "biuf":
        raise TypeError(
            f"{what} has elements of type {result.dtype}; real numbers are needed"
        )
    if result.dtype.kind == "b":
        return result.view(np.uint8) if result.dtype.isnative else result.astype(np.uint8)
    if result.dtype in _NATIVE and result.dtype.isnative:
        # Files say '<i2' where this machine says 'i2'.
        return result.view(result.dtype.newbyteorder("=")) if result.dtype.byteorder in "<>" else result
    if integers and result.dtype.kind in "iu":
        if result.size and (result.min() < -(2**31) or result.max() >= 2**31):
            raise ValueError(f"{what} holds numbers that do not fit in 32 bits")
        return result.astype(np.int32)
    return result.astype(np.float64 if result.dtype.itemsize > 4 else np.float32)


def one_or_many(value, count, what):
    """`count` floats from one number or as many."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number or {count} numbers, not {value!r}") from None
    if numbers.ndim == 0:
        numbers = np.full(count, float(numbers))
    if numbers.shape != (count,):
        raise ValueError(f"{what} must be a number or {count} numbers, not {value!r}")
    return tuple(numbers.tolist())


def whole_number(value, what):
    """An int that is not negative, from any number that is one."""
    try:
        is_whole = not isinstance(value, str) and 0 <= value == int(value)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise ValueError(f"{what} is {value!r}; it must be a whole number that is not negative")
    return int(value)


def split_mask(values):
    """An array without its mask, and the mask of ``np.ma`` where something is masked, else None."""
    if not isinstance(values, np.ma.MaskedArray):
        return values, None
    is_masked = np.ma.is_masked(values)
    return np.ma.getdata(values), np.ma.getmaskarray(values) if is_masked else None


def thread_count(threads):
    """``threads``, or for 0 what the environment variable DCRF_THREADS says (0: one for each core)."""
    if threads != 0:
        return threads
    text = os.environ.get("DCRF_THREADS", "0") or "0"
    if not text.isdigit():
        raise ValueError(f"DCRF_THREADS is {text!r}; it must be a number")
    return int(text)


def _detached(values):
    """Tensors that know how to become arrays: detached from a graph, if they can be."""
    detach = getattr(values, "detach", None)
    return detach() if callable(detach) else values


def _as_numpy(values, what):
    """What numpy makes of the values, by DLPack where there is no other way. What is on a GPU and does not come by
    itself is copied from there, or refused with a word of advice."""
    failed = None
    try:
        result = np.asarray(values)
    except (TypeError, RuntimeError, ValueError) as error:
        result, failed = None, error
    if result is not None and result.dtype != object:
        return result
    if _is_on_gpu(values):
        try:
            return on_gpu(values, what).numpy()
        except Exception as error:
            raise TypeError(
                f"{what} is on a GPU, and could not be copied from there ({error}): copy it first (.cpu() in torch, .get() "
                "in cupy)"
            ) from None
    if failed is not None:
        raise failed
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__") and hasattr(np, "from_dlpack"):
        try:
            return np.from_dlpack(values)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"{what} cannot be read: {error}") from None
    return result


def _is_on_gpu(values):
    if getattr(values, "__cuda_array_interface__", None) is not None:
        return True
    where = getattr(values, "__dlpack_device__", None)
    return callable(where) and where()[0] not in _DLPACK_ON_HOST
