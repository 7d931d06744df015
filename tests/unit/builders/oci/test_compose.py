"""What a layer may hold, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lj_image.builders.oci.compose import Composition, Ground
from lj_image.builders.oci.entries import EARLIEST_TIME, Entry, File, Folder, HardLink, Symlink, Written
from lj_image.errors import BuildError

MERGED = Ground(folder_links={"lib": "usr/lib", "usr/local/man": "usr/local/share/man"})


def file(path: str, content: bytes = b"x", owner: str = "a.whl", mtime: int = EARLIEST_TIME) -> File:
    return File(path, 0o644, mtime, Written(content), owner)


def composed(*sources: Iterable[Entry], ground: Ground | None = None) -> list[Entry]:
    return list(Composition(ground or Ground()).entries(sources))


def paths(entries: Iterable[Entry]) -> list[str]:
    return [entry.path for entry in entries]


def test_folders_come_before_what_is_in_them_and_once() -> None:
    found = composed([file("usr/lib/a"), file("usr/lib/b"), file("usr/bin/c")])
    assert paths(found) == ["usr", "usr/lib", "usr/lib/a", "usr/lib/b", "usr/bin", "usr/bin/c"]
    assert all(entry.mode == 0o755 for entry in found if isinstance(entry, Folder))


def test_the_same_file_of_two_wheels_is_written_once() -> None:
    found = composed([file("nvidia/__init__.py", b"")], [file("nvidia/__init__.py", b"", "b.whl")])
    assert paths(found) == ["nvidia", "nvidia/__init__.py"]


def test_two_wheels_with_different_files_of_one_path_are_refused_by_name() -> None:
    with pytest.raises(BuildError) as caught:
        composed([file("tests/x.py", b"1")], [file("tests/x.py", b"2", "b.whl")])
    assert "a.whl and b.whl both bring tests/x.py" in caught.value.message
    assert "owners: {/tests/x.py: NAME}" in str(caught.value.hint)


def test_the_release_says_whose_file_stays() -> None:
    ground = Ground(winners={"tests/x.py": "b.whl"})
    found = composed([file("tests/x.py", b"1")], [file("tests/x.py", b"2", "b.whl")], ground=ground)
    assert [entry.owner for entry in found if isinstance(entry, File)] == ["b.whl"]


def test_a_path_through_a_link_of_the_base_goes_where_the_link_leads() -> None:
    found = composed([file("lib/x.so"), file("usr/local/man/man1/y.1")], ground=MERGED)
    expected = ["usr", "usr/lib", "usr/lib/x.so", "usr/local", "usr/local/share", "usr/local/share/man"]
    assert paths(found) == [*expected, "usr/local/share/man/man1", "usr/local/share/man/man1/y.1"]


def test_a_path_through_a_link_and_the_same_path_without_are_one() -> None:
    assert paths(composed([file("lib/x"), file("usr/lib/x")], ground=MERGED)) == ["usr", "usr/lib", "usr/lib/x"]


@pytest.mark.parametrize("entry", [file("lib"), Symlink("lib", "elsewhere", EARLIEST_TIME, "a.tar")])
def test_nothing_replaces_a_link_of_the_base_that_leads_to_a_folder(entry: Entry) -> None:
    with pytest.raises(BuildError, match="lib would replace a folder"):
        composed([entry], ground=MERGED)


@pytest.mark.parametrize(
    "path",
    ["usr/.wh.lib", ".wh..wh..opq", "usr/.wh.x/y", "../etc/passwd", "usr/../x", "/etc/x", "a//b", "a/./b", "a/.."],
)
def test_what_would_delete_or_lie_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(BuildError, match=r"a\.whl"):
        composed([file(path)])


@pytest.mark.parametrize(
    "entries",
    [
        [file("a/b"), file("a")],
        [file("a"), file("a/b")],
        [Folder("a"), file("a")],
        [file("a"), Folder("a")],
        [Symlink("a", "b", EARLIEST_TIME, "a.tar"), file("a/b")],
    ],
)
def test_one_path_is_not_a_file_and_a_folder(entries: list[Entry]) -> None:
    with pytest.raises(BuildError, match="folder"):
        composed(entries)


def test_links_that_say_the_same_are_one_and_others_clash() -> None:
    same = [Symlink("a", "b", EARLIEST_TIME, "x"), Symlink("a", "b", EARLIEST_TIME, "y")]
    assert paths(composed(same)) == ["a"]
    with pytest.raises(BuildError, match="x and y both bring a"):
        composed([Symlink("a", "b", EARLIEST_TIME, "x"), HardLink("a", "b", 0o644, EARLIEST_TIME, "y")])


def test_a_hard_link_names_its_file_where_that_is_in_the_image() -> None:
    link = HardLink("lib/y", "lib/x", 0o644, EARLIEST_TIME, "kit.tar")
    *_, found = composed([file("lib/x"), link], ground=MERGED)
    assert found == HardLink("usr/lib/y", "usr/lib/x", 0o644, EARLIEST_TIME, "kit.tar")


def test_a_folder_that_is_named_keeps_its_mode_and_one_that_the_base_has_keeps_that() -> None:
    ground = Ground(folders={"root": Folder("root", 0o700)})
    found = composed([Folder("opt/x", 0o750), file("opt/x/y"), file("root/.profile")], ground=ground)
    modes = {entry.path: entry.mode for entry in found if isinstance(entry, Folder)}
    assert modes == {"opt": 0o755, "opt/x": 0o750, "root": 0o700}


def test_a_folder_with_two_modes_is_refused() -> None:
    with pytest.raises(BuildError, match="has the mode 700, and 755 elsewhere"):
        composed([file("opt/x"), Folder("opt", 0o700, owner="a.tar")])


def test_times_are_clamped_and_the_newest_is_known() -> None:
    composition = Composition(Ground(epoch=EARLIEST_TIME + 10))
    found = list(composition.entries([[file("a", mtime=EARLIEST_TIME + 5), file("b", mtime=EARLIEST_TIME + 50)]]))
    assert [entry.mtime - EARLIEST_TIME for entry in found] == [5, 10]
    assert composition.newest == EARLIEST_TIME + 50
