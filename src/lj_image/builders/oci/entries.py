"""What a layer holds, before it has bytes: files, folders and links at their places in the image.

Paths are relative to the image's root, without a leading slash and without `.` or `..`: `usr/local/bin/ray`. Everything
belongs to 0:0, but for folders of the base. A time is in seconds since 1970, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

FILE_MODE: Final = 0o644
EXECUTABLE_MODE: Final = 0o755
FOLDER_MODE: Final = 0o755
EARLIEST_TIME: Final = 315532800
"""1980-01-01, the earliest time that a zip can hold, and that of everything whose own time says nothing."""


class Readable(Protocol):
    """The part of a file that is read forward only."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file's bytes as they lie in a zip: deflated, or stored as they are."""

    archive: Path
    name: str
    """The member's, for messages."""
    offset: int
    """Of the first byte of its content in the archive."""
    compressed_bytes: int
    size_bytes: int
    crc32: int
    is_stored: bool
    sha256: bytes | None = None
    """What the wheel's RECORD promises; checked while the bytes pass by."""


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes that were made here: small."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        """How many there are."""
        return len(self.content)


@dataclass(frozen=True, slots=True)
class Streamed:
    """Bytes to be compressed anew, which can be read once, until the next entry is asked for."""

    size_bytes: int
    reader: Readable


Content = ZipMember | Written | Streamed


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    path: str
    mode: int
    mtime: int
    content: Content
    owner: str = ""
    """Who brings it, for messages: a wheel's or an archive's file name."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder."""

    path: str
    mode: int = FOLDER_MODE
    mtime: int = EARLIEST_TIME
    owner: str = ""
    uid: int = 0
    """Another than 0 only where the base has the folder already, and with it."""
    gid: int = 0


@dataclass(frozen=True, slots=True)
class Symlink:
    """A symbolic link; its target is written as it is, whatever that means inside the image."""

    path: str
    target: str
    mtime: int
    owner: str = ""


@dataclass(frozen=True, slots=True)
class HardLink:
    """Another name of a file that stands before it in the same layer."""

    path: str
    target: str
    """A path of the image."""
    mode: int
    mtime: int
    owner: str = ""


Entry = File | Folder | Symlink | HardLink
