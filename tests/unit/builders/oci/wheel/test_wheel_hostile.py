"""Wheels that would do harm in a layer, or are not what they say: each is refused, by wheel and member."""

from __future__ import annotations

import contextlib
import io
import stat
import unicodedata
import zlib
from pathlib import Path

import pytest

from lj_image.builders.oci.compose import Composition, Ground
from lj_image.builders.oci.layer_writer import LayerWriter
from lj_image.builders.oci.wheel import members as limits
from lj_image.builders.oci.wheel.install import installed
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.errors import BuildError
from samples.wheels import (
    FILE,
    INFO,
    LINK,
    METADATA,
    SCHEME,
    SITE,
    STORED,
    WHEEL,
    WINDOWS,
    Member,
    archive,
    changed,
    completed,
    wheel,
    without,
    written,
)

FILE_NAME = "tiny-1.0-py3-none-any.whl"
GOOD = Member("tiny.py", b"x = 1\n" * 100)


def layered(source: Wheel) -> int:
    """Write a wheel as a layer, of which the size is returned."""
    with LayerWriter(io.BytesIO()) as writer:
        for entry in Composition(Ground()).entries([installed(source, SCHEME)]):
            writer.add(entry)
        return writer.finish().tar_bytes


def refusal(source: Wheel) -> str:
    """Return what is said of a wheel that goes into a layer, after its file's name."""
    with pytest.raises(BuildError) as caught:
        layered(source)
    assert caught.value.hint
    assert caught.value.message.startswith(f"{FILE_NAME}: ")
    return caught.value.message.removeprefix(f"{FILE_NAME}: ")


def test_the_wheel_that_the_others_are_made_from_is_fine(tmp_path: Path) -> None:
    assert layered(wheel(tmp_path, GOOD))


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py",
        "tiny/../../evil.py",
        "tiny/../evil.py",
        "tiny/..",
        "./evil.py",
        "tiny/./evil.py",
        "tiny//evil.py",
        "/etc/passwd",
        "//server/share/x",
        "C:/evil.py",
        "c:evil.py",
        "tiny\\..\\..\\evil.py",
        "..\\evil.py",
        "evil.py\0.txt",
        "evil\nname.py",
        "evil\x7f.py",
        "tiny-1.0.data/data/../../etc/passwd",
        "tiny-1.0.data/data//etc/passwd",
        "tiny-1.0.data/scripts/../../evil",
        "tiny-1.0.data/purelib/..",
        "tiny/.wh.torch",
        ".wh..wh..opq",
        "tiny-1.0.data/data/.wh.etc",
        "tiny/.wh.folder/x.py",
    ],
)
def test_a_name_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    said = refusal(wheel(tmp_path, GOOD, Member(name, b"x")))
    assert said.startswith((name, name.encode("unicode_escape").decode()))


@pytest.mark.parametrize("name", ["../evil/", "/etc/", "a/../b/", "a//", ".wh.a/"])
def test_a_folder_whose_name_leads_elsewhere(tmp_path: Path, name: str) -> None:
    assert refusal(wheel(tmp_path, GOOD, Member(name, mode=stat.S_IFDIR | 0o755))).startswith(name.removesuffix("/"))


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        (LINK | 0o777, "a symbolic link"),
        (stat.S_IFCHR | 0o666, "not the file or folder that its name says"),
        (stat.S_IFBLK | 0o666, "not the file or folder that its name says"),
        (stat.S_IFIFO | 0o666, "not the file or folder that its name says"),
        (stat.S_IFSOCK | 0o666, "not the file or folder that its name says"),
    ],
)
def test_a_member_that_is_no_file(tmp_path: Path, mode: int, what: str) -> None:
    assert refusal(wheel(tmp_path, GOOD, Member("tiny/x", b"/etc/passwd", mode))) == (
        f"tiny/x: it is {what}, which no installer makes from a wheel"
    )


