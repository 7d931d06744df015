"""Versions of what trains, without importing it."""

from __future__ import annotations

import platform
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


def versions() -> dict[str, str | None]:
    """Version by name; None for what is not installed."""
    return {"python": platform.python_version(), **{name: _installed(name) for name in PARTS}}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
