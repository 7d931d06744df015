"""Layers in every compression, in pieces, whole and cut."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard

from lj_image.oci.streams import DamagedStreamError, compression_of_start, decompressed

TEXT = b"".join(b"line %d of a layer\n" % number for number in range(50_000))
# RFC 8878 §3.1.2: magic number 0x184D2A50 to 5F, size, and that many bytes of anybody's.
SKIPPED = b"\x5e\x2a\x4d\x18" + (7).to_bytes(4, "little") + b"ignored"


def gzip_members(content: bytes, size: int = 9_999) -> bytes:
    return b"".join(gzip.compress(content[at : at + size], mtime=0) for at in range(0, len(content), size))


def zstd_frames(content: bytes, size: int = 9_999) -> bytes:
    frames = (zstandard.compress(content[at : at + size]) for at in range(0, len(content), size))
    return SKIPPED + SKIPPED.join(frames) + SKIPPED


def bytes_of(compressed: bytes) -> bytes:
    return b"".join(decompressed(io.BytesIO(compressed)))


@pytest.mark.parametrize(
    ("compress", "name"),
    [
        (bytes, "none"),
        (gzip.compress, "gzip"),
        (gzip_members, "gzip"),
        (zstandard.compress, "zstd"),
        (zstd_frames, "zstd"),
    ],
)
def test_a_layer_is_the_same_in_every_compression(compress: Callable[[bytes], bytes], name: str) -> None:
    assert bytes_of(compress(TEXT)) == TEXT
    assert compression_of_start(compress(TEXT)[:4]) == name


def test_nothing_is_nothing() -> None:
    assert bytes_of(b"") == b""
    assert compression_of_start(b"") == "none"
    assert bytes_of(gzip.compress(b"")) == bytes_of(zstandard.compress(b"")) == b""


@pytest.mark.parametrize("compress", [gzip.compress, gzip_members, zstandard.compress, zstd_frames])
@pytest.mark.parametrize("lost_bytes", [1, 7, 50])
def test_a_compressed_layer_that_ends_early_is_damaged(compress: Callable[[bytes], bytes], lost_bytes: int) -> None:
    with pytest.raises(DamagedStreamError, match="end early"):
        bytes_of(compress(TEXT)[:-lost_bytes])


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress])
def test_a_compressed_layer_with_other_bytes_is_damaged(compress: Callable[[bytes], bytes]) -> None:
    whole = bytearray(compress(TEXT))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = b"x" * 40
    with pytest.raises(zlib.error):
        bytes_of(bytes(whole))


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_what_follows_the_compressed_bytes_has_to_be_compressed_as_well(compress: Callable[[bytes], bytes]) -> None:
    with pytest.raises(zlib.error):
        bytes_of(compress(TEXT) + b"something else entirely")


def test_a_bomb_of_zstd_does_not_fill_the_memory() -> None:
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(200 * 1024 * 1024))
    tracemalloc.start()
    assert sum(map(len, decompressed(io.BytesIO(bomb)))) == 200 * 1024 * 1024
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bomb) < 64 * 1024
    assert peak < 160 * 1024 * 1024


def test_a_checksum_that_is_wrong_is_found() -> None:
    whole = bytearray(gzip.compress(TEXT))
    whole[-8] ^= 1  # RFC 1952 §2.3: CRC32 and ISIZE end a member
    with pytest.raises(DamagedStreamError):
        bytes_of(bytes(whole))
