"""Files that several layers bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.builders.oci.clashes import require_no_clash
from lj_image.builders.oci.compose import Ground
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.builders.oci.layer_job import assemble_layer
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.errors import BuildError
from unit.builders.oci.oci_recipes import recipe_of

SHARED = "common/shared.py"
PATH = f"usr/local/lib/python3.11/dist-packages/{SHARED}"


def check(folder: Path, *recipes: LayerRecipe) -> LayerCache:
    cache = LayerCache(folder / "cache")
    cache.layout()
    require_no_clash(recipes, [assemble_layer(recipe, folder / "cache") for recipe in recipes], cache)
    return cache


def pair(
    folder: Path, first: bytes, second: bytes, winners: dict[str, str] | None = None
) -> tuple[LayerRecipe, LayerRecipe]:
    ground = Ground(winners=winners or {})
    one = recipe_of(folder, "one", first, path=SHARED, ground=ground, title="One")
    return one, recipe_of(folder, "two", second, path=SHARED, ground=ground, title="Two")


def test_the_same_file_in_two_layers_is_no_clash(tmp_path: Path) -> None:
    check(tmp_path, *pair(tmp_path, b"same", b"same"))


def test_another_content_in_two_layers_is_told_with_both(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        check(tmp_path, *pair(tmp_path, b"1", b"2"))
    assert caught.value.message == f"the layer One and the layer Two both bring {PATH}, with different contents"
    assert f"owners: {{/{PATH}: NAME}}" in str(caught.value.hint)


@pytest.mark.parametrize(("winner", "losing"), [("one-1.0-py3-none-any.whl", 1), ("two-1.0-py3-none-any.whl", 0)])
def test_whose_file_stays_is_in_one_layer_alone(winner: str, losing: int, tmp_path: Path) -> None:
    recipes = pair(tmp_path, b"1", b"2", {PATH: winner})
    cache = check(tmp_path, *recipes)
    layers = [assemble_layer(recipe, tmp_path / "cache") for recipe in recipes]
    assert PATH not in dict(cache.files(layers[losing]))
    assert PATH in dict(cache.files(layers[1 - losing]))


def test_layers_that_did_not_clash_are_not_looked_at_again_and_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair(tmp_path, b"same", b"same")
    check(tmp_path, one, two)
    other = recipe_of(tmp_path, "three", b"other", path=SHARED)
    with pytest.raises(BuildError):
        check(tmp_path, one, other)
    monkeypatch.setattr(LayerCache, "files", lambda *arguments: pytest.fail("read again"))
    check(tmp_path, one, two)
