"""Which accelerators are known, and which one is here.

In: a name ("h20-96g") or what PyTorch calls the device. Out: `Device` with its memory and its dense peak arithmetic.
Never imports models, memory or a training framework; `found` alone imports PyTorch, when called.
"""

from ljperf.devices.table import Device, UnknownDeviceError, device_matching, device_named, device_names, found

__all__ = ["Device", "UnknownDeviceError", "device_matching", "device_named", "device_names", "found"]
