"""NCCL, and ACCL-N which is built on it: `ncclGetVersion(int*)` gives 22304 for 2.23.4 (nccl.h, NCCL_VERSION)."""

from __future__ import annotations

from lj_image.verify.probes.library import Library, parts


def decode(values: list[int]) -> str:
    """Return 2.23.4 of 22304, and 2.8.4 of 2804 as it was written before 2.9."""
    number = values[0]
    return parts(number, major=10_000, minor=100) if number >= 10_000 else parts(number, major=1000, minor=100)


PROBE = Library("nccl", "ncclGetVersion", 1, ("libnccl.so.2",), decode).probe()
