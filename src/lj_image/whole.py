"""Files appear by rename: whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes, *, mode: int | None = None, alone: bool = False) -> None:
    """Write a file and make its folder; text is UTF-8. Readers see what was there before, or all of the new content.

    `mode` is that of the new file, by default what the umask leaves. Whoever writes one file at the same time as others
    do has a beginning of its own; `alone` says that nobody does, so that what a killed writer left is written over.
    Raises OSError, and leaves no beginning behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = "" if alone else f".{os.getpid()}"
    partial = path.with_name(f".{path.name}{writer}.partial")
    try:
        partial.write_bytes(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            partial.chmod(mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
