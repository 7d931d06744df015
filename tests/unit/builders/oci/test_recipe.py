"""What a layer's key depends on: all that decides about its bytes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.builders.oci.compose import Ground
from lj_image.builders.oci.entries import Folder
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.catalog.release import FilesSource
from lj_image.plan import ConstraintsLayer, FilesLayer
from unit.builders.oci.oci_recipes import recipe_of

Change = Callable[[LayerRecipe], LayerRecipe]


def on(**ground: object) -> Change:
    return lambda recipe: replace(recipe, ground=Ground(**ground))  # type: ignore[arg-type]


@pytest.fixture
def recipe(tmp_path: Path) -> LayerRecipe:
    return recipe_of(tmp_path, "tiny")


@pytest.mark.parametrize(
    "change",
    [
        lambda recipe: replace(recipe, layer=replace(recipe.layer, title="another", reason="another")),
        lambda recipe: recipe.with_epoch(1_700_000_000),
        lambda recipe: replace(recipe, wheels=tuple(replace(item, path=Path("/elsewhere")) for item in recipe.wheels)),
        on(folder_links={"lib": "usr/lib", "bin": "usr/bin"}),
        on(folders={"root": Folder("root", 0o700)}),
        on(winners={"opt/x": "y.whl"}),
    ],
    ids=["title", "epoch", "place of the file", "links elsewhere", "folders elsewhere", "owners elsewhere"],
)
def test_what_changes_no_byte_changes_no_key(change: Change, recipe: LayerRecipe) -> None:
    assert change(recipe).key() == recipe.key()


@pytest.mark.parametrize(
    "change",
    [
        lambda recipe: replace(recipe, wheels=tuple(replace(item, sha256="0" * 64) for item in recipe.wheels)),
        lambda recipe: replace(recipe, wheels=recipe.wheels * 2),
        lambda recipe: replace(recipe, scheme=replace(recipe.scheme, python="3.12")),
        lambda recipe: replace(recipe, scheme=replace(recipe.scheme, executable="/opt/python")),
        lambda recipe: replace(recipe, bytecode="unchecked-hash"),
        lambda recipe: replace(recipe, is_lazy=True),
        on(folder_links={"usr/local/man": "share/man"}),
        on(folder_links={"usr": "system"}),
        on(folders={"usr/local": Folder("usr/local", 0o2775, gid=50)}),
        on(folders={"usr/include": Folder("usr/include", 0o700)}),
        on(winners={"usr/local/bin/x": "y.whl"}),
    ],
    ids=[
        "another wheel",
        "one more wheel",
        "Python",
        "interpreter",
        "bytecode",
        "lazy",
        "a link below",
        "a link above",
        "a folder",
        "the headers' folder",
        "an owner",
    ],
)
def test_what_changes_a_byte_changes_the_key(change: Change, recipe: LayerRecipe) -> None:
    assert change(recipe).key() != recipe.key()


def test_the_constraints_depend_on_text_and_workdir_and_on_no_python(recipe: LayerRecipe) -> None:
    layer = ConstraintsLayer("protected packages", (), "torch==2.6.0\n", "")
    plain = LayerRecipe(layer, recipe.scheme, Ground(), workdir="/workspace")
    assert replace(plain, scheme=replace(recipe.scheme, python="3.12")).key() == plain.key()
    assert replace(plain, workdir="/other").key() != plain.key()
    assert replace(plain, layer=replace(layer, text="torch==2.7.0\n")).key() != plain.key()


def test_another_compressor_gives_another_layer_of_files_and_the_same_of_wheels(
    recipe: LayerRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = replace(recipe, layer=FilesLayer("files", ("files",), FilesSource(tmp_path, "/opt"), "files"), wheels=())
    before = files.key(), recipe.key()
    monkeypatch.setattr("lj_image.builders.oci.recipe.MAKER", "libdeflate-0.0-6")
    assert replace(files).key() != before[0]  # a value of its own: a key is computed once
    assert replace(recipe).key() == before[1]
