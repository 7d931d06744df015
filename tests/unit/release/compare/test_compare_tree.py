"""Layers over each other: what is seen at the end, and that it does not matter in which order they are laid."""

from __future__ import annotations

import io
import tarfile
from functools import reduce
from pathlib import Path

import pytest
from compare_layers import entry, files, layer, scanned
from hypothesis import given, settings
from hypothesis import strategies as st

from lj_image.release.compare.tree import EMPTY, LayerTree, lay, loose_ends, over


def seen(*layers: bytes) -> list[str]:
    return sorted(path for path, fact in lay(map(scanned, layers)).facts.items() if fact.kind != "folder")


def test_a_whiteout_takes_a_file_away() -> None:
    assert seen(files("a/x", "a/y"), files("a/.wh.x")) == ["a/y"]


def test_a_whiteout_takes_a_folder_away_with_all_below_it() -> None:
    assert seen(files("a/b/c/d", "ab"), files(".wh.a")) == ["ab"]


def test_an_opaque_folder_hides_what_was_below_and_keeps_its_own() -> None:
    assert seen(files("a/x", "a/b/y", "z"), files("a/new", "a/.wh..wh..opq")) == ["a/new", "z"]


def test_an_opaque_root_hides_everything() -> None:
    assert seen(files("a/x", "z"), files("n", ".wh..wh..opq")) == ["n"]


def test_what_an_engine_keeps_for_itself_is_no_whiteout() -> None:
    assert seen(files("plnk/x"), files(".wh..wh.plnk")) == ["plnk/x"]


def test_a_whiteout_is_for_lower_layers_alone_wherever_it_stands() -> None:
    assert seen(files("a/x"), files("a/x", "a/.wh.x")) == ["a/x"]


def test_a_link_in_the_place_of_a_folder_hides_what_was_in_it() -> None:
    assert seen(files("lib/x"), layer(entry("lib", kind="link", linkname="usr/lib"))) == ["lib"]


def test_a_folder_in_the_place_of_a_link_hides_the_link() -> None:
    linked = layer(entry("usr/lib", kind="folder"), entry("lib", kind="link", linkname="usr/lib"))
    assert seen(linked, files("lib/x")) == ["lib/x"]
    assert seen(linked, layer(entry("lib/x", b"1"))) == ["lib/x"]


def test_a_folder_that_only_holds_something_keeps_what_a_lower_layer_says_of_it() -> None:
    tree = lay((scanned(layer(entry("a", kind="folder", mode=0o700, uid=7))), scanned(layer(entry("a/x", b"1")))))
    assert (tree.facts["a"].mode, tree.facts["a"].uid) == (0o700, 7)
    assert list(loose_ends(tree)) == []


def test_a_folder_that_no_layer_states_is_told() -> None:
    tree = lay([scanned(layer(entry("a/b/x", b"1")))])
    assert [(item.path, item.what.split(";")[0]) for item in loose_ends(tree)] == [
        ("a", "a folder that no layer states"),
        ("a/b", "a folder that no layer states"),
    ]


def test_a_hard_link_is_the_file_that_it_names_also_in_a_lower_layer() -> None:
    file = entry("a", b"content", mode=0o4755, uid=3)
    same = lay([scanned(layer(file, entry("b", kind="hard", linkname="a", mode=0o4755, uid=3)))])
    lower = lay((scanned(layer(file)), scanned(layer(entry("b", kind="hard", linkname="./a")))))
    assert same.facts["b"] == same.facts["a"]
    assert lower.facts["b"] == lower.facts["a"]


def test_a_hard_link_to_nothing_is_told() -> None:
    tree = lay([scanned(layer(entry("b", kind="hard", linkname="gone")))])
    assert [item.what for item in loose_ends(tree)] == ["a hard link to gone, which is no file"]


NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b"])
ENTRIES = st.one_of(
    st.builds(lambda path, content: entry(path, content), NAMES, st.binary(max_size=1)),
    st.builds(lambda path, mode: entry(path, kind="folder", mode=mode), NAMES, st.sampled_from([0o700, 0o755])),
    st.builds(lambda path: entry(path, kind="link", linkname="elsewhere"), NAMES),
    st.builds(lambda path: entry(f"{path}/.wh..wh..opq"), NAMES),
    st.builds(lambda path: entry("/".join([*path.split("/")[:-1], f".wh.{path.split('/')[-1]}"])), NAMES),
)


def _is_possible(entries: list[tuple[str, tarfile.TarInfo, bytes]]) -> bool:
    """Say whether no path is twice, and nothing lies below a file."""
    solid = [path for path, found, _ in entries if not found.isdir()]
    paths = [path for path, *_ in entries]
    return len(paths) == len({*paths}) and not any(path.startswith(f"{file}/") for path in paths for file in solid)


LAYERS = st.lists(ENTRIES, max_size=4).filter(_is_possible).map(lambda entries: scanned(layer(*entries)))


def effect(tree: LayerTree) -> dict[str, object]:
    return {path: (fact.kind, fact.mode, fact.content, fact.is_implied) for path, fact in tree.facts.items()}


@settings(max_examples=60, deadline=None)
@given(st.lists(LAYERS, min_size=2, max_size=4), st.integers(1, 3))
def test_layers_may_be_laid_together_before_they_are_laid_on_a_base(layers: list[LayerTree], at: int) -> None:
    one_by_one = reduce(over, layers, EMPTY)
    lower, upper = lay(layers[:at]), reduce(over, layers[at:]) if layers[at:] else EMPTY
    assert effect(over(lower, upper)) == effect(one_by_one)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_entries_decides_about_nothing(order: int) -> None:
    entries = [entry("a", kind="folder", mode=0o700), entry("a/x", b"1"), entry("a/.wh..wh..opq"), entry("z", b"2")]
    assert scanned(layer(*entries[::order])) == scanned(layer(*entries))


def test_the_tree_is_the_one_that_tar_unpacks(tmp_path: Path) -> None:
    tar = layer(
        entry("a", kind="folder", mode=0o750),
        entry("a/x", b"one", mode=0o640),
        entry("a/y", kind="link", linkname="../a/x"),
        entry("a/z", kind="hard", linkname="a/x", mode=0o640),
        entry("q", kind="fifo", mode=0o600),
    )
    with tarfile.open(fileobj=io.BytesIO(tar)) as packed:
        packed.extractall(tmp_path, filter="fully_trusted")
    for path, fact in scanned(tar).facts.items():
        there = (tmp_path / path).lstat()
        if path and fact.kind != "symlink":
            assert fact.mode == there.st_mode & 0o7777, path
        if fact.kind == "file":
            assert fact.size_bytes == there.st_size
