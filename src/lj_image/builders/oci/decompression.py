"""A compressed file as a stream of what is in it: by its first bytes, as tar does, not by its name."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final, cast

from isal import igzip

from lj_image.builders.oci.entries import Readable
from lj_image.errors import LjImageError
from lj_image.oci.streams import MAGIC_BYTES, ChunkReader, compression_of_start, decompressed

_MIB: Final = 1024 * 1024
LEAST_LIMIT_BYTES: Final = 1024 * _MIB
MOST_TIMES: Final = 200
"""Real archives become some 20 times as large at most; gzip can make it 1000 times, and that is an attack."""

TOO_LARGE: Final = "becomes far larger than any honest archive of its size"


class TooLargeError(Exception):
    """More comes out than anything honest would hold."""


FAULTS: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, TooLargeError)
"""What reading a damaged or truncated stream raises; BadGzipFile is an OSError."""


def size_limit_bytes(compressed_bytes: int) -> int:
    """Return how much a file of that size may become."""
    return max(LEAST_LIMIT_BYTES, MOST_TIMES * compressed_bytes)


@contextmanager
def decompressed_file(path: Path) -> Iterator[Readable]:
    """Open a file that is plain or compressed by gzip, bzip2, xz, lzma or zstd.

    Its reader raises one of FAULTS.
    """
    with path.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        opener = next((found for magic, found in _OPENERS if start.startswith(magic)), None)
        if compression_of_start(start[:MAGIC_BYTES]) == "zstd":
            opener = _zstd
        with file if opener is None else opener(file) as reader:
            yield _Limited(reader, size_limit_bytes(path.stat().st_size))


def _gzip(file: IO[bytes]) -> AbstractContextManager[Readable]:
    return cast(AbstractContextManager[Readable], igzip.IGzipFile(fileobj=file, mode="rb"))  # type: ignore[no-untyped-call]


@contextmanager
def _zstd(file: IO[bytes]) -> Iterator[Readable]:
    yield ChunkReader(decompressed(file))


# RFC 1952 §2.3.1, the bzip2 format, the .xz file format §2.1.1.1, .lzma as xz(1) recognises it.
_OPENERS: Final[tuple[tuple[bytes, Callable[[IO[bytes]], AbstractContextManager[Readable]]], ...]] = (
    (b"\x1f\x8b", _gzip),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\0", lzma.LZMAFile),
    (b"\x5d\0\0", lzma.LZMAFile),
)


class TranslatedReader:
    """Content that is read by someone who does not know what it comes from: faults become errors that name that."""

    def __init__(self, reader: Readable, translated: Callable[[Exception], Exception]) -> None:
        self._reader = reader
        self._translated = translated

    def read(self, size: int, /) -> bytes:
        """Read on."""
        try:
            return self._reader.read(size)
        except LjImageError:
            raise
        except Exception as error:  # each library has its own, and all of them mean that the file is damaged
            raise self._translated(error) from None


class _Limited:
    """Passes reads on until too much came out."""

    def __init__(self, reader: Readable, limit_bytes: int) -> None:
        self._reader = reader
        self._left = limit_bytes

    def read(self, size: int, /) -> bytes:
        block = self._reader.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise TooLargeError
        return block
