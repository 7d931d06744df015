"""Files by name in an archive that is not unpacked: a folder or a tar."""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Final, Protocol, Self

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.source import Stream
from lj_image.oci.streams import MAGIC_BYTES, compression_of_start

_TAR_BLOCK_BYTES: Final = 512
_MOST_LINKS: Final = 8
_LARGEST_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""Of a file that is read as a whole; a configuration with thousands of layers has less."""


def damaged(path: Path, how: str) -> ArtifactError:
    """Say that an archive is not whole."""
    return ArtifactError(f"{path} is damaged: {how}", hint="save or copy it again")


class Entries(Protocol):
    """Named entries of an archive, in any order."""

    def size_bytes(self, name: str) -> int | None:
        """Return the size of an entry; None where there is none."""

    def open(self, name: str, offset: int = 0) -> Stream:
        """Open an entry that is there, at an offset in bytes."""


class Section:
    """A part of a file that is opened for it alone, so that several may be read at once."""

    def __init__(self, path: Path, offset: int, size_bytes: int) -> None:
        self._file = path.open("rb")
        self._file.seek(offset)
        self._left_bytes = size_bytes

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        block = self._file.read(min(size, self._left_bytes))
        self._left_bytes -= len(block)
        return block

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class FolderEntries:
    """Files of a folder; a name that leads out of it names nothing."""

    folder: Path

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file; None where there is none."""
        path = self.folder / name
        inside = not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
        return path.stat().st_size if inside and path.is_file() else None

    def open(self, name: str, offset: int = 0) -> Stream:
        """Open a file at an offset."""
        file = (self.folder / name).open("rb")
        file.seek(offset)
        return file


@dataclass(frozen=True, slots=True)
class TarEntries:
    """Entries of a tar, found by seeking."""

    path: Path
    places: Mapping[str, tuple[int, int]]
    """Name -> offset and size of the content."""

    def size_bytes(self, name: str) -> int | None:
        """Return the size of an entry; None where there is none."""
        return self.places[name][1] if name in self.places else None

    def open(self, name: str, offset: int = 0) -> Stream:
        """Open an entry at an offset."""
        start, size_bytes = self.places[name]
        return Section(self.path, start + offset, max(0, size_bytes - offset))


def entries_of(path: Path) -> Entries:
    """Look into a folder or a tar.

    Raises UsageError for a tar that is compressed as a whole, ArtifactError for one that is damaged.
    """
    if not path.exists():
        raise UsageError(f"no file {path}", hint="name what `docker save` wrote, or an OCI layout")
    if path.is_dir():
        return FolderEntries(path)
    with path.open("rb") as file:
        start = file.read(MAGIC_BYTES)
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAR_BLOCK_BYTES))
        end = file.read()
    _require_plain(path, start)
    try:
        with tarfile.open(path, "r:") as tar:
            members = {item.name.removeprefix("./"): item for item in tar.getmembers()}
    except tarfile.ReadError as error:
        raise damaged(path, f"not a whole tar ({error})") from None
    if end.strip(b"\0"):  # POSIX: two blocks of zeros end it; tarfile takes a cut header for the end, too
        raise damaged(path, "not a whole tar (unexpected end of data)")
    return TarEntries(path, _places(members))


def _require_plain(path: Path, start: bytes) -> None:
    compression = compression_of_start(start)
    if compression != "none":
        raise UsageError(
            f"{path} is compressed as a whole, so its entries cannot be found without reading all of it",
            hint=f"unpack it first: {'gunzip' if compression == 'gzip' else 'unzstd'} {path}",
        )


def _places(members: Mapping[str, tarfile.TarInfo]) -> dict[str, tuple[int, int]]:
    resolved = ((name, _resolved(name, members)) for name in members)
    return {name: (item.offset_data, item.size) for name, item in resolved if item is not None}


def _resolved(name: str, members: Mapping[str, tarfile.TarInfo]) -> tarfile.TarInfo | None:
    """Follow links to a file: engines up to 24 save a layer that occurs twice as a link to the other."""
    for _ in range(_MOST_LINKS):
        found = members.get(name)
        if found is None or found.isreg():
            return None if found is None or found.issparse() else found
        if found.issym():
            name = posixpath.normpath(posixpath.join(posixpath.dirname(name), found.linkname))
        elif found.islnk():
            name = found.linkname.removeprefix("./")
        else:
            return None
    return None


def document(entries: Entries, name: str, path: Path) -> bytes:
    """Read a small entry as a whole; raises ArtifactError where it is missing."""
    size_bytes = entries.size_bytes(name)
    if size_bytes is None:
        raise damaged(path, f"{name} is missing")
    if size_bytes > _LARGEST_DOCUMENT_BYTES:
        raise damaged(path, f"{name} has {size_bytes} bytes, too many for a manifest or a configuration")
    with entries.open(name) as file:
        return file.read(size_bytes)
