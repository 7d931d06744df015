"""Layers on this machine, found by what they were made from; a damaged cache is as good as an empty one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.layer_job import assemble_layer
from lj_image.builders.oci.recipe import LayerRecipe
from unit.builders.oci.oci_recipes import recipe_of

FIRST = 1_709_208_000  # below the time of the sample's members, 2024-02-29 12:30:58
LATE = 1_800_000_000


@pytest.fixture
def recipe(tmp_path: Path) -> LayerRecipe:
    return recipe_of(tmp_path, "tiny")


@pytest.fixture
def cache(tmp_path: Path) -> LayerCache:
    cache = LayerCache(tmp_path / "cache")
    cache.layout()
    return cache


def made(recipe: LayerRecipe, cache: LayerCache) -> CachedLayer:
    return assemble_layer(recipe, cache.folder.parent)


def test_a_layer_is_found_by_its_recipe_with_all_that_was_known(recipe: LayerRecipe, cache: LayerCache) -> None:
    assert cache.find(recipe.key(), None) is None
    layer = made(recipe, cache)
    assert cache.find(recipe.key(), None) == layer
    assert "usr/local/lib/python3.11/dist-packages/tiny/__init__.py" in dict(cache.files(layer))


def test_an_epoch_that_clamps_nothing_gives_the_layer_that_is_there(recipe: LayerRecipe, cache: LayerCache) -> None:
    layer = made(recipe, cache)
    assert cache.find(recipe.key(), LATE) == layer
    assert made(recipe.with_epoch(LATE), cache) == layer


def test_an_epoch_that_clamps_has_a_layer_of_its_own(recipe: LayerRecipe, cache: LayerCache) -> None:
    plain = made(recipe, cache)
    assert cache.find(recipe.key(), FIRST) is None
    clamped = made(recipe.with_epoch(FIRST), cache)
    assert clamped.blob.diff_id != plain.blob.diff_id
    assert cache.find(recipe.key(), FIRST) == clamped
    assert cache.find(recipe.key(), None) == plain
    assert cache.find(recipe.key(), FIRST - 1) is None


def test_a_layer_that_was_made_with_a_late_epoch_is_found_without_one(recipe: LayerRecipe, cache: LayerCache) -> None:
    layer = made(recipe.with_epoch(LATE), cache)
    assert cache.find(recipe.key(), None) == layer


def blob(cache: LayerCache) -> Path:
    return max((cache.folder / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)


def note(cache: LayerCache, kind: str = "json") -> Path:
    return next((cache.folder / "layers").glob(f"*.{kind}"))


def shortened(cache: LayerCache) -> None:
    path = blob(cache)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda cache: blob(cache).unlink(),
        shortened,
        lambda cache: note(cache).write_text("{"),
        lambda cache: note(cache).write_text("[]"),
        lambda cache: note(cache).write_text('{"key": "x"}'),
        lambda cache: note(cache, "files").unlink(),
        lambda cache: note(cache).unlink(),
    ],
    ids=["no blob", "short blob", "half a note", "list", "another note", "no files", "no note"],
)
def test_what_is_damaged_is_made_again(
    damage: Callable[[LayerCache], object], recipe: LayerRecipe, cache: LayerCache
) -> None:
    layer = made(recipe, cache)
    damage(cache)
    assert cache.find(recipe.key(), None) is None
    assert made(recipe, cache) == layer
    assert cache.find(recipe.key(), None) == layer


def test_finding_says_that_it_was_used_and_does_without_where_nothing_may_be_written(
    recipe: LayerRecipe, cache: LayerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(recipe, cache)
    os.utime(note(cache), (1, 1))
    cache.find(recipe.key(), None)
    assert note(cache).stat().st_mtime > 1

    def refuse(*arguments: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.find(recipe.key(), None) is not None


def test_gc_waits_for_a_build_and_a_build_for_nobody_but_gc(cache: LayerCache) -> None:
    with cache.in_use(), cache.in_use(), cache.alone(wait=False) as got:
        assert not got
    with cache.alone(wait=False) as got:
        assert got
