"""NVRTC: `nvrtcVersion(int* major, int* minor)`."""

from __future__ import annotations

from lj_image.verify.probes.library import Library


def decode(values: list[int]) -> str:
    """Return 12.8 of [12, 8]."""
    return f"{values[0]}.{values[1]}"


PROBE = Library("nvrtc", "nvrtcVersion", 2, ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"), decode).probe()
