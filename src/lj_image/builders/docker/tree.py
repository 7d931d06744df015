"""The build context as the engine sees it: every file and every folder above one, in the order of the protocol."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lj_image.context import BuildContext, ContextFile
from lj_image.errors import BuildError

FOLDER_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a folder when it has no source."""

    path: str
    mode: int
    source: bytes | Path | None = None

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.source is None

    def size_bytes(self) -> int:
        """Return the size of a file; raises OSError when it has vanished."""
        if isinstance(self.source, Path):
            return self.source.stat().st_size
        return len(self.source or b"")

    @property
    def origin(self) -> str:
        """What to call the content in a message."""
        return str(self.source) if isinstance(self.source, Path) else self.path

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the content; raises OSError when it cannot be read."""
        if isinstance(self.source, Path):
            with self.source.open("rb") as file:
                while chunk := file.read(size_bytes):
                    yield chunk
        elif self.source:
            yield from (self.source[at : at + size_bytes] for at in range(0, len(self.source), size_bytes))

    def fingerprint(self) -> bytes:
        """Return 32 bytes that change with the content.

        A file is taken to change with its path, size or time: stores never rewrite one, and reading gigabytes to
        find out whether they need to be sent would be slower than sending them.
        """
        if isinstance(self.source, Path):
            stat = self.source.stat()
            return hashlib.sha256(f"{self.source}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).digest()
        return hashlib.sha256(self.source or b"").digest()


Tree = tuple[Entry, ...]


def tree(files: Iterable[ContextFile]) -> Tree:
    """Return files with the folders above them: depth first, a folder before its members, siblings by bytes.

    Raises BuildError when two files claim one path, or a path is not clean and relative.
    """
    entries: dict[str, Entry] = {}
    for file in files:
        _check(file.path, entries)
        entries[file.path] = Entry(file.path, file.mode & 0o7777, file.source)
    for path in {folder for name in entries for folder in _folders_above(name)}:
        if path in entries:
            raise BuildError(f"build context: {path} is a file and a folder")
        entries[path] = Entry(path, FOLDER_MODE)
    return tuple(sorted(entries.values(), key=lambda entry: entry.path.encode().split(b"/")))


def context_tree(context: BuildContext) -> Tree:
    """Return the whole context; its Dockerfile is part of it, as when a folder is built."""
    return tree((_dockerfile(context), *context.files))


def dockerfile_tree(context: BuildContext) -> Tree:
    """Return the Dockerfile alone."""
    return tree((_dockerfile(context),))


def source_date_epoch() -> int:
    """Return the time that every file of a context gets, in seconds: SOURCE_DATE_EPOCH, or 0."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(text) if text.isdecimal() else 0


def _dockerfile(context: BuildContext) -> ContextFile:
    return ContextFile("Dockerfile", context.dockerfile.encode())


def _check(path: str, taken: Iterable[str]) -> None:
    if not path or path.startswith(("/", "../")) or path in (".", "..") or posixpath.normpath(path) != path:
        raise BuildError(f"build context: {path!r} is not a clean relative path")
    if path in taken:
        raise BuildError(f"build context: two files claim {path}")


def _folders_above(path: str) -> Iterable[str]:
    while path := posixpath.dirname(path):
        yield path
