from __future__ import annotations

import io
import tarfile

import pytest

from lj_image.oci.tars import NotATarError, walk

LONG = "d" * 90 + "/" + "e" * 90 + "/" + "f" * 120


def target_of(form: int) -> str:
    return "x" * (90 if form == tarfile.USTAR_FORMAT else 190)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_are_those_that_tarfile_reads(form: int) -> None:
    packed = io.BytesIO()
    names = ["a", "./b/c", "ü", *([LONG, "n" * 150] if form != tarfile.USTAR_FORMAT else ["p" * 80 + "/" + "q" * 80])]
    with tarfile.open(fileobj=packed, mode="w", format=form) as tar:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = number * 700
            tar.addfile(member, io.BytesIO(bytes([number]) * member.size))
        for name, kind, target in (("dir", tarfile.DIRTYPE, ""), ("link", tarfile.SYMTYPE, target_of(form))):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            tar.addfile(member)
    packed.seek(0)
    found = [(item.path, item.content.read(10_000), item.is_file, item.is_folder, item.link) for item in walk(packed)]
    expected = [
        (name.removeprefix("./"), bytes([number]) * number * 700, True, False, "") for number, name in enumerate(names)
    ]
    assert found == [*expected, ("dir", b"", False, True, ""), ("link", b"", False, False, target_of(form))]


def test_content_that_nobody_reads_is_skipped() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in "ab":
            member = tarfile.TarInfo(name)
            member.size = 100_000
            tar.addfile(member, io.BytesIO(bytes(100_000)))
    packed.seek(0)
    assert [item.path for item in walk(packed)] == ["a", "b"]


@pytest.mark.parametrize("content", [b'{"schemaVersion": 2}', b"x" * 5000])
def test_something_else_is_told(content: bytes) -> None:
    with pytest.raises(NotATarError):
        list(walk(io.BytesIO(content)))


def test_a_tar_that_ends_early_is_told() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("a")
        member.size = 5000
        tar.addfile(member, io.BytesIO(bytes(5000)))
    with pytest.raises(NotATarError):
        list(walk(io.BytesIO(packed.getvalue()[:3000])))
