"""The table of accelerators: by its name here, by the name it gives itself, or the one in this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from ljperf.errors import UsageError

MIB = 1024**2
TERA = 10**12


class UnknownDeviceError(UsageError):
    """No device of that name in the table."""


@dataclass(frozen=True, slots=True)
class Device:
    """One type of accelerator."""

    name: str
    """For people and for `--device`: h20-96g."""
    memory_bytes: int
    """All of it, as the driver reports it; context and communicator are taken from it later."""
    peak_flops: Mapping[str, float]
    """Dense peak in FLOP/s by precision (bf16, fp16, fp32); a precision that it lacks is absent."""
    words: tuple[str, ...] = ()
    """All of them occur in the name that the device gives itself."""

    def peak(self, precision: str) -> float | None:
        """Dense peak in FLOP/s for a precision, None where the device has no such units or they are unknown."""
        return self.peak_flops.get(precision)


@cache
def devices() -> tuple[Device, ...]:
    """All known devices, in the order in which names are matched."""
    import yaml

    text = files("ljperf.devices").joinpath("devices.yaml").read_text(encoding="utf-8")
    return tuple(_device(row) for row in yaml.safe_load(text))


def _device(row: Mapping[str, Any]) -> Device:
    peaks = {precision: row[precision] * TERA for precision in ("bf16", "fp16", "fp32") if precision in row}
    return Device(row["name"], row["memory"] * MIB, peaks, tuple(row["match"]))


def device_names() -> tuple[str, ...]:
    """What `--device` takes."""
    return tuple(device.name for device in devices())


def device_named(name: str) -> Device:
    """The device of that name, whatever its case; `h20` alone is the first of its sizes.

    Raises UnknownDeviceError with the closest names.
    """
    wanted = name.lower().replace("_", "-")
    for device in devices():
        if device.name == wanted or device.name.rsplit("-", 1)[0] == wanted:
            return device
    close = get_close_matches(wanted, device_names(), n=3, cutoff=0.4) or list(device_names())
    raise UnknownDeviceError(f"no device {name!r} is known", hint=f"the closest: {', '.join(close)}")


def device_matching(name: str, memory_bytes: int | None = None) -> Device | None:
    """The device that PyTorch calls `name` ("NVIDIA H20-3e"); None if unknown.

    `memory_bytes` picks among several sizes of one type.
    """
    fitting = [device for device in devices() if _matches(name, device.words)]
    if not fitting:
        return None
    same_type = [device for device in fitting if device.words == fitting[0].words]
    if memory_bytes is None:
        return same_type[0]
    return min(same_type, key=lambda device: abs(device.memory_bytes - memory_bytes))


def _matches(name: str, words: tuple[str, ...]) -> bool:
    # A word ends where a digit cannot follow: "L4" is not in "L40S", "H20" not in "H200", whatever the order.
    upper = name.upper()
    return all(re.search(rf"(?<![A-Z0-9]){re.escape(word)}(?![0-9])", upper) for word in words)


def found(index: int = 0) -> Device | None:
    """The accelerator in this machine, with the memory that it reports; None without one. Imports PyTorch.

    A device that the table lacks is returned with its own name and without peak arithmetic.
    """
    import torch

    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        return None
    properties = torch.cuda.get_device_properties(index)
    known = device_matching(properties.name, properties.total_memory)
    if known is None:
        return Device(properties.name, properties.total_memory, {})
    return Device(known.name, properties.total_memory, known.peak_flops, known.words)
