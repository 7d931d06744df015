"""Files appear by rename: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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


@contextmanager
def appearing(path: Path, *, mode: int) -> Iterator[BinaryIO]:
    """Give a file to write what is too large to be held; it appears when the block ends without an error.

    Makes its folder. Raises OSError, and leaves no beginning behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    partial = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
        partial.chmod(mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
