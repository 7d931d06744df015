"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from ljperf.errors import LjperfError


class ReportNotWrittenError(LjperfError):
    """The file system refused a report."""


def write_whole(path: str | Path, text: str) -> None:
    """Write UTF-8 text to a neighbour, then rename it: a reader, or a full disk, never leaves half a file.

    Raises ReportNotWrittenError (no space, no folder, no permission); an older file of that name then stays as it was.
    """
    target = Path(path)
    partial: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        partial = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        partial.chmod(0o666 & ~_umask())
        partial.replace(target)
    except OSError as error:
        raise ReportNotWrittenError(
            f"cannot be written: {error.strerror or error}",
            hint="give another path, or make room",
            location=str(target),
        ) from None
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)  # there is no other way to read it
    os.umask(mask)
    return mask
