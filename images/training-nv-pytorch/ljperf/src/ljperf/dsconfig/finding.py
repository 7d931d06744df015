"""One thing to say about a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error ends the start, or makes Transformers refuse; a warning runs, but does other than it seems to."""

    pointer: str
    """RFC 6901, "" for the whole config: /zero_optimization/stage3_prefetch_bucket_size."""
    severity: Severity
    message: str
    hint: str | None = None


def error(pointer: str, message: str, hint: str | None = None) -> Finding:
    """A finding that ends the start."""
    return Finding(pointer, "error", message, hint)


def warning(pointer: str, message: str, hint: str | None = None) -> Finding:
    """A finding that lets it run."""
    return Finding(pointer, "warning", message, hint)


def pointer_of(*path: object) -> str:
    """The JSON pointer of a path of keys and positions (RFC 6901 §3: ~ and / are escaped)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
