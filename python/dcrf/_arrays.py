"""From what callers have to what the library reads.

The library takes element types B, H, h, i, f, d and any strides. Everything else is converted here,
and every complaint says what was given and what is needed.
"""

import numpy as np

_NATIVE = tuple(np.dtype(code) for code in ("u1", "u2", "i2", "i4", "f4", "f8"))


def array(values, what, integers=False):
    """An array of a type that the library reads: a view where that is possible, else a copy."""
    result = np.asarray(_to_cpu(values))
    if result.dtype == object or result.dtype.kind not in "biuf":
        raise TypeError(
            f"{what} has elements of type {result.dtype}; real numbers are needed"
        )
    if result.dtype.kind == "b":
        return result.view(np.uint8) if result.dtype.isnative else result.astype(np.uint8)
    if result.dtype in _NATIVE and result.dtype.isnative:
        return result
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


def _to_cpu(values):
    """Tensors that know how to become arrays: detached from a graph, if they can be."""
    detach = getattr(values, "detach", None)
    return detach() if callable(detach) else values
