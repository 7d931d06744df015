"""A layer is read back by gzip and tarfile, and held against the zips that it was spliced from."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import struct
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.builders.oci.chunks import Chunk
from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Streamed, Symlink, Written, ZipMember
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.layer_writer import LayerWriter
from lj_image.errors import BuildError

TIME = 1_700_000_000
TEXT = b"import torch\n" * 500
NOISE = random.Random(5).randbytes(900_000)
"""Does not compress, so that its deflate stream is longer than one piece."""


def zipped(path: Path, contents: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> dict[str, ZipMember]:
    """Write a zip; return its members as the layer wants them, found by the local headers' own lengths."""
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in contents.items():
            made.writestr(name, content)
    found = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for item in archive.infolist():
            file.seek(item.header_offset + 26)
            names = sum(struct.unpack("<HH", file.read(4)))
            sha256 = hashlib.sha256(contents[item.filename]).digest()
            offset = item.header_offset + 30 + names
            found[item.filename] = ZipMember(
                path, item.filename, offset, item.compress_size, item.file_size, item.CRC, method == 0, sha256
            )
    return found


def files(members: dict[str, ZipMember]) -> list[Entry]:
    return [File(f"opt/{name}", 0o644, TIME, member, "a.whl") for name, member in members.items()]


def written(entries: Iterable[Entry]) -> tuple[bytes, LayerBlob]:
    target = io.BytesIO()
    with LayerWriter(target) as writer:
        for entry in entries:
            writer.add(entry)
        blob = writer.finish()
    return target.getvalue(), blob


def unpacked(layer: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer))) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}  # type: ignore[union-attr]


CONTENTS = {
    "empty": b"",
    "one": b"1",
    "block": b"x" * 512,
    "text.py": TEXT,
    "noise.so": NOISE,
    "zeros.bin": bytes(40_000_000),  # longer than what is inflated at once
}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_gzip_and_tar_read_what_was_in_the_zip(tmp_path: Path, method: int) -> None:
    layer, _ = written(files(zipped(tmp_path / "a.zip", CONTENTS, method)))
    assert unpacked(layer) == {f"opt/{name}": content for name, content in CONTENTS.items()}


def test_the_digests_are_those_of_the_blob_and_of_the_tar_in_it(tmp_path: Path) -> None:
    layer, blob = written(files(zipped(tmp_path / "a.zip", CONTENTS)))
    tar = gzip.decompress(layer)
    assert blob.digest == f"sha256:{hashlib.sha256(layer).hexdigest()}"
    assert blob.diff_id == f"sha256:{hashlib.sha256(tar).hexdigest()}"
    assert (blob.size_bytes, blob.tar_bytes) == (len(layer), len(tar))


def test_a_layer_without_files_has_the_diff_id_that_docker_gives_an_empty_layer() -> None:
    _, blob = written([])
    assert blob.diff_id == "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"


def test_the_compressed_bytes_of_the_zip_are_in_the_layer_as_they_are(tmp_path: Path) -> None:
    members = zipped(tmp_path / "a.zip", {"noise.so": NOISE})
    layer, _ = written(files(members))
    member = members["noise.so"]
    deflated = (tmp_path / "a.zip").read_bytes()[member.offset : member.offset + member.compressed_bytes]
    assert deflated in layer


def test_folders_links_and_files_made_here_stand_in_the_tar(tmp_path: Path) -> None:
    entries = [
        Folder("opt", 0o755, TIME),
        File("opt/INSTALLER", 0o644, TIME, Written(b"lj-image\n")),
        File("opt/RECORD", 0o644, TIME, Written(TEXT)),
        File("opt/run", 0o755, TIME, Streamed(len(NOISE), io.BytesIO(NOISE))),
        File("opt/large", 0o644, TIME, Streamed(2 * len(NOISE), io.BytesIO(2 * NOISE))),
        Symlink("opt/link", "../etc", TIME),
        HardLink("opt/same", "opt/RECORD", 0o644, TIME),
    ]
    layer, _ = written(entries)
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        kinds = {member.name: member.type for member in tar}
        assert tar.extractfile("opt/same").read() == TEXT  # type: ignore[union-attr]
        assert tar.extractfile("opt/run").read() == NOISE  # type: ignore[union-attr]
        assert tar.extractfile("opt/large").read() == 2 * NOISE  # type: ignore[union-attr]
    assert kinds["opt"] == tarfile.DIRTYPE
    assert kinds["opt/link"] == tarfile.SYMTYPE