def test_a_folder_that_has_content_and_a_file_in_a_folders_dress(tmp_path: Path) -> None:
    assert refusal(wheel(tmp_path, GOOD, Member("tiny/", b"x", stat.S_IFDIR | 0o755))).startswith("tiny/: ")
    assert refusal(wheel(tmp_path, GOOD, Member("tiny", b"x", stat.S_IFDIR | 0o755))).startswith("tiny: ")


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("tiny/a.py", "tiny/a.py", "it is there twice"),
        ("tiny/ä.py", unicodedata.normalize("NFD", "tiny/ä.py"), "by its Unicode form only"),
        (unicodedata.normalize("NFD", "tiny/ä.py"), "tiny/ä.py", "by its Unicode form only"),
        ("tiny.py", "tiny-1.0.data/purelib/tiny.py", "goes where tiny.py goes"),
        ("tiny-1.0.data/data/bin/x", "tiny-1.0.data/scripts/x", "goes where tiny-1.0.data/data/bin/x goes"),
    ],
)
def test_two_members_of_one_path(tmp_path: Path, first: str, second: str, what: str) -> None:
    said = refusal(wheel(tmp_path, Member(first, b"1"), Member(second, b"1")))
    assert what in said
    assert said.startswith((first, second))


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("tiny/a", "tiny/a/b", f"{SITE}/tiny/a is a file, and a folder for something else"),
        ("tiny/a/b/c", "tiny/a", f"{SITE}/tiny/a would replace a folder"),
        ("tiny", "tiny-1.0.data/platlib/tiny/a", f"{SITE}/tiny is a file, and a folder for something else"),
    ],
)
def test_a_file_that_is_a_folder_too(tmp_path: Path, first: str, second: str, what: str) -> None:
    assert refusal(wheel(tmp_path, Member(first, b"1"), Member(second, b"1"))) == what


def test_a_member_where_the_script_of_an_entry_point_goes(tmp_path: Path) -> None:
    points = Member(f"{INFO}/entry_points.txt", b"[console_scripts]\nrun = tiny:main\n")
    said = refusal(wheel(tmp_path, points, Member("tiny-1.0.data/data/bin/run", b"x")))
    assert said.startswith("tiny-1.0.data/data/bin/run: ")


@pytest.mark.parametrize("flag", [0x1, 0x41, 0x2000])
def test_an_encrypted_member(tmp_path: Path, flag: int) -> None:
    assert refusal(wheel(tmp_path, Member("tiny.py", b"x", flags=flag))) == "tiny.py: it is encrypted"


@pytest.mark.parametrize(
    ("method", "kind"), [(9, "deflate64"), (12, "bzip2"), (14, "lzma"), (93, "zstd"), (95, "xz"), (1, "method 1")]
)
def test_a_member_compressed_by_anything_but_deflate(tmp_path: Path, method: int, kind: str) -> None:
    assert refusal(wheel(tmp_path, Member("tiny.py", b"x", method=method))).startswith(
        f"tiny.py: it is compressed by {kind}, "
    )


def test_a_bomb_by_its_ratio(tmp_path: Path) -> None:
    """Zeros deflate to a thousandth; the size is only claimed, so that the test needs no memory."""
    packed = zlib.compress(bytes(2**20), wbits=-15) * 100
    bomb = Member("bomb.bin", b"", size=100 * 2**20, packed=packed)
    assert (
        refusal(wheel(tmp_path, GOOD, bomb)) == "bomb.bin: with it, the wheel unpacks to more than 100 times its size"
    )


def test_a_bomb_of_many_members(tmp_path: Path) -> None:
    packed = zlib.compress(bytes(2**20), wbits=-15)
    bombs = [Member(f"bomb{number}", b"", size=2**20, packed=packed) for number in range(80)]
    assert "unpacks to more than 100 times its size" in refusal(wheel(tmp_path, *bombs))


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_MEMBERS", 3)
    assert refusal(wheel(tmp_path, GOOD)) == "it has 4 members, more than 3"


