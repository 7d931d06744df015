"""Each archive is also unpacked by the program that a build runs, which says what the tree must be."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lj_image import unzip
from lj_image.builders.oci import decompression
from lj_image.builders.oci.archives import archive_entries
from lj_image.builders.oci.compose import Composition, Ground
from lj_image.builders.oci.entries import EARLIEST_TIME, Entry, File, Folder, HardLink, Streamed, Symlink, ZipMember
from lj_image.catalog.release import ArchiveSource
from lj_image.errors import BuildError
from samples.zips import DIRECTORY, FILE, LINK, packed

TIME = 1709209858
REGULAR, DIR, SYM, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
Row = tuple[str, bytes, dict[str, Any], bytes]
Tree = dict[str, tuple[object, ...]]

needs_tar = pytest.mark.skipif(shutil.which("tar") is None or os.name != "posix", reason="no tar here to compare with")


def file(name: str, content: bytes = b"x", **fields: Any) -> Row:
    return name, REGULAR, fields, content


def folder(name: str, mode: int = 0o755) -> Row:
    return name, DIR, {"mode": mode}, b""


def link(name: str, target: str, kind: bytes = SYM) -> Row:
    return name, kind, {"linkname": target}, b""


def tar_of(*rows: Row, form: int = tarfile.GNU_FORMAT, **options: Any) -> bytes:
    spool = io.BytesIO()
    with tarfile.open(fileobj=spool, mode="w", format=form, **options) as tar:
        for name, kind, fields, content in rows:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.mtime, member.uid = kind, len(content), TIME, 1234
            for key, value in fields.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content))
    return spool.getvalue()


def unpacked(
    folder: Path, content: bytes, strip: int = 0, name: str = "kit.tar", path: str = "/opt/kit/"
) -> list[Entry]:
    archive = folder / name
    archive.write_bytes(content)
    found = []
    for entry in archive_entries(archive, ArchiveSource(name, "vendor", path, strip, None, "archive")):
        if isinstance(entry, File) and isinstance(entry.content, Streamed):
            drained = b"".join(iter(lambda reader=entry.content.reader: reader.read(1000), b""))
            assert len(drained) == entry.content.size_bytes
            entry = File(entry.path, entry.mode, entry.mtime, Streamed(len(drained), io.BytesIO(drained)), entry.owner)
        found.append(entry)
    return found


def tree_of(entries: list[Entry], root: str = "opt/kit") -> Tree:
    """Lay entries out as a tar reader would; all names of a file share a number."""
    found: Tree = {}
    for entry in entries:
        relative = os.path.relpath(entry.path, root)
        match entry:
            case Folder():
                found[relative] = ("folder", entry.mode)
            case Symlink():
                found[relative] = ("link", entry.target)
            case HardLink():
                found[relative] = found[os.path.relpath(entry.target, root)]
            case File():
                found[relative] = ("file", entry.mode, entry.mtime, content_of(entry), len(found))
    return _numbered(found)


def content_of(entry: File) -> bytes:
    if isinstance(entry.content, ZipMember):
        member = entry.content
        with member.archive.open("rb") as opened:
            opened.seek(member.offset)
            raw = opened.read(member.compressed_bytes)
        return raw if member.is_stored else zlib.decompress(raw, -15)
    assert isinstance(entry.content, Streamed)
    assert isinstance(entry.content.reader, io.BytesIO)
    return entry.content.reader.getvalue()


def _numbered(tree: Tree) -> Tree:
    """Files that are one have one number: that of the first of their names."""
    first: dict[object, int] = {}
    return {
        path: (*fact[:-1], first.setdefault(fact[-1], number)) if fact[0] == "file" else fact
        for number, (path, fact) in enumerate(sorted(tree.items()))
    }


def tree_on_disk(root: Path) -> Tree:
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        seen = path.lstat()
        relative = str(path.relative_to(root))
        if stat.S_ISLNK(seen.st_mode):
            found[relative] = ("link", os.readlink(path))  # noqa: PTH115 (Path tidies the target)
        elif path.is_dir():
            found[relative] = ("folder", stat.S_IMODE(seen.st_mode))
        else:
            found[relative] = ("file", stat.S_IMODE(seen.st_mode), int(seen.st_mtime), path.read_bytes(), seen.st_ino)
    return _numbered(found)


def tar_itself(folder: Path, content: bytes, strip: int = 0) -> Tree:
    archive, root = folder / "for-tar", folder / "unpacked"
    archive.write_bytes(content)
    root.mkdir()
    command = ["tar", "-xf", archive, "-C", root, "-p", "--no-same-owner", f"--strip-components={strip}"]
    subprocess.run(command, check=True, capture_output=True, umask=0o022)
    return tree_on_disk(root)


LONG = "kit/" + "/".join(["a-folder-with-a-long-name"] * 9) + "/" + "n" * 150

TREES: dict[str, tuple[bytes, int]] = {
    "modes, set-uid and sticky bits": (
        tar_of(folder("kit/", 0o2775), file("kit/su", mode=0o4755), folder("kit/t", 0o1777), file("kit/none", mode=0)),
        1,
    ),
    "hard links, of files and of links": (
        tar_of(
            folder("./kit"), file("./kit/a"), link("./kit/b", "./kit/a", HARD),
            link("./kit/s", "a"), link("./kit/h", "./kit/s", HARD),
        ),
        2,
    ),
    "a leading dot counts as a component": (tar_of(folder("./kit"), file("./kit/a", b"A" * 700)), 1),
    "symbolic links keep their targets": (
        tar_of(link("kit/up", "../../etc/passwd"), link("kit/abs", "/etc/passwd"), link("kit/x", "./a//b")),
        1,
    ),
    "what is stripped away": (tar_of(folder("kit"), file("README"), folder("kit/d"), file("kit/d/f", b"")), 1),
    "an absolute name loses its slash": (tar_of(folder("/kit"), file("/kit/a"), link("/kit/b", "/kit/a", HARD)), 1),
    "below a link that stays inside": (
        tar_of(folder("kit/lib"), link("kit/lib64", "lib"), link("kit/so", "./lib64"), file("kit/so/x")),
        1,
    ),
    "the same twice": (
        tar_of(*[folder("kit"), file("kit/a"), link("kit/l", "a"), link("kit/h", "kit/a", HARD)] * 2),
        0,
    ),
    "long names, GNU": (tar_of(file(LONG), link("kit/l", "t" * 180), link("kit/h", LONG, HARD)), 1),
    "long names, pax": (
        tar_of(file(LONG), link("kit/l", "t" * 180), link("kit/h", LONG, HARD), form=tarfile.PAX_FORMAT),
        1,
    ),
    "names that no ASCII holds, and times with fractions": (
        tar_of(file("kit/手册 é.txt", mtime=TIME + 0.75), form=tarfile.PAX_FORMAT),
        1,
    ),
    "names that are no UTF-8": (tar_of(file("kit/\udce9"), encoding="utf-8", errors="surrogateescape"), 1),
    "folders before POSIX": (tar_of(("kit/d/", tarfile.AREGTYPE, {"mode": 0o711}, b""), file("kit/d/f")), 1),
}  # fmt: skip


@needs_tar
@pytest.mark.parametrize("case", TREES)
def test_the_tree_is_what_tar_leaves(case: str, tmp_path: Path) -> None:
    content, strip = TREES[case]
    expected = tar_itself(tmp_path, content, strip)
    found = tree_of(unpacked(tmp_path, content, strip))
    implied = {path for path in expected if path not in found and expected[path][0] == "folder"}
    assert found == _numbered({path: fact for path, fact in expected.items() if path not in implied})
    assert {expected[path][1] for path in implied} <= {0o755}


@pytest.mark.parametrize(
    "compress",
    [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress,
     lambda content: gzip.compress(content[:700]) + gzip.compress(content[700:]),
     lambda content: lzma.compress(content, lzma.FORMAT_ALONE)],
    ids=["plain", "gzip", "bzip2", "xz", "zstd", "two gzip members", "lzma"],
)  # fmt: skip
def test_the_compression_is_told_by_the_content(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    content = compress(tar_of(file("kit/a", os.urandom(3000)), file("kit/b", b"B")))
    assert [entry.path for entry in unpacked(tmp_path, content, 1, name="kit.tgz")] == ["opt/kit/a", "opt/kit/b"]


def test_times_before_any_zip_are_brought_forward(tmp_path: Path) -> None:
    found = unpacked(tmp_path, tar_of(file("a", mtime=5), file("b", mtime=-5), file("c", mtime=TIME)))
    assert [entry.mtime for entry in found] == [EARLIEST_TIME, EARLIEST_TIME, TIME]


def test_the_folder_itself_has_a_mode_only_where_the_archive_states_it(tmp_path: Path) -> None:
    [entry] = unpacked(tmp_path, tar_of(folder("./", 0o700)))
    assert (entry.path, entry) == ("opt/kit", Folder("opt/kit", 0o700, TIME, "kit.tar"))
    assert unpacked(tmp_path, tar_of(folder("./", 0o700)), path="/") == []


def refusal(folder: Path, content: bytes, strip: int = 0, name: str = "kit.tar") -> str:
    with pytest.raises(BuildError) as caught:
        unpacked(folder, content, strip, name)
    assert caught.value.message.startswith(f"{name}: ")
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize(
    ("rows", "strip", "member", "reason"),
    [
        ([file("kit/../../x")], 0, "kit/../../x", "leads out"),
        ([file("..")], 0, "..", "leads out"),
        ([file("kit/.wh.x")], 1, "kit/.wh.x", "deletes files in a layer"),
        ([file("kit/.wh..wh..opq/x")], 1, "kit/.wh..wh..opq/x", "deletes files in a layer"),
        ([("kit/null", tarfile.CHRTYPE, {}, b"")], 0, "kit/null", "a device"),
        ([("kit/sda", tarfile.BLKTYPE, {}, b"")], 0, "kit/sda", "a device"),
        ([("kit/pipe", tarfile.FIFOTYPE, {}, b"")], 0, "kit/pipe", "a pipe"),
        ([("kit/new", b"Z", {}, b"")], 0, "kit/new", "unknown type"),
        ([("kit/sparse", tarfile.GNUTYPE_SPARSE, {}, b"")], 0, "kit/sparse", "a sparse file"),
        ([file("kit/s", pax_headers={"GNU.sparse.major": "1"})], 0, "kit/s", "a sparse file"),
        ([link("kit/h", "kit/later", HARD), file("kit/later")], 0, "kit/h", "does not stand before it"),
        ([file("top"), link("kit/h", "top", HARD)], 1, "kit/h", "does not stand before it"),
        ([link("kit/h", "/etc/passwd", HARD)], 0, "kit/h", "does not stand before it"),
        ([folder("kit/d"), link("kit/h", "kit/d", HARD)], 0, "kit/h", "does not stand before it"),
        ([link("kit/h", "../../etc/shadow", HARD)], 0, "kit/h", "leads out"),
        ([link("kit/etc", "/etc"), file("kit/etc/passwd")], 0, "kit/etc/passwd", "leads to '/etc'"),
        ([link("etc", "../etc"), file("etc/passwd")], 0, "etc/passwd", "leads out"),
        ([link("a", "b"), link("b", "a"), file("a/x")], 0, "a/x", "leads to"),
        ([file("kit/a", b"1"), file("./kit/a", b"2")], 0, "./kit/a", "twice"),
        ([file("kit/a", mode=0o755), file("kit/a", mode=0o644)], 0, "kit/a", "twice"),
        ([file("kit/a"), link("kit/a", "b")], 0, "kit/a", "twice"),
        ([link("kit/lib", "real"), folder("kit/lib")], 0, "kit/lib/", "twice"),
        ([folder("kit/d", 0o700), folder("kit/d", 0o755)], 0, "kit/d/", "twice"),
        ([file("./.")], 0, "./.", "that of a folder"),
    ],
)  # fmt: skip
def test_a_hostile_member_is_named(rows: list[Row], strip: int, member: str, reason: str, tmp_path: Path) -> None:
    form = tarfile.PAX_FORMAT if "pax_headers" in rows[0][2] else tarfile.GNU_FORMAT
    said = refusal(tmp_path, tar_of(*rows, form=form), strip)
    assert repr(member) in said
    assert reason in said


def truncations() -> Iterator[tuple[str, bytes]]:
    whole = tar_of(file("kit/a", os.urandom(5000)), file("kit/b", os.urandom(5000)))
    yield "plain", whole[:7000]
    yield "gzip", gzip.compress(whole)[:-2000]
    yield "the checksum of gzip", gzip.compress(whole)[:-4]
    yield "bzip2", bz2.compress(whole)[:-2000]
    yield "xz", lzma.compress(whole)[:-2000]
    yield "zstd", zstandard.ZstdCompressor().compress(whole)[:-2000]
    yield "zstd, in the last bytes", zstandard.ZstdCompressor().compress(whole)[:-1]
    damaged = bytearray(gzip.compress(whole))
    damaged[4000] ^= 0xFF
    yield "a flipped bit", bytes(damaged)
    yield "no tar", b"<html>not found</html>" * 99
    yield "gzip of no tar", gzip.compress(b"<html>not found</html>" * 99)


@pytest.mark.parametrize(("kind", "content"), [pytest.param(*case, id=case[0]) for case in truncations()])
def test_a_damaged_archive_is_told_from_whoever_reads_it(kind: str, content: bytes, tmp_path: Path) -> None:
    assert "cannot be read as a tar" in refusal(tmp_path, content)


def test_an_archive_without_members_is_a_mistake(tmp_path: Path) -> None:
    assert "holds nothing" in refusal(tmp_path, tar_of())


def test_one_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="No such file"):
        list(archive_entries(tmp_path / "none", ArchiveSource("kit.tar", "vendor", "/opt", 0, None, "archive")))


@pytest.mark.parametrize("name", ["kit.tar.gz", "kit.zip"])
def test_a_bomb_is_given_up(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "LEAST_LIMIT_BYTES", 1_000_000)
    zeros = bytes(3_000_000)
    content = packed(("a", zeros, FILE | 0o644)) if name.endswith("zip") else gzip.compress(tar_of(file("a", zeros)))
    assert "far larger than any honest archive" in refusal(tmp_path, content, name=name)


def unzip_itself(folder: Path, content: bytes, strip: int) -> Tree:
    archive, root = folder / "for-unzip", folder / "unpacked"
    archive.write_bytes(content)
    root.mkdir()
    command = [sys.executable, "-I", "-B", unzip.__file__, str(archive), str(root), str(strip)]
    subprocess.run(command, check=True, capture_output=True, umask=0o022)
    return tree_on_disk(root)


def test_the_tree_is_what_unzip_leaves(tmp_path: Path) -> None:
    content = packed(
        ("kit/", b"", DIRECTORY | 0o755),
        ("kit/lib/so", b"library" * 99, FILE | 0o755),
        ("kit/lib/so.1", b"so", LINK | 0o777),
        ("kit/lib/", b"", DIRECTORY | 0o750),
        ("./kit/share/說明.txt", b"", FILE | 0o4640),
        ("kit/share/", b"", DIRECTORY | 0o755),
        ("kit/plain", b"p", 0),
        ("LICENSE", b"stripped", FILE | 0o644),
    )
    expected = unzip_itself(tmp_path, content, 1)
    assert tree_of(unpacked(tmp_path, content, 1, name="kit.zip")) == expected


def test_what_deflate_or_nothing_packed_is_taken_as_it_lies_and_the_rest_is_read(tmp_path: Path) -> None:
    spool = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(spool, "w") as pack:
        for method in methods:
            pack.writestr(zipfile.ZipInfo(f"by-{method}"), b"content " * 99, method)
    found = unpacked(tmp_path, b"#!/bin/sh\n" + spool.getvalue(), name="kit.zip")
    kinds = [type(entry.content) for entry in found if isinstance(entry, File)]
    assert kinds == [ZipMember, ZipMember, Streamed, Streamed]
    assert {content_of(entry) for entry in found if isinstance(entry, File)} == {b"content " * 99}


def _with(content: bytes, at: int, value: bytes) -> bytes:
    """Change the directory's record and the local header of a zip's only member alike."""
    local, directory = content.index(b"PK\3\4"), content.index(b"PK\1\2")
    changed = bytearray(content)
    changed[local + at : local + at + len(value)] = value
    changed[directory + at + 2 : directory + at + 2 + len(value)] = value
    return bytes(changed)


ONE = packed(("kit/one", b"one" * 50, FILE | 0o644))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (packed(("/etc/passwd", b"", FILE)), "'/etc/passwd': an absolute path"),
        (packed(("../x", b"", FILE)), "'../x': leads out"),
        (packed(("kit/.wh.a", b"", FILE)), "'kit/.wh.a': a name that deletes"),
        (packed(("kit/pipe", b"", 0o010644)), "'kit/pipe': neither a file"),
        (packed(("kit/l", b"t" * 5000, LINK | 0o777)), "'kit/l': a link to a path"),
        (_with(ONE, 6, b"\1"), "'kit/one': is encrypted"),
        (_with(ONE, 8, b"\x09"), "'kit/one': packed by the method 9"),
        (ONE.replace(b"PK\3\4", b"PK\3\5"), "'kit/one': its own header"),
        (ONE[:-30], "cannot be read as a zip"),
        (b"<html>", "cannot be read as a zip"),
    ],
)  # fmt: skip
def test_a_hostile_zip_is_refused_with_the_member(content: bytes, reason: str, tmp_path: Path) -> None:
    assert reason in refusal(tmp_path, content, name="kit.zip")


def test_members_that_lie_over_each_other_are_refused(tmp_path: Path) -> None:
    spool = io.BytesIO()
    with zipfile.ZipFile(spool, "w") as pack:
        for number in range(3):
            pack.writestr(zipfile.ZipInfo(str(number)), os.urandom(3000))
        for item in pack.infolist():
            item.header_offset = 0
    cut = spool.getvalue()
    start = cut.index(b"PK\1\2")
    head = zipfile.ZipFile(io.BytesIO(cut)).infolist()[1].header_offset
    directory = bytearray(cut[start:])
    at = directory.index(b"PK\5\6")
    directory[at + 16 : at + 20] = head.to_bytes(4, "little")
    whole = cut[:head] + bytes(directory)
    assert "lie over each other" in refusal(tmp_path, whole, name="kit.zip")


def test_a_damaged_member_of_another_method_is_named(tmp_path: Path) -> None:
    spool = io.BytesIO()
    with zipfile.ZipFile(spool, "w", zipfile.ZIP_BZIP2) as pack:
        pack.writestr("kit/one", os.urandom(3000))
    content = bytearray(spool.getvalue())
    content[1000] ^= 0xFF
    assert "'kit/one'" in refusal(tmp_path, bytes(content), name="kit.zip")


PATHS = st.lists(st.sampled_from(["a", "b", ".", "lib", ".."]), min_size=1, max_size=4).map("/".join)
ROWS = st.one_of(
    st.builds(file, PATHS, st.binary(max_size=3), mode=st.sampled_from([0o644, 0o4755, 0])),
    st.builds(folder, PATHS, st.sampled_from([0o755, 0o700])),
    st.builds(link, PATHS, PATHS),
    st.builds(link, PATHS, PATHS, st.just(HARD)),
)


@needs_tar
@settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "40")), deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=7), strip=st.integers(0, 2))
def test_whatever_is_not_refused_is_what_tar_leaves(rows: list[Row], strip: int) -> None:
    content = tar_of(*rows)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        try:
            entries = list(Composition(Ground()).entries([unpacked(place, content, strip)]))
        except BuildError:
            return
        found = tree_of([entry for entry in entries if entry.path.startswith("opt/kit/")])
        assert found == tar_itself(place, content, strip)
