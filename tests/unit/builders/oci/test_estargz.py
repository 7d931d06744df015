"""A lazy layer is opened by a reader that knows only the published format, and is a plain layer for anyone else."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lj_image.builders.oci.chunks import CHUNK_BYTES
from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Streamed, Symlink, Written, ZipMember
from lj_image.builders.oci.estargz import EstargzWriter, footer, require_not_lazy
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.errors import BuildError, UsageError
from samples.estargz_reader import Estargz, digest_of, opened

TIME = 1_566_297_043  # 2019-08-20T10:30:43Z, as the format's own example has it
MIB = 1024 * 1024
LARGE = random.Random(1).randbytes(1024) * 9 * 1024 + b"the end"
"""Three chunks, of which the last is shorter."""
EXACT = random.Random(2).randbytes(1024) * 8 * 1024
"""Two whole chunks."""


def zipped(path: Path, name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> ZipMember:
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr(name, content)
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        (item,) = archive.infolist()
        file.seek(26)
        offset = 30 + sum(struct.unpack("<HH", file.read(4)))
    digest = hashlib.sha256(content).digest()
    return ZipMember(path, name, offset, item.compress_size, item.file_size, item.CRC, method == 0, digest)


def written(entries: Iterable[Entry]) -> tuple[bytes, LayerBlob, dict[str, str]]:
    target = io.BytesIO()
    with EstargzWriter(target) as writer:
        for entry in entries:
            writer.add(entry)
        blob = writer.finish()
    return target.getvalue(), blob, dict(writer.annotations)


def entries_in(folder: Path) -> Iterator[Entry]:
    """Yield one of everything, as it can only be read once."""
    yield Folder("opt")
    yield Folder("opt/own", 0o2750, TIME, uid=100, gid=65534)
    yield File("opt/empty", 0o644, TIME, Written(b""))
    yield File("opt/tiny", 0o755, TIME, Written(b"x"))
    yield File("opt/text.py", 0o644, TIME, zipped(folder / "text.zip", "text.py", b"import torch\n" * 500))
    yield File("opt/stored", 0o600, TIME, zipped(folder / "stored.zip", "stored", b"y" * 70_000, zipfile.ZIP_STORED))
    yield File("opt/large.so", 0o755, TIME, zipped(folder / "large.zip", "large.so", LARGE))
    yield File("opt/exact", 0o644, TIME, zipped(folder / "exact.zip", "exact", EXACT, zipfile.ZIP_STORED))
    yield File("opt/streamed", 0o644, TIME, Streamed(len(LARGE), io.BytesIO(LARGE)))
    yield File("opt/streamed-small", 0o644, TIME, Streamed(5, io.BytesIO(b"small")))
    yield File("opt/written-large", 0o644, TIME, Written(LARGE))
    yield Symlink("opt/link", "../über", TIME)
    yield HardLink("opt/hard", "opt/tiny", 0o755, TIME)
    yield File(f"opt/{'long/' * 50}ünd", 0o644, TIME, Written(b"deep"))


CONTENTS = {
    "opt/empty": b"",
    "opt/tiny": b"x",
    "opt/text.py": b"import torch\n" * 500,
    "opt/stored": b"y" * 70_000,
    "opt/large.so": LARGE,
    "opt/exact": EXACT,
    "opt/streamed": LARGE,
    "opt/streamed-small": b"small",
    "opt/written-large": LARGE,
    f"opt/{'long/' * 50}ünd": b"deep",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, LayerBlob, dict[str, str]]:
    return written(entries_in(tmp_path_factory.mktemp("zips")))


@pytest.fixture(scope="module")
def tar(made: tuple[bytes, LayerBlob, dict[str, str]]) -> bytes:
    return gzip.decompress(made[0])


@pytest.fixture(scope="module")
def layer(made: tuple[bytes, LayerBlob, dict[str, str]]) -> Estargz:
    return opened(made[0])


def test_the_footer_is_the_one_that_the_reference_writer_gives() -> None:
    # Of a layer with one small file, by stargz-snapshotter 0.12.
    expected = "1f8b08040000000000ff1a00534716003030303030303030303030303030356553544152475a010000ffff0000000000000000"
    assert footer(0x5E).hex() == expected


def test_every_file_is_read_by_its_place_alone(layer: Estargz) -> None:
    assert {name: layer.read(name) for name in CONTENTS} == CONTENTS


def test_the_table_has_every_entry_of_the_tar_but_itself_in_its_order(tar: bytes, layer: Estargz) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        names = [f"{member.name}/" if member.isdir() else member.name for member in archive]
    assert [*layer.names(), "stargz.index.json"] == names


def test_the_first_entry_says_that_nothing_is_to_be_fetched_beforehand(layer: Estargz) -> None:
    assert layer.names()[0] == ".no.prefetch.landmark"
    assert layer.read(".no.prefetch.landmark") == b"\x0f"
    # The format's own example has this digest for a landmark.
    landmark = "sha256:dc0e9c3658a1a3ed1ec94274d8b19925c93e1abb7ddba294923ad9bde30f8cb8"
    assert layer.entry(".no.prefetch.landmark")["digest"] == landmark


def test_a_folders_row_has_its_owner_mode_and_time(layer: Estargz) -> None:
    assert layer.entry("opt/own/") == {
        "name": "opt/own/",
        "type": "dir",
        "mode": 0o2750,
        "uid": 100,
        "gid": 65534,
        "modtime": "2019-08-20T10:30:43Z",
    }


def test_the_rows_of_links_have_their_targets(layer: Estargz) -> None:
    assert (layer.entry("opt/link")["type"], layer.entry("opt/link")["linkName"]) == ("symlink", "../über")
    assert (layer.entry("opt/hard")["type"], layer.entry("opt/hard")["linkName"]) == ("hardlink", "opt/tiny")


def test_an_empty_files_row_has_neither_size_nor_place(layer: Estargz) -> None:
    assert layer.entry("opt/empty") == {
        "name": "opt/empty",
        "type": "reg",
        "mode": 0o644,
        "uid": 0,
        "gid": 0,
        "modtime": "2019-08-20T10:30:43Z",
        "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }


@pytest.mark.parametrize("name", ["opt/large.so", "opt/streamed", "opt/written-large"])
def test_a_large_file_is_cut_whatever_it_comes_from(layer: Estargz, name: str) -> None:
    assert [row["chunkSize"] for row in layer.chunks(name)] == [4 * MIB, 4 * MIB, MIB + len(b"the end")]
    rows = [row for row in layer.entries if row["name"] == name]
    assert [row["type"] for row in rows] == ["reg", "chunk", "chunk"]
    assert "chunkSize" not in rows[-1]  # "The last chunk … MUST set this property to zero."


def test_no_chunk_is_longer_than_what_a_snapshotter_should_hold(layer: Estargz) -> None:
    sizes = [row["chunkSize"] for name in CONTENTS for row in layer.chunks(name)]
    assert max(sizes) == CHUNK_BYTES == 4 * MIB


def test_no_two_rows_have_one_place(layer: Estargz) -> None:
    """The reference reader refuses the table otherwise."""
    places = [row["offset"] for row in layer.entries if "offset" in row]
    assert len(places) == len(set(places))
    assert places == sorted(places)


def test_the_annotations_are_the_tables_digest_and_the_tars_size(
    made: tuple[bytes, LayerBlob, dict[str, str]], tar: bytes, layer: Estargz
) -> None:
    assert made[2] == {
        "containerd.io/snapshot/stargz/toc.digest": layer.table_digest,
        "io.containers.estargz.uncompressed-size": str(len(tar)),
    }


def test_the_digests_are_those_of_the_blob_and_of_the_whole_tar_in_it(
    made: tuple[bytes, LayerBlob, dict[str, str]], tar: bytes
) -> None:
    content, blob, _ = made
    assert (blob.digest, blob.size_bytes) == (digest_of(content), len(content))
    assert (blob.diff_id, blob.tar_bytes) == (digest_of(tar), len(tar))


def test_it_is_a_plain_layer_for_who_knows_nothing_of_it(tar: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        read = {item.name: archive.extractfile(item).read() for item in archive if item.isreg()}  # type: ignore[union-attr]
    own = {".no.prefetch.landmark", "stargz.index.json"}
    assert {name: content for name, content in read.items() if name not in own} == CONTENTS


@pytest.mark.parametrize("words", [["gzip", "-t"], ["tar", "-tzf", "-"], ["bsdtar", "-tzf", "-"]])
def test_the_programs_that_unpack_layers_take_it(
    made: tuple[bytes, LayerBlob, dict[str, str]], words: list[str]
) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, input=made[0], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_same_entries_give_the_same_bytes_whatever_the_machine_has(
    made: tuple[bytes, LayerBlob, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    before = os.umask(0o077)
    try:
        assert written(entries_in(tmp_path))[1] == made[1]
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["stargz.index.json", ".prefetch.landmark", ".no.prefetch.landmark"])
def test_a_name_that_the_format_keeps_for_itself_is_refused(name: str) -> None:
    with pytest.raises(BuildError, match=rf"a\.tar: {name} is a name that eStargz keeps"):
        written([File(name, 0o644, TIME, Written(b"x"), "a.tar")])


def test_such_a_name_below_a_folder_is_any_files(tmp_path: Path) -> None:
    content, _, _ = written([Folder("opt"), File("opt/stargz.index.json", 0o644, TIME, Written(b"{}"))])
    assert opened(content).read("opt/stargz.index.json") == b"{}"


@pytest.mark.parametrize(
    "entry", [File("caf\udce9", 0o644, TIME, Written(b"x"), "a.tar"), Symlink("x", "\udce9", TIME)]
)
def test_a_name_that_json_cannot_say_is_refused(entry: Entry) -> None:
    with pytest.raises(BuildError, match="is no UTF-8") as caught:
        written([entry])
    assert "build without --lazy" in str(caught.value.hint)


def test_a_large_member_that_breaks_its_promise_is_refused(tmp_path: Path) -> None:
    member = zipped(tmp_path / "a.zip", "x.so", LARGE)
    with (tmp_path / "a.zip").open("r+b") as file:
        file.seek(member.offset + member.compressed_bytes // 2)
        file.write(bytes(64))
    with pytest.raises(BuildError, match=r"a\.whl: x\.so: "):
        written([File("x.so", 0o644, TIME, member, "a.whl")])


def test_a_large_stream_that_gives_less_than_it_announced_is_refused() -> None:
    with pytest.raises(BuildError, match="has 5,000,000 bytes, not the 6,000,000 that were announced"):
        written([File("x", 0o644, TIME, Streamed(6_000_000, io.BytesIO(bytes(5_000_000))), "a.tar")])


def test_a_layer_without_entries_is_one(tmp_path: Path) -> None:
    content, _, _ = written([])
    assert opened(content).names() == [".no.prefetch.landmark"]


def test_zstd_and_lazy_exclude_each_other() -> None:
    require_not_lazy("gzip", is_lazy=True)
    require_not_lazy("zstd", is_lazy=False)
    with pytest.raises(UsageError, match="eStargz is a format of gzip layers"):
        require_not_lazy("zstd", is_lazy=True)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a process held at most")
def test_a_file_of_any_size_passes_through_a_few_chunks(tmp_path: Path) -> None:
    code = """
import sys
from lj_image.builders.oci.entries import File, Streamed
from lj_image.builders.oci.estargz import EstargzWriter

class Zeros:
    left = 256 * 1024 * 1024
    def read(self, size):
        size = min(size, self.left)
        self.left -= size
        return bytes(size)

with open("/dev/null", "wb") as target, EstargzWriter(target) as writer:
    writer.add(File("x", 0o644, 0, Streamed(Zeros.left, Zeros())))
    writer.finish()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200 * 1024
