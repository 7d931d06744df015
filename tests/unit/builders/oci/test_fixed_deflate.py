"""Every stream is read back by zlib, which knows nothing of how ours are made."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lj_image.builders.oci.entries import File, Written
from lj_image.builders.oci.fixed_deflate import deflated, stored
from lj_image.builders.oci.tar_headers import FILE_TAIL, header

PIECES = st.one_of(
    st.binary(max_size=40),
    st.integers(0, 1200).map(bytes),
    st.sampled_from([b"usr/local/lib/", "ünï".encode(), b"0000644\0", FILE_TAIL]),
)


@given(st.lists(PIECES, max_size=6).map(b"".join))
@settings(max_examples=200, deadline=None)
def test_zlib_reads_back_what_was_deflated(plain: bytes) -> None:
    inflate = zlib.decompressobj(-15)
    assert inflate.decompress(deflated(plain)) == plain
    assert inflate.eof
    assert not inflate.unused_data


def test_zlib_reads_back_a_run_of_zeros_of_any_length() -> None:
    for count in (*range(4, 1100), 4096, 70000):
        assert zlib.decompress(deflated(bytes(count)), -15) == bytes(count)


@pytest.mark.parametrize("size", [0, 1, 65534, 65535, 65536, 200_000])
def test_zlib_reads_back_what_was_stored(size: int) -> None:
    plain = b"RECORD\n" * (size // 7) + b"x" * (size % 7)
    inflate = zlib.decompressobj(-15)
    assert inflate.decompress(stored(plain)) == plain
    assert inflate.eof
    assert not inflate.unused_data


@pytest.mark.parametrize("padding", [0, 1, 3, 4, 200, 511])
@pytest.mark.parametrize("path", ["a", "x" * 97, "x" * 100, "usr/lib/python3.11/site-packages/torch/__init__.py", "ä"])
def test_zlib_reads_back_a_header_after_a_padding(padding: int, path: str) -> None:
    plain = bytes(padding) + header(File(path, 0o755, 1_700_000_000, Written(b"x" * 12345)))
    assert zlib.decompress(deflated(plain), -15) == plain


def test_a_header_takes_little_more_than_zlib_makes_of_it() -> None:
    path = "usr/local/lib/python3.11/dist-packages/transformers/models/llama/modeling_llama.py"
    plain = bytes(200) + header(File(path, 0o644, 1_700_000_000, Written(b"x" * 12345)))
    compress = zlib.compressobj(6, zlib.DEFLATED, -15)
    assert len(deflated(plain)) <= 1.4 * len(compress.compress(plain) + compress.flush())


def test_the_bytes_are_those_of_rfc_1951_written_out_by_hand() -> None:
    # BFINAL=1, BTYPE=01, literal "a" (0x61 -> 10010001), end of block 0000000: 1 10 10001001 ... from the lowest bit.
    assert deflated(b"a") == b"\x4b\x04\x00"
