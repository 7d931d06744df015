"""Generated wheels: our files are those that pip puts on disk, path by path, with modes and bytes.

LJ_IMAGE_FUZZ=5000 tries so many wheels instead of a few; LJ_IMAGE_TEST_PIP names the wheel of another pip.
"""

from __future__ import annotations

import io
import os
import stat
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference_installers import installer_installs, on_disk, pip_installs, pips_scheme

from lj_image.builders.oci.wheel.install import installed
from samples.wheels import DEFLATED, FILE, INFO, STORED, WHEEL, Member, archive, completed, tree, written

FUZZ = settings(
    max_examples=int(os.environ.get("LJ_IMAGE_FUZZ", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LETTERS = st.sampled_from([*"abcXYZ019_-+. ,;'\"=%&~[](){}!#$@^`", "ä", "é", "日", "🐍", "ﬁ", "\u00a0"])
PART = st.one_of(
    st.sampled_from(["tiny", "Tiny", "__init__.py", "lib.so.1", "run", "bin", "x.pyc", "a.data.d", "b.dist-info-x"]),
    st.text(LETTERS, min_size=1, max_size=12).filter(lambda part: part.strip(".") and not part.startswith(".wh.")),
    st.just("n" * 150),
)
PATH = st.lists(PART, min_size=1, max_size=4).map("/".join)
ROOTS = ("", *(f"tiny-1.0.data/{key}/" for key in ("purelib", "platlib", "scripts", "headers", "data")))
CONTENT = st.one_of(
    st.just(b""),
    st.binary(max_size=200),
    st.sampled_from([b"x" * 70_000, b"#!python\n", b"#!python", b"#!/bin/sh\nexit\n"]),
    st.builds(
        lambda start, rest: start + rest,
        st.sampled_from([b"#!python", b"#!python\n", b"#!python -O\r\n", b"#!pythonw\n", b"#! python\n", b"#!pytho"]),
        st.binary(max_size=40),
    ),
)
MODE = st.sampled_from([FILE | 0o644, FILE | 0o755, FILE | 0o600, FILE | 0o4755, FILE | 0o100, 0, 0o755])
MEMBER = st.builds(
    Member,
    st.builds(lambda root, path: root + path, st.sampled_from(ROOTS), PATH),
    CONTENT,
    MODE,
    method=st.sampled_from([DEFLATED, STORED]),
    has_descriptor=st.booleans(),
    is_zip64=st.booleans(),
).filter(lambda member: not member.name.startswith("tiny-1.0.data/data/bin"))  # where entry points go, or nearly
OWN = st.sampled_from(["RECORD.jws", "RECORD.p7s", "sboms/a.json", "licenses/LICENSE", "top_level.txt"])
NAME = st.one_of(
    st.sampled_from(
        ["run", "pip", "pip3", "pip3.7", "pip-x", "easy_install", "easy_install-3.7", "a.b", "Run", "ünder"]
    ),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True),
)
OBJECT = st.sampled_from(["tiny:main", "tiny.cli:main", "tiny.cli:App.run", "a.b.c:d.e", "tiny:main [x, y]", "_:_"])
POINTS = st.dictionaries(NAME, OBJECT, max_size=4)


def entry_points(console: dict[str, str], gui: dict[str, str]) -> bytes:
    """Return the file; of a script in both groups, or of pip's in both, pip writes two rows in RECORD, and we one."""
    if "pip" in console or "easy_install" in console:
        gui = {name: value for name, value in gui.items() if not name.startswith(("pip", "easy_install"))}
    lines = ["[console_scripts]", *(f"{name} = {value}" for name, value in console.items())]
    lines += ["[gui_scripts]", *(f"{name}={value}" for name, value in gui.items() if name not in console)]
    return "\n".join([*lines, "[other]", "x = y", ""]).encode()


@st.composite
def wheels(draw: st.DrawFn) -> bytes:
    """Return a wheel that nobody has a reason to refuse."""
    console, gui = draw(POINTS), draw(POINTS)
    members = [Member(f"{INFO}/{name}", b"{}") for name in draw(st.sets(OWN))]
    if draw(st.booleans()):
        members.append(Member(f"{INFO}/entry_points.txt", entry_points(console, gui)))
    wrappers = draw(st.lists(st.sampled_from(["run", "run.exe", "pip-script.py", "Run.pya", "a.b"]), unique=True))
    members += [Member(f"tiny-1.0.data/scripts/{name}", b"#!python\n") for name in wrappers]
    pure = draw(st.sampled_from([b"true", b"false"]))
    metadata = Member(f"{INFO}/WHEEL", WHEEL.replace(b": true", b": " + pure))
    if draw(st.booleans()):
        metadata = Member(metadata.name, metadata.content.replace(b"\n", b"\r\n"))
    members += draw(st.lists(MEMBER, max_size=8))
    whole = completed(
        [*draw(st.permutations([*apart(members, {f"bin/{name}" for name in (*console, *gui)})])), metadata]
    )
    if draw(st.booleans()):
        whole[-1] = Member(whole[-1].name, whole[-1].content.replace(b"\n", b"\r\n"))
    if draw(st.booleans()):
        whole.insert(0, Member("folder/", mode=stat.S_IFDIR | 0o755, method=STORED))
    return archive(whole)


def apart(members: list[Member], commands: set[str]) -> Iterator[Member]:
    """Leave out members that meet others or lie below a command: we refuse them, and pip overwrites or fails."""
    taken: set[str] = {f"site/{INFO}/{name}" for name in ("METADATA", "RECORD", "WHEEL")}
    folders = {f"site/{INFO}", "folder", "site/folder"}
    for member in members:
        path = place(member.name)
        above = {path.rsplit("/", count)[0] for count in range(1, path.count("/") + 1)}
        if path not in taken | folders and not above & (taken | commands):
            taken.add(path)
            folders |= above
            yield member


def place(name: str) -> str:
    """Return where a member goes, in short; names of one Unicode form are one."""
    plain = unicodedata.normalize("NFC", name)
    for key, folder in {"purelib": "site", "platlib": "site", "scripts": "bin", "headers": "h", "data": "."}.items():
        if plain.startswith(f"tiny-1.0.data/{key}/"):
            return f"{folder}/{plain.split('/', 2)[2]}".removeprefix("./")
    return f"site/{plain}"


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def without_installer(found: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    """Leave out who installed it, and the row that says so."""
    kept = {path: value for path, value in found.items() if not path.endswith(f"{INFO}/INSTALLER")}
    record = next(path for path in kept if path.endswith(f"{INFO}/RECORD"))
    mode, content = kept[record]
    rows = [row for row in io.StringIO(content.decode(), newline="") if not row.startswith(f"{INFO}/INSTALLER,")]
    return kept | {record: (mode, "".join(rows).encode())}


@FUZZ
@given(wheels())
def test_a_generated_wheel_is_what_pip_puts_on_disk(content: bytes) -> None:
    scheme = pips_scheme()
    with folder() as top:
        wheel = written(top, content)
        pip_installs(wheel, top / "root", scheme)
        assert without_installer(tree(installed(wheel, scheme))) == without_installer(on_disk(top / "root"))


@FUZZ
@given(wheels())
def test_a_generated_wheel_is_what_installer_puts_on_disk_but_for_scripts(content: bytes) -> None:
    """It writes scripts of its own text, makes each executable, and sorts RECORD otherwise."""
    scheme = pips_scheme()
    record = f"{scheme.site_packages}/{INFO}/RECORD"
    with folder() as top:
        wheel = written(top, content)
        installer_installs(wheel, top / "root", scheme)
        theirs = on_disk(top / "root")
        ours = tree(installed(wheel, scheme))
        assert {path for path in theirs if "/bin/" not in path} == {path for path in ours if "/bin/" not in path}
        for path in ours:
            if not path.startswith(scheme.scripts) and not path.endswith(f"{INFO}/INSTALLER") and path != record:
                assert theirs[path] == ours[path], path


def test_the_reference_is_a_pip_that_is_known() -> None:
    assert pips_scheme().pip.partition(".")[0].isdigit()
