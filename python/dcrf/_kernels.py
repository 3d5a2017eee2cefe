"""What callers say of kernels: sigmas, weights, and the strength that those without weights share."""

import math

import numpy as np


def check_strength(strength):
    """None for "auto", else the number."""
    if isinstance(strength, str):
        if strength != "auto":
            raise ValueError(f'strength is {strength!r}; it must be "auto" or a number')
        return None
    number = float(strength)
    if not 0 <= number < math.inf:
        raise ValueError(f"strength is {strength!r}; it must not be negative")
    return number


def with_weight(values, sigmas, what, meaning):
    """The sigmas, and the weight or None."""
    if sigmas == 1 and np.ndim(values) == 0:
        return (values,), None
    try:
        unpacked = tuple(values)
    except TypeError:
        unpacked = ()
    if len(unpacked) not in (sigmas, sigmas + 1):
        raise ValueError(f"{what} is {values!r}; it must be {meaning}")
    return unpacked[:sigmas], unpacked[sigmas] if len(unpacked) > sigmas else None


def several(kernels):
    """A list of kernels is one kernel each, None none."""
    if kernels is None:
        return []
    return kernels if isinstance(kernels, list) else [kernels]


def check_share(spatial_share):
    share = float(spatial_share)
    if not 0 <= share <= 1:
        raise ValueError(f"spatial_share is {spatial_share!r}; it must lie between 0 and 1")
    return share


def parts_of_strength(are_spatial, spatial_share):
    """The part of the strength that each kernel has; for each, whether it is spatial. Several kernels of one kind
    have equal parts of what is that kind's."""
    spatial = sum(are_spatial)
    others = len(are_spatial) - spatial
    share = 1.0 if not others else spatial_share if spatial else 0.0
    return [share / spatial if is_spatial else (1 - share) / others for is_spatial in are_spatial]
