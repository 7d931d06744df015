"""Bytes that were never compressed become gzip, in members of one size: the same bytes with any number of threads."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import deflate

from lj_image.builders.oci.entries import Readable
from lj_image.builders.oci.processors import processors

MEMBER_BYTES: Final = 1024 * 1024
"""Of what one member holds: large enough that its own header and window cost nothing, small enough to share out."""
LEVEL: Final = 6
"""libdeflate's balance: higher levels gain a hundredth for twice the time."""
MAKER: Final = f"libdeflate-{deflate.__version__}-{LEVEL}"
"""Names what decides the bytes, so that nobody's remembered digest is taken for that of another library."""
# RFC 1952 §2.3.1: ID1 ID2, CM=deflate, no flags, MTIME=0, XFL=0, OS=unknown: the same on any host.
GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def gzip_members(source: Readable, *, workers: int | None = None) -> Generator[bytes, None, None]:
    """Yield the members of a gzip file with the source's bytes (RFC 1952 §2.2: one after the other is one file).

    libdeflate lets other threads run meanwhile, so each worker is a thread: by default as many as there are processors.
    """
    wanted = workers or processors()
    pending: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(wanted) as pool:
        for block in _blocks(source):
            pending.append(pool.submit(gzip_member, block))
            if len(pending) > 2 * wanted:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _blocks(source: Readable) -> Iterator[bytes]:
    """Yield blocks of the full size, and a shorter last one; one empty block for an empty source."""
    block = _filled(source)
    yield block
    while len(block) == MEMBER_BYTES and (block := _filled(source)):
        yield block


def _filled(source: Readable) -> bytes:
    """Read until a block is full, since a source may give less than it was asked for."""
    block = source.read(MEMBER_BYTES)
    while block and len(block) < MEMBER_BYTES and (more := source.read(MEMBER_BYTES - len(block))):
        block += more
    return block


def gzip_member(block: bytes) -> bytes:
    """Return one member that holds a block."""
    body = deflate.deflate_compress(block, LEVEL)
    return b"".join((GZIP_HEADER, body, gzip_trailer(zlib.crc32(block), len(block))))


def gzip_trailer(crc32: int, size_bytes: int) -> bytes:
    """Return CRC32 and ISIZE, the size modulo 2³² (RFC 1952 §2.3.1)."""
    return crc32.to_bytes(4, "little") + (size_bytes & 0xFFFFFFFF).to_bytes(4, "little")
