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
    partial: str | None = None
    try:
        descriptor, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with open(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, target)
    except OSError as error:
        raise ReportNotWrittenError(
            f"cannot be written: {error.strerror or error}",
            hint="give another path, or make room",
            location=str(target),
        ) from None
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                os.unlink(partial)


def _umask() -> int:
    mask = os.umask(0)  # there is no other way to read it
    os.umask(mask)
    return mask
