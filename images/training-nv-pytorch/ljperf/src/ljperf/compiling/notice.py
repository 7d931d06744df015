"""What the person in front of a training run must know: one line, once, from one rank."""

from __future__ import annotations

import logging
import os
import re
from typing import Final

DETAIL: Final = "Developer debug context:"
_FRAME: Final = re.compile(r'File "[^"]*?([^/"]+)", line (\d+), in (\w+)')
_said: set[str] = set()


def say(line: str, *, key: str | None = None) -> None:
    """Log one line as a warning, on rank 0; the same `key` (else the same line) only once."""
    if os.environ.get("RANK", "0") != "0" or (key or line) in _said:
        return
    _said.add(key or line)
    logging.getLogger("ljperf").warning("ljperf: %s", line)


def reason_of(error: BaseException, limit: int = 240) -> str:
    """A compile error in one line: its type, what it says first, Dynamo's detail of it, and the innermost user line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    detail = next((line.removeprefix(DETAIL).strip() for line in lines if line.startswith(DETAIL)), "")
    said = lines[:2] if lines and lines[0].endswith("raised:") else lines[:1]  # a backend's own error comes second
    parts = [type(error).__name__, *said, detail, _place(lines)]
    text = ": ".join(part.rstrip(":") for part in parts if part)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _place(lines: list[str]) -> str:
    """The last frame of "from user code", as file:line in function."""
    if "from user code:" not in lines:
        return ""
    frames = _FRAME.findall("\n".join(lines[lines.index("from user code:") :]))
    return "{}:{} in {}".format(*frames[-1]) if frames else ""