@pytest.mark.parametrize(
    ("lies", "what"),
    [
        ({"size": 2**32 - 2}, "it claims to unpack to more than is possible"),
        ({"size": 500}, "RECORD says that it has 600 bytes, and it has 500"),
        ({"size": 700}, "RECORD says that it has 600 bytes, and it has 700"),
        ({"crc": 0}, "its CRC-32 is not the one in the zip's directory"),
        ({"local_crc": 0}, "its header and the zip's directory disagree on its size or CRC-32"),
        ({"local_name": "hiny.py"}, "the header before it is another member's"),
        ({"local_name": "longer-name.py"}, "the header before it is another member's"),
        ({"packed_size": 10}, "its compressed bytes end too early"),
        ({"packed_size": 100}, "it overlaps what follows it in the zip"),
        ({"packed": b"\xff" * 20}, "its compressed bytes are damaged"),
        ({"content": b"y = 1\n" * 100}, "its content is not what RECORD promises"),
        ({"method": STORED, "packed_size": 20}, "it is stored, and yet has two sizes"),
    ],
)
def test_a_member_that_lies(tmp_path: Path, lies: dict[str, object], what: str) -> None:
    others = [Member("last.py", b"x")]
    content = archive(changed(completed([GOOD, *others]), "tiny.py", **lies))
    assert refusal(written(tmp_path, content)).startswith(f"tiny.py: {what}")


@pytest.mark.parametrize(("size", "what"), [(500, "it is longer than"), (700, "its size is not the one")])
def test_a_size_that_is_a_lie_in_record_too_is_found_by_the_layer(tmp_path: Path, size: int, what: str) -> None:
    members = changed(completed([GOOD]), "tiny.py", size=size)
    record = members[-1].content.replace(b",600\n", f",{size}\n".encode())
    content = archive(changed(members, f"{INFO}/RECORD", content=record))
    assert refusal(written(tmp_path, content)).startswith(f"tiny.py: {what}")


def test_bytes_after_the_end_of_a_compressed_stream(tmp_path: Path) -> None:
    packed = zlib.compress(GOOD.content, wbits=-15) + b"more"
    assert refusal(wheel(tmp_path, Member("tiny.py", GOOD.content, packed=packed))) == (
        "tiny.py: bytes follow the end of its compressed ones"
    )


def test_a_zip_that_hides_one_member_in_another(tmp_path: Path) -> None:
    """The content of the first is a whole member of its own; the directory has both."""
    hidden = Member("inner.py", b"x", method=STORED)
    inner = archive([hidden])[: 30 + len("inner.py") + 1]
    outer = Member("outer.bin", inner, method=STORED)
    members = completed([outer, hidden])
    content = bytearray(archive(members))
    row = content.rindex(b"inner.py") - 46
    content[row + 42 : row + 46] = (30 + len("outer.bin")).to_bytes(4, "little")
    assert refusal(written(tmp_path, bytes(content))) == "outer.bin: it overlaps what follows it in the zip"


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (b"#!/bin/sh\nexit\n", b"", "15 bytes stand before its first member"),
        (b"", b"more", "bytes follow the end of its zip"),
        (b"", archive([Member("x")]), "stand before its first member"),
    ],
)
def test_bytes_outside_the_zip(tmp_path: Path, before: bytes, after: bytes, what: str) -> None:
    content = archive(completed([GOOD]), before=before, after=after)
    assert what in refusal(written(tmp_path, content))


def test_a_wheel_cut_anywhere(tmp_path: Path) -> None:
    content = archive(completed([GOOD]))
    for end in range(0, len(content), 7):
        assert "it is no whole zip" in refusal(written(tmp_path, content[:end]))


def test_no_changed_byte_is_an_error_of_another_kind(tmp_path: Path) -> None:
    content = archive(completed([GOOD]))
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 0x55
        with contextlib.suppress(BuildError):
            layered(written(tmp_path, bytes(damaged)))


def test_an_empty_file_and_an_empty_zip(tmp_path: Path) -> None:
    assert "it is no whole zip" in refusal(written(tmp_path, b""))
    assert "0 dist-info folders" in refusal(written(tmp_path, archive([])))


def test_a_missing_file(tmp_path: Path) -> None:
    assert "it is no whole zip" in refusal(Wheel(tmp_path / "none", FILE_NAME, "0" * 64))


