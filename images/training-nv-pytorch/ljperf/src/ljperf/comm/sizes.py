"""Message sizes as they are written: 1K, 64M, 1K..64M."""

from __future__ import annotations

import re
from typing import Final

from ljperf.errors import UsageError

UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LARGEST: Final = 64 << 30


def sizes_of(text: str) -> tuple[int, ...]:
    """Bytes of a list (1K,4K) of sizes and ranges (1K..64M, doubling up to and including the end), ascending.

    Raises UsageError.
    """
    found: set[int] = set()
    for part in text.split(","):
        start, dots, end = part.strip().partition("..")
        found.update(_range(_size(start), _size(end), text) if dots else [_size(start)])
    return tuple(sorted(found))


def _range(start: int, end: int, text: str) -> list[int]:
    if end < start:
        raise UsageError(f"the sizes {text!r} end below their beginning", hint="--sizes 1K..64M")
    sizes = [start]
    while sizes[-1] * 2 <= end:
        sizes.append(sizes[-1] * 2)
    return sizes if sizes[-1] == end else [*sizes, end]


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(found[1]) * UNITS[found[2].upper()] if found else 0
    if not 0 < size <= LARGEST:
        raise UsageError(f"{text!r} is no size", hint="bytes, or with K, M or G: 4096, 1K, 64M; a range: 1K..64M")
    return size
