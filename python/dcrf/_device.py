"""Where the work is done: on the CPU, or on a GPU that the library libdcrf-cuda drives."""

import dataclasses
import os

from . import _core

DeviceError = _core.DeviceError


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU: ``name`` is what ``device=`` takes, "cuda:0"."""

    name: str
    description: str
    memory_bytes: int
    free_bytes: int


def devices():
    """The devices beside the CPU, as a list of ``Device``; if it is empty, ``device="cuda"`` raises a
    ``DeviceError`` that says why.

    >>> all(device.name.startswith("cuda:") for device in devices())
    True
    """
    try:
        return [Device(*found) for found in _core.devices()]
    except DeviceError:
        return []


def device_name(device):
    """``device`` as text (a ``torch.device`` is one), or for None what the environment variable DCRF_DEVICE says
    (without it: the CPU)."""
    return str(device) if device is not None else os.environ.get("DCRF_DEVICE") or "cpu"


def on_device(make, device, *arguments):
    """What ``make`` makes of the arguments and the name of the device; complaints say who asked for it."""
    name = device_name(device)
    try:
        return make(*arguments, name)
    except (DeviceError, ValueError) as error:
        if isinstance(error, DeviceError) or "is not a device" in str(error):
            origin = "DCRF_DEVICE" if device is None else "device"
            raise type(error)(f"{origin}={name}: {error}") from None
        raise


def devices_in_turn(device):
    """The names of the devices that many problems are spread over: all of them for "cuda" without a number."""
    name = device_name(device)
    found = devices() if name == "cuda" else ()
    return [one.name for one in found] if len(found) > 1 else [device]
