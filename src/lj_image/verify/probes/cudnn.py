"""cuDNN: `cudnnGetVersion()` gives 90700 for 9.7.0, and gave 8907 for 8.9.7 (cudnn_version.h, CUDNN_VERSION)."""

from __future__ import annotations

from lj_image.verify.probes.library import Library, parts


def decode(values: list[int]) -> str:
    """Return 9.7.0 of 90700."""
    number = values[0]
    return parts(number, major=10_000, minor=100) if number >= 90_000 else parts(number, major=1000, minor=100)


PROBE = Library("cudnn", "cudnnGetVersion", 0, ("libcudnn.so.9", "libcudnn.so.8"), decode).probe()
