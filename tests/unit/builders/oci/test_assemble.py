"""A plan's layers and a base become an image: its manifest, its configuration, its history."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lj_image.builders.oci.assemble import AssembledImage, Stamps, assemble, require_assemblable
from lj_image.builders.oci.base_image import image_base
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.catalog.release import AptSource, RunConfig, RunSource
from lj_image.errors import BuildError, UsageError
from lj_image.plan import AptLayer, RunLayer
from samples.images import LAYERS, image, sha256
from unit.builders.oci.oci_recipes import recipe_of

AT = "2025-02-28T00:00:00Z"


@pytest.fixture
def cache(tmp_path: Path) -> LayerCache:
    cache = LayerCache(tmp_path / "cache")
    cache.layout()
    return cache


def assembled(cache: LayerCache, *recipes: LayerRecipe, said: list[str] | None = None) -> AssembledImage:
    folder = cache.folder.parent
    base = image_base(image(folder.parent / "base"), blobs=cache.blobs, cache_dir=folder, say=lambda line: None)
    plan: Any = SimpleNamespace(release=SimpleNamespace(config=RunConfig(cmd=("tiny",))), env=(("X", "$A"),))
    say = (said if said is not None else []).append
    return assemble(plan, base, recipes, Stamps(AT, {"by": "us"}), cache, say=say)


def document(cache: LayerCache, digest: object) -> Any:
    return json.loads((cache.folder / "blobs" / str(digest).replace(":", "/")).read_bytes())


def test_manifest_and_configuration_describe_the_blobs_that_are_there(cache: LayerCache, tmp_path: Path) -> None:
    found = assembled(cache, recipe_of(tmp_path, "one"), recipe_of(tmp_path, "two"))
    manifest = document(cache, found.manifest.digest)
    config = document(cache, manifest["config"]["digest"])
    assert manifest["config"]["digest"] == found.image_id
    diff_ids = [f"sha256:{sha256(layer)}" for layer in LAYERS]
    for layer in manifest["layers"][2:]:
        blob = (cache.folder / "blobs" / layer["digest"].replace(":", "/")).read_bytes()
        assert layer["digest"] == f"sha256:{hashlib.sha256(blob).hexdigest()}"
        assert layer["size"] == len(blob)
        assert layer["mediaType"] == "application/vnd.oci.image.layer.v1.tar+gzip"
        diff_ids.append(f"sha256:{sha256(gzip.decompress(blob))}")
    assert config["rootfs"] == {"type": "layers", "diff_ids": diff_ids}
    assert config["config"] == {"Env": ["A=b", "X=b"], "Cmd": ["tiny"], "Labels": {"by": "us"}}
    assert config["created"] == AT


def test_history_names_each_layer_with_its_versions(cache: LayerCache, tmp_path: Path) -> None:
    found = assembled(cache, recipe_of(tmp_path, "one"), recipe_of(tmp_path, "two", title="Two"))
    history = document(cache, found.image_id)["history"]
    assert [step["created_by"] for step in history] == [
        "step 0",
        "step 1",
        "lj-image: one: one 1.0",
        "lj-image: Two: two 1.0",
    ]
    assert history[-1]["created"] == AT


def test_layers_that_are_there_are_taken_and_only_new_ones_are_told(cache: LayerCache, tmp_path: Path) -> None:
    one, two = recipe_of(tmp_path, "one"), recipe_of(tmp_path, "two")
    first = assembled(cache, one)
    said: list[str] = []
    second = assembled(cache, one, two, said=said)
    assert second.layers[0] == first.layers[0]
    assert [line.partition(":")[0] for line in said] == ["layer 2/2 two"]
    swapped = assembled(cache, two, one)
    assert [layer.key for layer in swapped.layers] == [two.key(), one.key()]


def test_two_layers_that_claim_a_path_make_no_image(cache: LayerCache, tmp_path: Path) -> None:
    one, two = (recipe_of(tmp_path, name, name.encode(), path="common.py") for name in ("one", "two"))
    with pytest.raises(BuildError, match="the layer one and the layer two both bring"):
        assembled(cache, one, two)
    assert len(list((cache.folder / "blobs/sha256").iterdir())) == 2, "the layers, and no document"


def test_kinds_that_need_a_running_container_are_refused_together_and_by_name(tmp_path: Path) -> None:
    apt = AptLayer("Hello", ("hello",), AptSource((("hello", "2.10"),)), "")
    run = RunLayer("Marker", ("marker",), RunSource(("true",), "true", ""), "")
    plan: Any = SimpleNamespace(layers=(apt, recipe_of(tmp_path, "one").layer, run))
    with pytest.raises(UsageError, match=r"need an engine: Hello \(kind apt\), Marker \(kind run\)") as caught:
        require_assemblable(plan)
    assert "--builder docker" in str(caught.value.hint)
    plan.layers = plan.layers[1:2]
    require_assemblable(plan)
