"""The build context as a tar that is never whole in memory or on disk."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from typing import Final

from lj_image.builders.docker.tree import Entry
from lj_image.errors import BuildError

CHUNK_BYTES: Final = 128 * 1024


def tar_chunks(entries: Iterable[Entry], mtime_s: int) -> Iterator[bytes]:
    """Yield the tar of some entries, in GNU format: engines take a leading PAX header for a Dockerfile.

    Raises BuildError when a file vanishes or changes its size meanwhile.
    """
    for entry in entries:
        size_bytes = _size(entry)
        yield _header(entry, size_bytes, mtime_s)
        yield from _content(entry, size_bytes)
        yield bytes(-size_bytes % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)  # POSIX pax, "ustar Interchange Format": two zero blocks end an archive


def _header(entry: Entry, size_bytes: int, mtime_s: int) -> bytes:
    member = tarfile.TarInfo(entry.path)
    member.type = tarfile.DIRTYPE if entry.is_folder else tarfile.REGTYPE
    member.mode, member.size, member.mtime = entry.mode, size_bytes, mtime_s
    return member.tobuf(tarfile.GNU_FORMAT)


def _size(entry: Entry) -> int:
    try:
        return entry.size_bytes()
    except OSError as error:
        raise _unreadable(error) from error


def _content(entry: Entry, size_bytes: int) -> Iterator[bytes]:
    sent = 0
    try:
        for chunk in entry.chunks(CHUNK_BYTES):
            sent += len(chunk)
            yield chunk
    except OSError as error:
        raise _unreadable(error) from error
    if sent != size_bytes:
        raise BuildError(f"build context: {entry.origin} changed while it was sent: {size_bytes} bytes became {sent}")


def _unreadable(error: OSError) -> BuildError:
    return BuildError(f"cannot read {error.filename} for the build context: {error.strerror}")
