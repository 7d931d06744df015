"""RECORD as it is read, and as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.builders.oci.wheel.install import installed
from lj_image.errors import BuildError
from samples.wheels import INFO, SCHEME, SITE, Member, completed, sha256, tree, wheel

RUN = "[console_scripts]\nrun = tiny:main\n"
EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0"


def rows_of(folder: Path, *members: Member) -> list[str]:
    found = tree(installed(wheel(folder, *members), SCHEME))
    return found[f"{SITE}/{INFO}/RECORD"][1].decode().split("\r\n")[:-1]


def with_record(folder: Path, *lines: str) -> list[str]:
    """Install `a.py` (empty) with these lines for all else than METADATA and WHEEL."""
    members = completed([Member("a.py")])
    kept = [line for line in members.pop().content.decode().splitlines() if line.startswith(f"{INFO}/")]
    text = "".join(f"{line}\n" for line in (*lines, *kept))
    return rows_of(folder, *members, Member(f"{INFO}/RECORD", text.encode()))


def test_it_is_sorted_and_lists_every_file_relative_to_the_packages(tmp_path: Path) -> None:
    members = [
        Member("tiny.py", b"1"),
        Member("tiny-1.0.data/scripts/plain", b"#!/bin/sh\n"),
        Member("tiny-1.0.data/scripts/script", b"#!python\n"),
        Member("tiny-1.0.data/data/etc/x", b"2"),
        Member("tiny-1.0.data/purelib/more.py", b"3"),
        Member(f"{INFO}/entry_points.txt", RUN.encode()),
    ]
    rows = rows_of(tmp_path, *members)
    assert [row.partition(",")[0] for row in rows] == [
        "../../../bin/plain",
        "../../../bin/run",
        "../../../bin/script",
        "../../../etc/x",
        "more.py",
        f"{INFO}/INSTALLER",
        f"{INFO}/METADATA",
        f"{INFO}/RECORD",
        f"{INFO}/REQUESTED",
        f"{INFO}/WHEEL",
        f"{INFO}/entry_points.txt",
        "tiny.py",
    ]
    assert f"../../../bin/script,{sha256(b'#!/usr/bin/python3' + bytes([10]))},19" in rows
    assert f"more.py,{sha256(b'3')},1" in rows
    assert f"{INFO}/REQUESTED,{EMPTY}" in rows
    assert f"{INFO}/RECORD,," in rows


def test_a_path_with_a_comma_is_quoted(tmp_path: Path) -> None:
    assert f'"a,b.py",{EMPTY}' in rows_of(tmp_path, Member("a,b.py"))


def test_the_row_of_a_script_that_gives_way_stays_as_pip_leaves_it(tmp_path: Path) -> None:
    old = Member("tiny-1.0.data/scripts/run-script.py")
    rows = rows_of(tmp_path, old, Member(f"{INFO}/entry_points.txt", RUN.encode()))
    assert f"tiny-1.0.data/scripts/run-script.py,{EMPTY}" in rows


def test_a_size_may_be_missing_and_then_stays_so(tmp_path: Path) -> None:
    digest = EMPTY.partition(",")[0]
    assert f"a.py,{digest}," in with_record(tmp_path, f"a.py,{digest},")


def test_a_row_may_be_there_twice_if_it_says_the_same(tmp_path: Path) -> None:
    assert with_record(tmp_path, f"a.py,{EMPTY}", f"a.py,{EMPTY}").count(f"a.py,{EMPTY}") == 1


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ((), "a.py: RECORD does not list it"),
        ((f"a.py,{EMPTY}", f"b.py,{EMPTY}"), "b.py: RECORD lists it, and it is not there"),
        (("a.py,,",), "a.py: RECORD has no hash of it"),
        (("a.py",), f"{INFO}/RECORD: line 1 has 1 columns"),
        (("a.py,a,b,c",), f"{INFO}/RECORD: line 1 has 4 columns"),
        (("a.py,md5=1B2M2Y8AsgTpgAmY7PhCfg,0",), "a.py: RECORD has md5 of it, and sha256 is needed"),
        (("a.py,sha1=2jmj7l5rSw0yVb_vlWAYkK_YBwk,0",), "a.py: RECORD has sha1 of it"),
        (("a.py,sha256=short,0",), "a.py: RECORD has no SHA-256 of it"),
        (("a.py,sha256=" + "!" * 43 + ",0",), "a.py: RECORD has no SHA-256 of it"),
        ((EMPTY.join(("a.py,", "1")),), "a.py: RECORD says that it has 01 bytes, and it has 0"),
        ((f"a.py,{EMPTY}", f"a.py,{sha256(b'x')},1"), "a.py: RECORD says two things of it"),
        ((f"a.py,{EMPTY}", "../evil.py,,"), "../evil.py: RECORD lists it, and it is not there"),
    ],
)
def test_a_row_that_promises_something_else_is_refused(tmp_path: Path, lines: tuple[str, ...], what: str) -> None:
    with pytest.raises(BuildError) as caught:
        with_record(tmp_path, *lines)
    assert caught.value.message.startswith(f"tiny-1.0-py3-none-any.whl: {what}")


def test_stronger_digests_than_sha256_are_refused_by_name(tmp_path: Path) -> None:
    """The layer checks SHA-256, which every build backend writes; a promise that is not checked would be none."""
    with pytest.raises(BuildError, match="RECORD has sha512 of it"):
        with_record(tmp_path, "a.py,sha512=abc,0")


@pytest.mark.parametrize("content", [b"\xff\xfe,,\n", b""])
def test_a_record_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BuildError, match=r"tiny-1\.0-py3-none-any\.whl: "):
        rows_of(tmp_path, Member("a.py"), Member(f"{INFO}/RECORD", content))
