"""Every stream is read back by zlib, which knows nothing of how ours are made."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lj_image.builders.oci.fixed_deflate import deflated, stored
from lj_image.builders.oci.tar_headers import FILE_TAIL

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


def test_a_header_takes_little_more_than_zlib_makes_of_it() -> None:
    plain = bytes(200) + b"usr/local/lib/python3.11/site-packages/a/module.py".ljust(156, b"\0") + FILE_TAIL
    compress = zlib.compressobj(6, zlib.DEFLATED, -15)
    assert len(deflated(plain)) <= 1.5 * len(compress.compress(plain) + compress.flush())


def test_the_bytes_are_those_of_rfc_1951_written_out_by_hand() -> None:
    # BFINAL=1, BTYPE=01, literal "a" (0x61 -> 10010001), end of block 0000000: 1 10 10001001 ... from the lowest bit.
    assert deflated(b"a") == b"\x4b\x04\x00"
