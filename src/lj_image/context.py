"""The build context as a value: a tree of files that need not exist as a folder.

Wheels are taken from the artifact store where they lie, so a build copies nothing and `render -o` links.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One regular file of a build context."""

    path: str
    """Relative, with `/` separators, without `.` or `..`."""
    source: bytes | Path
    """Its content, or the file that holds it."""
    mode: int = 0o644
    """Permission bits."""

    def size_bytes(self) -> int:
        """Return the size of the content."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size


@dataclass(frozen=True, slots=True)
class BuildContext:
    """A Dockerfile and the files that it may copy or mount."""

    dockerfile: str
    files: tuple[ContextFile, ...] = ()

    def write_to(self, directory: Path) -> None:
        """Write Dockerfile and context below `directory`, linking store files where the file system allows.

        Only files named in the context are touched; each appears by rename.
        """
        for file in (ContextFile("Dockerfile", self.dockerfile.encode()), *self.files):
            _place(file, directory / file.path)


def _place(file: ContextFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    if isinstance(file.source, bytes):
        partial.write_bytes(file.source)
        partial.chmod(file.mode)
    elif not _linked(file, partial):
        import shutil  # late: rendering to the terminal copies nothing

        shutil.copyfile(file.source, partial)
        partial.chmod(file.mode)
    partial.replace(target)


def _linked(file: ContextFile, target: Path) -> bool:
    """Link the file if it has the right mode, which a link shares, and the file system allows it."""
    assert isinstance(file.source, Path)
    if stat.S_IMODE(file.source.stat().st_mode) != file.mode:
        return False
    try:
        os.link(file.source, target)
    except OSError:  # another file system, or one without hard links
        return False
    return True
