"""The limit's loop really inflates, digests and writes all of a wheel."""

from __future__ import annotations

import hashlib
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.limit import PIECE_BYTES, pass_all, pass_wheel, spans_of

CONTENTS = {
    "a/small.py": b"x = 1\n" * 50,
    "a/empty.py": b"",
    "a/large.so": random.Random(1).randbytes(3 * PIECE_BYTES + 17),
    "a/sparse.bin": bytes(40 * PIECE_BYTES),
}


def _wheel(path: Path, compression: int) -> Path:
    with zipfile.ZipFile(path, "w", compression) as pack:
        for name, content in CONTENTS.items():
            pack.writestr(name, content)
    return path


def _deflated(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(content) + compressor.flush()


@pytest.mark.parametrize(
    ("compression", "written"), [(zipfile.ZIP_STORED, lambda content: content), (zipfile.ZIP_DEFLATED, _deflated)]
)
def test_limit_loop_digests_and_writes_every_member(
    tmp_path: Path, compression: int, written: Callable[[bytes], bytes]
) -> None:
    wheel = spans_of(_wheel(tmp_path / "a.whl", compression))
    passed = pass_wheel(wheel, tmp_path / "written")
    compressed = b"".join(written(content) for content in CONTENTS.values() if content)
    assert passed.plain_sha256 == hashlib.sha256(b"".join(CONTENTS.values())).hexdigest()
    assert passed.compressed_sha256 == hashlib.sha256(compressed).hexdigest()
    assert (tmp_path / "written").read_bytes() == compressed


def test_limit_takes_the_largest_wheel_first_and_leaves_nothing(tmp_path: Path) -> None:
    large = spans_of(_wheel(tmp_path / "large.whl", zipfile.ZIP_DEFLATED))
    small = tmp_path / "small.whl"
    with zipfile.ZipFile(small, "w") as pack:
        pack.writestr("b.py", b"b")
    folder = tmp_path / "written"
    folder.mkdir()
    seconds, passed = pass_all([spans_of(small), large], folder, 2)
    assert seconds > 0
    assert [item.plain_sha256 for item in passed] == [
        hashlib.sha256(b"".join(CONTENTS.values())).hexdigest(),
        hashlib.sha256(b"b").hexdigest(),
    ]
    assert list(folder.iterdir()) == []
