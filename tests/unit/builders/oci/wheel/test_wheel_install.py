"""Where the files of a wheel go, and with which modes and times."""

from __future__ import annotations

import stat
from calendar import timegm
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.builders.oci.entries import EARLIEST_TIME, File
from lj_image.builders.oci.wheel.install import installed
from lj_image.errors import BuildError
from samples.wheels import (
    FILE,
    INFO,
    SCHEME,
    SITE,
    STORED,
    WHEEL,
    WINDOWS,
    Member,
    archive,
    completed,
    record,
    tree,
    wheel,
    written,
)


def files(folder: Path, *members: Member) -> dict[str, File]:
    return {file.path: file for file in installed(wheel(folder, *members), SCHEME)}


def contents(folder: Path, *members: Member) -> dict[str, tuple[int, bytes]]:
    return tree(installed(wheel(folder, *members), SCHEME))


def test_a_wheel_becomes_its_files_and_what_pip_adds(tmp_path: Path) -> None:
    assert list(contents(tmp_path, Member("tiny.py", b"print()\n"))) == [
        f"{SITE}/{INFO}/INSTALLER",
        f"{SITE}/{INFO}/METADATA",
        f"{SITE}/{INFO}/RECORD",
        f"{SITE}/{INFO}/REQUESTED",
        f"{SITE}/{INFO}/WHEEL",
        f"{SITE}/tiny.py",
    ]


@pytest.mark.parametrize("is_pure", ["true", "false", "True", "nonsense"])
def test_pure_and_compiled_wheels_go_to_one_place_in_a_debian_python(tmp_path: Path, is_pure: str) -> None:
    metadata = Member(f"{INFO}/WHEEL", WHEEL.replace(b": true", f": {is_pure}".encode()))
    assert f"{SITE}/tiny.so" in files(tmp_path, Member("tiny.so"), metadata)


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("purelib/a/b.py", f"{SITE}/a/b.py"),
        ("platlib/a/b.so", f"{SITE}/a/b.so"),
        ("scripts/run", "usr/local/bin/run"),
        ("scripts/sub/run", "usr/local/bin/sub/run"),
        ("headers/a.h", "usr/include/python3.11/tiny/a.h"),
        ("headers/sub/a.h", "usr/include/python3.11/tiny/sub/a.h"),
        ("data/etc/tiny.conf", "usr/local/etc/tiny.conf"),
        ("data/share/man/man1/tiny.1", "usr/local/share/man/man1/tiny.1"),
    ],
)
def test_every_place_of_the_data_folder(tmp_path: Path, member: str, path: str) -> None:
    found = contents(tmp_path, Member(f"tiny-1.0.data/{member}", b"content\n"))
    assert found[path] == (0o644, b"content\n")


def test_a_data_folder_of_another_name_is_one_too_as_pip_takes_it(tmp_path: Path) -> None:
    assert "usr/local/x" in files(tmp_path, Member("other-2.data/data/x"))


def test_a_folder_named_data_below_another_is_an_ordinary_one(tmp_path: Path) -> None:
    assert f"{SITE}/tiny/some.data/scripts/x" in files(tmp_path, Member("tiny/some.data/scripts/x", b"#!python\n"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (FILE | 0o644, 0o644),
        (FILE | 0o600, 0o644),
        (FILE | 0o666, 0o644),
        (FILE | 0o755, 0o755),
        (FILE | 0o100, 0o755),
        (FILE | 0o001, 0o755),
        (FILE | stat.S_ISUID | 0o755, 0o755),
        (FILE | stat.S_ISGID | stat.S_ISVTX | 0o644, 0o644),
        (0o755, 0o644),  # no regular file as far as its mode says, so pip does not make it executable
        (0, 0o644),
    ],
)
def test_of_a_mode_only_whether_it_may_be_run_is_kept(tmp_path: Path, mode: int, expected: int) -> None:
    assert files(tmp_path, Member("tiny/tool", b"x", mode))[f"{SITE}/tiny/tool"].mode == expected


def test_a_zip_made_on_windows_may_still_have_modes(tmp_path: Path) -> None:
    found = files(tmp_path, Member("a", b"x", FILE | 0o755, system=WINDOWS), Member("b", b"x", 0, system=WINDOWS))
    assert (found[f"{SITE}/a"].mode, found[f"{SITE}/b"].mode) == (0o755, 0o644)


def test_a_members_time_is_taken_as_utc_and_what_is_made_has_the_newest(tmp_path: Path) -> None:
    found = files(tmp_path, Member("tiny.py", time=(2025, 1, 2, 3, 4, 6)))
    newest = timegm((2025, 1, 2, 3, 4, 6, 0, 0, 0))
    assert found[f"{SITE}/tiny.py"].mtime == newest
    assert found[f"{SITE}/{INFO}/METADATA"].mtime == timegm((2024, 2, 29, 12, 30, 58, 0, 0, 0))
    assert {found[f"{SITE}/{INFO}/{name}"].mtime for name in ("RECORD", "INSTALLER", "REQUESTED")} == {newest}


def test_a_time_that_is_no_time_becomes_the_earliest_of_zips(tmp_path: Path) -> None:
    assert files(tmp_path, Member("tiny.py", time=(1980, 0, 0, 0, 0, 0)))[f"{SITE}/tiny.py"].mtime == EARLIEST_TIME


