"""The CUDA runtime: `cudaRuntimeGetVersion(int*)` gives 12080 for 12.8 (CUDA Runtime API, version management)."""

from __future__ import annotations

from lj_image.verify.probes.library import Library


def decode(values: list[int]) -> str:
    """Return 12.8 of 12080."""
    return f"{values[0] // 1000}.{values[0] % 1000 // 10}"


PROBE = Library(
    "cudart", "cudaRuntimeGetVersion", 1, ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"), decode
).probe()