@pytest.mark.parametrize("tool", ["gzip -t", "tar -tzf -", "bsdtar -tzf -", "busybox tar -tzf -"])
def test_other_tools_read_the_layer(tmp_path: Path, tool: str) -> None:
    layer, _ = written(files(zipped(tmp_path / "a.zip", CONTENTS)))
    try:
        done = subprocess.run(tool.split(), input=layer, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"{tool.split()[0]} is not installed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split() in ([], [f"opt/{name}" for name in CONTENTS])


def broken(tmp_path: Path, **changes: object) -> list[Entry]:
    member = zipped(tmp_path / "a.zip", {"x.py": TEXT})["x.py"]
    return files({"x.py": replace(member, **changes)})  # type: ignore[arg-type]


def stream(plain: bytes) -> bytes:
    compress = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compress.compress(plain) + compress.flush()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"crc32": 1}, "its CRC-32 is not the one"),
        ({"sha256": bytes(32)}, "not what RECORD promises"),
        ({"size_bytes": len(TEXT) - 1}, "longer than the zip's directory says"),
        ({"size_bytes": len(TEXT) + 1}, "its size is not the one"),
        ({"compressed_bytes": 20}, "end too early"),
        ({"compressed_bytes": 5000}, "bytes follow the end"),
        ({"offset": 3}, "compressed bytes are damaged"),
    ],
)
def test_what_is_not_as_promised_is_refused_with_wheel_and_member(
    tmp_path: Path, changes: dict[str, object], fault: str
) -> None:
    with pytest.raises(BuildError) as caught:
        written(broken(tmp_path, **changes))
    assert caught.value.message.startswith("a.whl: x.py: ")
    assert fault in caught.value.message


@pytest.mark.parametrize("size", [400_000, 0])
def test_a_stored_member_that_is_cut_is_refused(tmp_path: Path, size: int) -> None:
    member = zipped(tmp_path / "a.zip", {"x.so": NOISE}, zipfile.ZIP_STORED)["x.so"]
    os.truncate(tmp_path / "a.zip", member.offset + size)
    with pytest.raises(BuildError, match=r"a\.whl: x\.so: "):
        written(files({"x.so": member}))


def test_a_member_that_unpacks_to_far_more_is_refused_after_what_it_announced(tmp_path: Path) -> None:
    bomb = stream(bytes(50_000_000))
    (tmp_path / "bomb").write_bytes(bomb)
    member = ZipMember(tmp_path / "bomb", "x.py", 0, len(bomb), 1000, 0, False)
    with pytest.raises(BuildError, match="longer than the zip's directory says"):
        written(files({"x.py": member}))


def test_a_stream_that_gives_less_than_it_announced_is_refused() -> None:
    with pytest.raises(BuildError, match="has 3 bytes, not the 5 that were announced"):
        written([File("x", 0o644, TIME, Streamed(5, io.BytesIO(b"abc")), "a.tar")])


def test_each_payload_is_told_with_the_places_where_it_can_be_read_alone(tmp_path: Path) -> None:
    told: list[tuple[str, Sequence[Chunk], str]] = []
    target = io.BytesIO()
    entries = [*files(zipped(tmp_path / "a.zip", CONTENTS)), File("opt/tiny", 0o644, TIME, Written(b"x"))]
    with LayerWriter(target, lambda entry, chunks, digest: told.append((entry.path, chunks, digest))) as writer:
        for entry in entries:
            writer.add(entry)
        writer.finish()
    contents = {f"opt/{name}": content for name, content in (CONTENTS | {"tiny": b"x"}).items() if content}
    assert [path for path, _, _ in told] == list(contents)
    for path, chunks, digest in told:
        parts = [zlib.decompressobj(wbits=31).decompress(target.getvalue()[chunk.offset :]) for chunk in chunks]
        plain = b"".join(parts)
        assert plain == contents[path]
        assert [chunk.digest for chunk in chunks] == [hashlib.sha256(part).hexdigest() for part in parts]
        assert digest == hashlib.sha256(plain).hexdigest()
