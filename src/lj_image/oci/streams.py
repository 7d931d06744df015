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
_PIECE_BYTES: Final = 16 * 1024
"""A gzip file may have a member per file of a layer, and zlib copies what follows each: it is given little at once."""


_MOST_PARTS: Final = 64


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


class HashingChunks:
    """Passes chunks on and digests them meanwhile in a thread; else hashing and searching would take turns."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._digest = hashlib.sha256()
        self._queue: queue.Queue[bytes | None] = queue.Queue(maxsize=4)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.size_bytes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._finish()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size_bytes += len(chunk)
            self._queue.put(chunk)
            yield chunk

    def _work(self) -> None:
        while (chunk := self._queue.get()) is not None:
            self._digest.update(chunk)

    def _finish(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def hexdigest(self) -> str:
        """Return the digest of all that passed; ends the passing."""
        self._finish()
        return self._digest.hexdigest()


def decompressed(content: Readable) -> Iterator[bytes]:
    """Return the content in chunks, without its gzip compression if it has one."""
    start = content.read(BLOCK_BYTES)
    chunks = _with_start(start, content)
    return _inflated(chunks) if start.startswith(_GZIP) else chunks


def _with_start(start: bytes, content: Readable) -> Iterator[bytes]:
    yield start
    while block := content.read(BLOCK_BYTES):
        yield block


def _inflated(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Inflate gzip of any number of members, RFC 1952 §2.2."""
    inflate = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        parts: list[bytes] = []
        for at in range(0, len(chunk), _PIECE_BYTES):
            piece = chunk[at : at + _PIECE_BYTES]
            while piece:
                parts.append(inflate.decompress(piece))
                piece = inflate.unused_data
                if inflate.eof:
                    inflate = zlib.decompressobj(wbits=31)
                if len(parts) >= _MOST_PARTS or len(parts[-1]) >= BLOCK_BYTES:
                    yield b"".join(parts)
                    parts.clear()
        yield b"".join(parts)


def drain(content: Readable) -> None:
    """Read to the end."""
    while content.read(BLOCK_BYTES):
        pass
