"""The program that unpacks zips in an image, run as there: on its own, by a Python that knows nothing of us."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lj_image import unzip
from samples.zips import DIRECTORY, FILE, LINK, packed


@pytest.fixture
def target(tmp_path: Path) -> Path:
    found = tmp_path / "opt" / "kit of mine"
    found.mkdir(parents=True)
    return found


def unpack(target: Path, content: bytes, strip_components: int = 0) -> subprocess.CompletedProcess[str]:
    archive = target.parents[1] / "kit 1 é.zip"
    archive.write_bytes(content)
    options = ("-I", "-B", "-X", "utf8", unzip.__file__)
    command = [sys.executable, *options, str(archive), str(target), str(strip_components)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refused(target: Path, content: bytes, strip_components: int = 0) -> str:
    done = unpack(target, content, strip_components)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("unzip: kit 1 é.zip: ")
    return done.stderr


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_modes_links_times_and_names_are_kept(target: Path) -> None:
    content = packed(
        ("kit/", b"", DIRECTORY | 0o755),
        ("kit/lib/libkit.so.1", b"../lib/libkit.so", LINK | 0o777),
        ("kit/lib/", b"", DIRECTORY | 0o500),
        ("kit/lib/libkit.so", b"library", FILE | 0o755),
        ("./kit/share/mode d'emploi – 説明.txt", b"read me", FILE | 0o4640),
        ("kit/plain", b"", 0),
        ("LICENSE", b"stripped", FILE | 0o644),
    )
    assert unpack(target, content, 1).returncode == 0
    assert below(target) == [
        "lib",
        "lib/libkit.so",
        "lib/libkit.so.1",
        "plain",
        "share",
        "share/mode d'emploi – 説明.txt",
    ]
    library, link = target / "lib/libkit.so", target / "lib/libkit.so.1"
    assert library.read_bytes() == b"library"
    assert str(link.readlink()) == "../lib/libkit.so"
    modes = {path: (target / path).stat().st_mode & 0o7777 for path in below(target)}
    assert modes["lib"] == 0o500
    assert modes["lib/libkit.so"] == 0o755
    assert modes["plain"] == 0o644
    assert modes["share/mode d'emploi – 説明.txt"] == 0o4640
    leap_day = 1709209858  # date -u -d "2024-02-29 12:30:58" +%s
    assert [path.lstat().st_mtime for path in (library, link, target / "lib")] == [leap_day] * 3


@pytest.mark.parametrize(
    ("name", "mode", "reason"),
    [
        ("/etc/passwd", FILE | 0o644, "an absolute path"),
        ("kit/../../outside", FILE | 0o644, "leads out of the place"),
        ("..", LINK | 0o777, "leads out of the place"),
        ("kit/../", DIRECTORY | 0o755, "leads out of the place"),
        ("kit/fifo", 0o010644, "neither a file nor a directory nor a link"),
    ],
)
def test_a_hostile_member_is_named_and_nothing_is_written(target: Path, name: str, mode: int, reason: str) -> None:
    said = refused(target, packed(("kit/before", b"x", FILE | 0o644), (name, b"x", mode)), 1)
    assert f"{name!r}: {reason}" in said
    assert below(target) == []
    assert below(target.parents[1]) == ["kit 1 é.zip", "opt", "opt/kit of mine"]


@pytest.mark.parametrize("leading_to", ["{outside}", "../../outside"])
def test_nothing_is_written_through_a_link_of_the_archive(target: Path, leading_to: str) -> None:
    outside = target.parents[1] / "outside"
    outside.mkdir()
    link = ("way", leading_to.format(outside=outside).encode(), LINK | 0o777)
    assert "'way'" in refused(target, packed(link, ("way/file", b"x", FILE | 0o644)))
    other = ("road", *link[1:])
    assert "'road/second': a link on" in refused(target, packed(other, ("road/second", b"x", LINK | 0o777)))
    assert below(outside) == []


@pytest.mark.parametrize("member", [("way/file", FILE | 0o644), ("way/", DIRECTORY | 0o700), ("way/a/", DIRECTORY)])
def test_nothing_is_written_through_a_link_that_was_there(target: Path, member: tuple[str, int]) -> None:
    outside = target.parents[1] / "outside"
    outside.mkdir(mode=0o755)
    (target / "way").symlink_to(outside)
    said = refused(target, packed((member[0], b"", member[1])))
    assert f"{member[0]!r}: a link on its way leads to {outside}" in said
    assert (below(outside), outside.stat().st_mode & 0o777) == ([], 0o755)


def test_a_file_replaces_a_link_and_of_two_members_the_last_one_counts(target: Path) -> None:
    outside = target.parents[1] / "kept"
    outside.write_text("kept")
    (target / "file").symlink_to(outside)
    with pytest.warns(UserWarning, match="Duplicate"):
        content = packed(("file", b"first", FILE | 0o600), ("./file", b"", 0), ("file", b"last", FILE | 0o600))
    assert unpack(target, content).returncode == 0
    assert ((target / "file").read_text(), outside.read_text()) == ("last", "kept")


def test_a_damaged_member_is_named(target: Path) -> None:
    spool = io.BytesIO()
    with zipfile.ZipFile(spool, "w") as pack:
        pack.writestr("kit/file", b"stored as it is")
    assert "'kit/file': Bad CRC-32" in refused(target, spool.getvalue().replace(b"as it is", b"as it was"[:8]))
    assert "not a zip file" in refused(target, b"no zip at all")
