from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from lj_image.builders.docker.tar_stream import CHUNK_BYTES, tar_chunks
from lj_image.builders.docker.tree import tree
from lj_image.context import ContextFile
from lj_image.errors import BuildError


def test_another_tar_reader_sees_every_entry(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_bytes(bytes(range(256)) * 1000)
    long = "d" * 90 + "/" + "f" * 90
    entries = tree((ContextFile("big", store), ContextFile(long, b"x" * 513, 0o755), ContextFile("empty", b"")))
    archive = b"".join(tar_chunks(entries, 7))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = {member.name: member for member in tar}
        assert list(found) == ["big", "d" * 90, long, "empty"]
        assert tar.extractfile("big").read() == store.read_bytes()  # type: ignore[union-attr]
        assert tar.extractfile(long).read() == b"x" * 513  # type: ignore[union-attr]
    assert found[long].mode == 0o755
    assert found["d" * 90].isdir()
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in found.values()} == {(0, 0, "", "", 7)}


def test_the_first_header_is_of_a_kind_that_engines_recognise() -> None:
    first = next(iter(tar_chunks(tree([ContextFile("é", b"")]), 0)))
    assert first[257:265] == b"ustar  \0"  # GNU magic; a PAX header would begin with a name of its own


def test_no_chunk_is_large(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_bytes(bytes(1_000_000))
    assert max(map(len, tar_chunks(tree([ContextFile("f", store)]), 0))) <= CHUNK_BYTES


def test_a_file_that_shrinks_or_vanishes_is_named(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_bytes(b"12345")
    chunks = tar_chunks(tree([ContextFile("f", store)]), 0)
    next(chunks)
    store.write_bytes(b"1")
    with pytest.raises(BuildError, match=f"{store} changed while it was sent: 5 bytes became 1"):
        list(chunks)
    store.unlink()
    with pytest.raises(BuildError, match=f"cannot read {store}"):
        list(tar_chunks(tree([ContextFile("f", store)]), 0))
