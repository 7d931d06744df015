"""Small readers, each wrapped around the next, so that gigabytes pass through a few blocks of memory."""

from __future__ import annotations

import hashlib
import queue
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, Self

from lj_image.oci.media_types import Compression

BLOCK_BYTES: Final = 1024 * 1024
MAGIC_BYTES: Final = 4
"""As many as tell how a stream is compressed."""
_GZIP: Final = b"\x1f\x8b"
# RFC 8878 §3.1.1 and §3.1.2: a frame's magic number, and the sixteen of frames to be skipped, little-endian.
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))
_PIECE_BYTES: Final = 16 * 1024
"""A gzip file may have a member per file of a layer, and what follows each is copied: it is given little at once."""
_ZSTD_PIECE_BYTES: Final = 2 * 1024
"""Three bytes of zstd may stand for 128 KiB: so much of it cannot become more than a hundred MiB at once."""
_MOST_PARTS: Final = 64
_LARGEST_WINDOW_BYTES: Final = 128 * BLOCK_BYTES
"""Of zstd; what `zstd` itself takes without being told (its --long is 27 bits)."""


class DamagedStreamError(zlib.error):
    """Compressed bytes that end early or are none; a zlib.error, so that readers have one error to know."""


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


def compression_of_start(start: bytes) -> Compression:
    """Say how a stream is compressed that begins like this; four bytes are enough."""
    if start.startswith(_GZIP):
        return "gzip"
    return "zstd" if start.startswith((_ZSTD, *_ZSTD_SKIPPABLE)) else "none"


def decompressed(content: Readable) -> Iterator[bytes]:
    """Return the content in chunks, without its gzip or zstd compression if it has one.

    The chunks raise DamagedStreamError, a zlib.error, where the compression is damaged or ends early.
    """
    start = content.read(BLOCK_BYTES)
    chunks = _with_start(start, content)
    match compression_of_start(start):
        case "gzip":
            return _inflated(chunks, _gzip_members(), _PIECE_BYTES)
        case "zstd":
            return _inflated(chunks, _zstd_frames(), _ZSTD_PIECE_BYTES)
        case "none":
            return chunks


def _with_start(start: bytes, content: Readable) -> Iterator[bytes]:
    yield start
    while block := content.read(BLOCK_BYTES):
        yield block


class _Part(Protocol):
    """The decompression of one gzip member or one zstd frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, piece: bytes, /) -> bytes: ...


def _gzip_members() -> Callable[[], _Part]:
    from isal import isal_zlib  # twice as fast as zlib; late, since every command would pay for it

    failure: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # its stubs take the class for an instance
    return lambda: _Told(isal_zlib.decompressobj(wbits=31), failure)


def _zstd_frames() -> Callable[[], _Part]:
    import zstandard  # late: most images have none

    window = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES)
    return lambda: _Told(window.decompressobj(), zstandard.ZstdError)


class _Told:
    """A member or frame whose library's own failure is told as ours; zstd's frames to be skipped are empty ones."""

    def __init__(self, part: _Part, failure: type[Exception]) -> None:
        self._part = part
        self._failure = failure

    @property
    def eof(self) -> bool:
        return self._part.eof

    @property
    def unused_data(self) -> bytes:
        return self._part.unused_data

    def decompress(self, piece: bytes, /) -> bytes:
        try:
            return self._part.decompress(piece)
        except self._failure as error:
            raise DamagedStreamError(str(error)) from None


def _inflated(chunks: Iterable[bytes], begin: Callable[[], _Part], piece_bytes: int) -> Iterator[bytes]:
    """Decompress any number of gzip members (RFC 1952 §2.2) or zstd frames (RFC 8878 §3.1)."""
    part, is_inside = begin(), True
    for chunk in chunks:
        parts: list[bytes] = []
        for at in range(0, len(chunk), piece_bytes):
            piece = chunk[at : at + piece_bytes]
            while piece:
                parts.append(part.decompress(piece))
                piece, is_inside = part.unused_data, not part.eof
                if part.eof:
                    part = begin()
                if len(parts) >= _MOST_PARTS or len(parts[-1]) >= BLOCK_BYTES:
                    yield b"".join(parts)
                    parts.clear()
        yield b"".join(parts)
    if is_inside:
        raise DamagedStreamError("the compressed bytes end early")


def drain(content: Readable) -> None:
    """Read to the end."""
    while content.read(BLOCK_BYTES):
        pass
