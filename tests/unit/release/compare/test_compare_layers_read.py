"""Which layers are read: none twice, and none that the answer does not need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from compare_layers import Kept, Made, entry, files, layer, told

from lj_image.errors import ArtifactError
from lj_image.release.compare.compare import compare
from lj_image.release.compare.tree import LayerTree
from unit.release.diff.diff_archives import digest

BASE = files("etc/os", "usr/x")
APP = files("srv/a")
APP_2 = files("srv/a", content=b"2")
WITHOUT_FOLDER = layer(entry("srv/a", b"1"))


def read(before: tuple[bytes, ...], after: tuple[bytes, ...], memory: Kept | None) -> tuple[list[str], list[str]]:
    one, other = Made(before), Made(after)
    compare(one, other, memory)
    return one.read, other.read


def test_equal_images_are_not_read_at_all() -> None:
    assert read((BASE, APP), (BASE, APP), Kept()) == ([], [])
    found = compare(Made((BASE, APP)), Made((BASE, APP)), Kept())
    assert (found.differ(), found.paths, found.shared_layers) == (False, 0, 2)


def test_the_base_is_not_read_where_nothing_depends_on_it() -> None:
    assert read((BASE, APP), (BASE, APP_2), Kept()) == ([digest(APP)], [digest(APP_2)])
    found = compare(Made((BASE, APP)), Made((BASE, APP_2)), Kept())
    assert (told(found), found.paths, found.shared_layers) == ([("srv/a", "content")], 2, 1)


@pytest.mark.parametrize(
    "above",
    [
        WITHOUT_FOLDER,  # the base may say of srv what APP says of it
        layer(entry("srv", kind="folder"), entry("srv/a", b"1"), entry("etc/.wh.os")),
        layer(entry("srv", kind="folder"), entry("srv/a", b"1"), entry("usr/.wh..wh..opq")),
        layer(entry("srv", kind="folder"), entry("srv/a", kind="hard", linkname="etc/os")),
        layer(entry("srv", kind="folder"), entry("srv/a", kind="folder")),
    ],
)
def test_the_base_is_read_where_the_answer_depends_on_it(above: bytes) -> None:
    one, other = read((BASE, APP), (BASE, above), Kept())
    assert one == [digest(APP), digest(BASE)]
    assert other == [digest(above)]


def test_the_answer_is_the_one_that_reading_everything_gives() -> None:
    base = layer(entry("srv", kind="folder", mode=0o755), entry("etc/os", b"1"))
    for above in (WITHOUT_FOLDER, APP_2, layer(entry("srv/a", b"1"), entry("etc/.wh.os"))):
        sides = Made((base, APP)), Made((base, above))
        assert told(compare(*sides, Kept())) == told(compare(*sides, None))
    assert told(compare(Made((base, APP)), Made((base, WITHOUT_FOLDER)), Kept())) == []


def test_a_layer_is_read_once_ever() -> None:
    memory = Kept()
    read((BASE, APP), (APP_2,), memory)
    assert read((BASE, APP), (APP_2,), memory) == ([], [])
    assert read((BASE, APP), (APP_2, BASE), memory) == ([], [])


def test_a_layer_that_stands_twice_in_an_image_is_read_once() -> None:
    assert read((APP, APP_2, APP), (APP_2,), Kept())[0] == [digest(APP), digest(APP_2)]


def test_without_a_memory_every_layer_is_read() -> None:
    assert read((BASE, APP), (BASE, APP), None) == ([digest(BASE), digest(APP)],) * 2


@dataclass(frozen=True)
class Forgetful:
    """An image that hands out no layer."""

    name: str = "image x"
    config = Made(()).config
    diff_ids: tuple[str, ...] = (digest(BASE),)

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield nothing."""
        return iter(())


def test_a_layer_that_is_not_there_is_told() -> None:
    with pytest.raises(ArtifactError, match=f"image x has no layer {digest(BASE)}") as caught:
        compare(Forgetful(), Made((APP,)), Kept())
    assert caught.value.hint
