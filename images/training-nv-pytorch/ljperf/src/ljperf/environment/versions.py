"""Versions of what trains, without importing it."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

PARTS: Final = (
    "torch",
    "triton",
    "transformers",
    "deepspeed",
    "accelerate",
    "peft",
    "flash-attn",
    "liger-kernel",
    "transformer-engine",
    "vllm",
    "ray",
    "ljperf",
)


def versions(parts: Iterable[str] = PARTS) -> dict[str, str | None]:
    """Version by name, Python's first; None for what is not installed."""
    return {"python": platform.python_version(), **{name: installed(name) for name in parts}}


def installed_versions(parts: Iterable[str]) -> dict[str, str]:
    """The same without what is not installed."""
    return {name: found for name, found in versions(parts).items() if found is not None}


def installed(name: str) -> str | None:
    """A distribution's version, from its metadata; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
