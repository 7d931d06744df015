"""What the person in front of a training run must know: one line, once, from one rank."""

from __future__ import annotations

import logging
import os

_said: set[str] = set()


def say(line: str, *, key: str | None = None) -> None:
    """Log one line as a warning, on rank 0 of its node group; the same `key` (else the same line) only once."""
    if os.environ.get("RANK", "0") != "0" or (key or line) in _said:
        return
    _said.add(key or line)
    logging.getLogger("ljperf").warning("ljperf: %s", line)


def first_line(error: BaseException, limit: int = 160) -> str:
    """An error in one line: its type, and the first line of what it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