@pytest.mark.parametrize("name", ["METADATA", "WHEEL", "RECORD"])
def test_a_wheel_without_what_each_must_have(tmp_path: Path, name: str) -> None:
    members = without(completed([GOOD]), f"{INFO}/{name}")
    assert f"{INFO}/{name}" in refusal(written(tmp_path, archive(members)))


def test_no_dist_info_two_and_a_foreign_one(tmp_path: Path) -> None:
    assert "0 dist-info folders" in refusal(written(tmp_path, archive([GOOD])))
    second = Member("other-1.0.dist-info/METADATA", METADATA)
    assert "2 dist-info folders, not one: other-1.0" in refusal(wheel(tmp_path, GOOD, second))
    foreign = completed([GOOD], "other-1.0.dist-info")
    assert "it belongs to other, not to tiny" in refusal(written(tmp_path, archive(foreign)))


@pytest.mark.parametrize("version", [b"2.0", b"10.0", b"", b"x", b"1.x", b"1.0\n 2"])
def test_another_version_of_the_format(tmp_path: Path, version: bytes) -> None:
    text = WHEEL.replace(b"Wheel-Version: 1.0", b"Wheel-Version: " + version)
    said = refusal(wheel(tmp_path, GOOD, Member(f"{INFO}/WHEEL", text)))
    assert said.startswith(f"{INFO}/WHEEL: Wheel-Version is ")


@pytest.mark.parametrize("name", ["tiny-1.0.data/nowhere/x", "tiny-1.0.data/x", "tiny-1.0.data/../x"])
def test_a_place_that_no_installer_knows(tmp_path: Path, name: str) -> None:
    assert refusal(wheel(tmp_path, GOOD, Member(name, b"x"))).startswith(name)


def test_a_record_that_is_damaged(tmp_path: Path) -> None:
    members = changed(completed([GOOD]), f"{INFO}/RECORD", crc=0)
    assert refusal(written(tmp_path, archive(members))).startswith(f"{INFO}/RECORD: it cannot be read (")


def test_metadata_that_record_does_not_promise(tmp_path: Path) -> None:
    members = changed(completed([GOOD]), f"{INFO}/WHEEL", content=WHEEL.replace(b"by-hand", b"by-head"))
    assert refusal(written(tmp_path, archive(members))) == f"{INFO}/WHEEL: its content is not what RECORD promises"


def test_metadata_of_gigabytes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_READ_BYTES", 10)
    assert "too many for what it is" in refusal(wheel(tmp_path, GOOD))


def test_a_symbolic_link_made_on_windows_is_none(tmp_path: Path) -> None:
    """Only zips made on Unix have kinds of files in their attributes."""
    assert list(installed(wheel(tmp_path, Member("x", b"y", LINK | 0o777, system=WINDOWS)), SCHEME))


def test_a_name_in_another_encoding(tmp_path: Path) -> None:
    """Without the flag for UTF-8 a name is in code page 437, whatever its publisher thought."""
    content = archive(completed([Member("grün.py", b"x", FILE | 0o644)])).replace(b"\x00\x08\x08", b"\x00\x00\x08")
    assert "RECORD does not list it" in refusal(written(tmp_path, content))


@pytest.mark.parametrize("name", [f"{INFO}/licenses/RECORD", f"{INFO}/MYRECORD", "tiny/RECORD"])
def test_a_file_that_is_named_like_a_record_is_held_against_the_real_one(tmp_path: Path, name: str) -> None:
    members = changed(completed([GOOD, Member(name, b"promised")]), name, content=b"other!!!")
    assert refusal(written(tmp_path, archive(members))).startswith(f"{name}: its content is not what RECORD promises")


@pytest.mark.parametrize("part", ["x" * 256, "ä" * 128])
def test_a_name_that_no_file_system_holds(tmp_path: Path, part: str) -> None:
    assert "longer than 255 bytes" in refusal(wheel(tmp_path, GOOD, Member(f"tiny/{part}.py"[: len(part) + 5], b"")))
