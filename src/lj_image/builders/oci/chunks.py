"""One file's content -> gzip members of one size, each of which can be fetched, inflated and checked by itself."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from lj_image.builders.oci.fresh_gzip import gzip_member
from lj_image.builders.oci.processors import processors

CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Of a file's content, at most, in one member.

A snapshotter fetches, inflates, checks and holds a whole chunk before it answers the first read of one byte in it
(stargz-snapshotter, fs/reader/reader.go: ReadAt), so a shared object of 1 GiB as one chunk would be fetched whole, and
held in memory, as soon as it is mapped. A zip has it as one deflate stream, which cannot be cut: each part refers to
the 32 KiB before it. So a larger file is compressed anew, in chunks of the size that the format's own writer makes.
"""
_MOST_WORKERS: Final = 8
"""Each has up to three chunks waiting before and after it; more would take more memory than a build may have."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file's content, or all of it."""

    at: int
    """Where it begins in the file."""
    offset: int
    """Where its gzip member begins in the layer."""
    digest: str
    """SHA-256 of what is in it, in hex."""


class ChunkCutter:
    """Cuts what is written into chunks; they are compressed side by side, and passed on in their order.

    `emit` takes each finished member and returns where in the layer it begins.
    """

    def __init__(self, emit: Callable[[bytes], int], *, workers: int | None = None) -> None:
        self._emit = emit
        self._workers = min(workers or processors(), _MOST_WORKERS)
        self._pool = ThreadPoolExecutor(self._workers)
        self._pending: deque[Future[tuple[str, bytes]]] = deque()
        self._block = bytearray()
        self._chunks: list[Chunk] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def write(self, plain: bytes) -> None:
        """Take what follows of the content."""
        self._block += plain
        while len(self._block) >= CHUNK_BYTES:
            self._submit(bytes(memoryview(self._block)[:CHUNK_BYTES]))
            del self._block[:CHUNK_BYTES]

    def finish(self) -> tuple[Chunk, ...]:
        """Pass on what is left, and return all chunks."""
        if self._block:
            self._submit(bytes(self._block))
            self._block.clear()
        self._pass_on(0)
        return tuple(self._chunks)

    def _submit(self, block: bytes) -> None:
        self._pending.append(self._pool.submit(_compressed, block))
        self._pass_on(2 * self._workers)

    def _pass_on(self, most_pending: int) -> None:
        while len(self._pending) > most_pending:
            digest, member = self._pending.popleft().result()
            self._chunks.append(Chunk(CHUNK_BYTES * len(self._chunks), self._emit(member), digest))


def _compressed(block: bytes) -> tuple[str, bytes]:
    return hashlib.sha256(block).hexdigest(), gzip_member(block)
