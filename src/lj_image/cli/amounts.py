"""Sizes and ages, as people write them and read them."""

from __future__ import annotations

import re
from typing import Final

from lj_image.errors import UsageError

_UNITS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SECONDS: Final = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def size_bytes_of(option: str, text: str | None) -> int | None:
    """Read 500m or 20GiB, in steps of 1024; None stays None. Raises UsageError that names the option."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise UsageError(f"{option} {text}: not a size", hint="write for example 500m or 20g")
    return int(float(found[1]) * _UNITS[found[2]])


def age_s(option: str, text: str | None) -> float | None:
    """Read 12h, 30d or 8w; None stays None. Raises UsageError that names the option."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([hdw])", text.strip().lower())
    if found is None:
        raise UsageError(f"{option} {text}: not an age", hint="write for example 12h, 30d or 8w")
    return float(found[1]) * _SECONDS[found[2]]


def size_text(size_bytes: int) -> str:
    """Write a size in the unit that suits it."""
    return f"{size_bytes / 1024**3:,.2f} GiB" if size_bytes >= 1024**3 else f"{size_bytes / 1024**2:,.1f} MiB"


def age_text(seconds: float) -> str:
    """Write an age by its largest unit: minutes, hours or days."""
    for unit, length_s in (("d", 24 * 3600), ("h", 3600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds // length_s:.0f} {unit}"
    return "now"
