"""Small readers, each wrapped around the next, so that gigabytes pass through a few blocks of memory."""

from __future__ import annotations

import hashlib
import queue
import threading
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, Self

BLOCK_BYTES: Final = 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
_PIECE_BYTES: Final = 64 * 1024
"""A gzip file may have a member per file of a layer; zlib copies what follows a member, so it is given little at once."""


class Readable(Protocol):
    """The part of a file that is read forward only."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102


class ChunkReader:
    """Makes a file of an iterable of chunks."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._chunk = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts: list[memoryview] = []
        while size > 0:
            if not self._chunk:
                following = next(self._chunks, None)
                if following is None:
                    break
                self._chunk = memoryview(following)
                continue
            part = self._chunk[:size]
            self._chunk = self._chunk[len(part) :]
            size -= len(part)
            parts.append(part)
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


class HashingReader:
    """Passes a file on and digests it meanwhile, in a thread: hashing gigabytes and searching them take turns else."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._digest = hashlib.sha256()
        self._blocks: queue.Queue[bytes | None] = queue.Queue(maxsize=4)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.size_bytes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._finish()

    def _work(self) -> None:
        while (block := self._blocks.get()) is not None:
            self._digest.update(block)

    def _finish(self) -> None:
        if self._thread.is_alive():
            self._blocks.put(None)
            self._thread.join()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        block = self._content.read(size)
        if block:
            self.size_bytes += len(block)
            self._blocks.put(block)
        return block

    def hexdigest(self) -> str:
        """Return the digest of all that was read; ends the reading."""
        self._finish()
        return self._digest.hexdigest()


def decompressed(content: Readable) -> Readable:
    """Return the content without its gzip compression, if it has one."""
    start = content.read(BLOCK_BYTES)
    chunks = _with_start(start, content)
    return ChunkReader(_inflated(chunks) if start.startswith(_GZIP) else chunks)


def _with_start(start: bytes, content: Readable) -> Iterator[bytes]:
    yield start
    while block := content.read(BLOCK_BYTES):
        yield block


def _inflated(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Inflate gzip of any number of members, RFC 1952 §2.2."""
    inflate = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        for at in range(0, len(chunk), _PIECE_BYTES):
            piece = chunk[at : at + _PIECE_BYTES]
            while piece:
                yield inflate.decompress(piece)
                piece = inflate.unused_data
                if inflate.eof:
                    inflate = zlib.decompressobj(wbits=31)


def drain(content: Readable) -> None:
    """Read to the end."""
    while content.read(BLOCK_BYTES):
        pass