@pytest.mark.parametrize(
    "member",
    [
        Member("m", b"x" * 5000, method=STORED),
        Member("m", b"x" * 5000, has_descriptor=True),
        Member("m", b"x" * 5000, is_zip64=True),
        Member("m", b"x" * 5000, method=STORED, is_zip64=True),
        Member("m", b""),
        Member("m", b"", method=STORED),
        Member("grüße/日本.txt", b"x"),
        Member("n" * 180 + ".txt", b"x"),
        Member("/".join(["long" * 20] * 5), b"x"),
        Member('a,b "c".txt', b"x"),
    ],
    ids=lambda member: f"{member.name[:12]}-{member.method}-{member.has_descriptor}-{member.is_zip64}",
)
def test_zips_in_all_the_forms_they_have(tmp_path: Path, member: Member) -> None:
    assert contents(tmp_path, Member("first", b"1"), member, Member("last", b"2"))[f"{SITE}/{member.name}"] == (
        0o644,
        member.content,
    )


def test_names_that_differ_by_case_only_are_two_files(tmp_path: Path) -> None:
    assert {f"{SITE}/Case.py", f"{SITE}/case.py"} <= set(files(tmp_path, Member("Case.py"), Member("case.py")))


def test_folders_of_the_zip_are_no_files(tmp_path: Path) -> None:
    assert f"{SITE}/tiny" not in files(tmp_path, Member("tiny/", mode=stat.S_IFDIR | 0o755), Member("tiny/a.py"))


def test_lines_of_wheel_and_record_may_end_as_on_windows(tmp_path: Path) -> None:
    members = completed([Member("a.py", b"1"), Member(f"{INFO}/WHEEL", WHEEL.replace(b"\n", b"\r\n"))])
    rows = members.pop()
    found = contents(tmp_path, *members, replace(rows, content=rows.content.replace(b"\n", b"\r\n")))
    assert found[f"{SITE}/a.py"] == (0o644, b"1")


def test_installer_says_who_we_are_and_requested_that_it_was_asked_for(tmp_path: Path) -> None:
    found = contents(tmp_path)
    assert found[f"{SITE}/{INFO}/INSTALLER"] == (0o644, b"lj-image\n")
    assert found[f"{SITE}/{INFO}/REQUESTED"] == (0o644, b"")


def test_what_an_installer_writes_is_not_taken_from_the_wheel(tmp_path: Path) -> None:
    own = [Member(f"{INFO}/{name}", b"theirs") for name in ("INSTALLER", "REQUESTED", "direct_url.json")]
    found = contents(tmp_path, *own)
    assert found[f"{SITE}/{INFO}/INSTALLER"][1] == b"lj-image\n"
    assert found[f"{SITE}/{INFO}/REQUESTED"][1] == b""
    assert f"{SITE}/{INFO}/direct_url.json" not in found


@pytest.mark.parametrize("version", [b"1", b"1.0", b"1.9", b"1.10.2"])
def test_every_first_version_of_the_format_is_known(tmp_path: Path, version: bytes) -> None:
    text = WHEEL.replace(b"Wheel-Version: 1.0", b"Wheel-Version: " + version)
    assert f"{SITE}/tiny.py" in files(tmp_path, Member("tiny.py"), Member(f"{INFO}/WHEEL", text))


def test_signatures_need_no_row_and_are_installed(tmp_path: Path) -> None:
    members = [Member(f"{INFO}/RECORD.jws", b"{}"), *completed([Member("a.py")])]
    found = contents(tmp_path, *members)
    assert found[f"{SITE}/{INFO}/RECORD.jws"] == (0o644, b"{}")


def test_a_comment_at_the_end_of_the_zip_is_fine(tmp_path: Path) -> None:
    content = archive(completed([Member("a.py")]), comment=b"made by hand")
    assert f"{SITE}/a.py" in tree(installed(written(tmp_path, content), SCHEME))


def test_the_order_is_that_of_the_zip_and_the_same_each_time(tmp_path: Path) -> None:
    members = [Member("z.py"), Member("a.py"), Member("m.py")]
    found = [file.path for file in installed(wheel(tmp_path, *members), SCHEME)]
    assert found[:3] == [f"{SITE}/z.py", f"{SITE}/a.py", f"{SITE}/m.py"]
    assert found == [file.path for file in installed(wheel(tmp_path, *members), SCHEME)]


def test_nothing_of_the_wheels_payload_is_read(tmp_path: Path) -> None:
    """A damaged member is found where its bytes pass by, in the layer."""
    members = completed([Member("big.bin", b"x" * 100_000)])
    damaged = [replace(member, packed=b"\xff" * 200) if member.name == "big.bin" else member for member in members]
    found = files(tmp_path, *damaged)
    assert found[f"{SITE}/big.bin"].owner == "tiny-1.0-py3-none-any.whl"


def test_an_impossible_file_name_is_refused(tmp_path: Path) -> None:
    content = archive(completed([Member("a.py")]))
    with pytest.raises(BuildError, match=r"tiny\.whl"):
        list(installed(written(tmp_path, content, "tiny.whl"), SCHEME))


def test_record_of_a_wheel_made_by_hand_lists_what_is_in_it() -> None:
    assert record([Member("a.py", b"")]).decode().splitlines() == [
        "a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0",
        f"{INFO}/RECORD,,",
    ]
