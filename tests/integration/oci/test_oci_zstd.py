"""Layers in zstd, as the builder compresses them, in the hands of an engine and of skopeo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import docker
import pytest
from scratch import Scratch

from lj_image.builders.docker.loading import load_image
from lj_image.builders.oci.assemble import layer_descriptor
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.zstd_layers import compressed_layers
from lj_image.errors import EngineError
from lj_image.oci.copying import copy_into
from lj_image.oci.layout import Layout
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage, image_of, layer_in
from lj_image.oci.validate import validate
from samples.images import image, layers_of


def in_zstd(folder: Path, unique: str) -> SourceImage:
    """Return an image of which the upper layer is in zstd, and the lower one in gzip, as a base's is."""
    cache = LayerCache(folder)
    plain = image(cache.folder, layers_of(unique))
    lower, upper = plain.layers
    assert upper.descriptor is not None
    size = len(layers_of(unique)[1])
    blob = LayerBlob(str(upper.descriptor.digest), upper.size_bytes, str(upper.diff_id), size)
    (made,) = compressed_layers([CachedLayer("key", blob, 0)], cache, level=3)
    return image_of("mixed", plain.settings, (lower, layer_in(cache.blobs, layer_descriptor(made), upper.diff_id)))


def test_an_engine_since_23_loads_them_and_an_older_one_is_sent_nothing(
    engine: docker.APIClient, scratch: Scratch, tmp_path: Path
) -> None:
    mixed, name, said = in_zstd(tmp_path, scratch.name("zstd")), f"{scratch.name('zstd')}:1", list[str]()
    if tuple(map(int, engine.api_version.split("."))) < (1, 42):
        with pytest.raises(EngineError, match="reads no layers in zstd"):
            load_image(engine, mixed, name, say=said.append)
        assert not said
        return
    load_image(engine, mixed, name, say=said.append)
    assert engine.inspect_image(name)["RootFS"]["Layers"] == [str(layer.diff_id) for layer in mixed.layers]


def test_skopeo_takes_a_manifest_with_both_and_unpacks_them(tmp_path: Path, skopeo: Callable[..., str]) -> None:
    mixed = in_zstd(tmp_path, "skopeo")
    copy_into(Layout.create(tmp_path / "layout"), mixed, "z")
    skopeo("copy", f"oci:{tmp_path}/layout:z", f"oci:{tmp_path}/copy:z")
    found = open_image(tmp_path / "copy")
    validate(found)
    assert [layer.compression for layer in found.layers] == ["gzip", "zstd"]
    skopeo("copy", "--dest-decompress", f"oci:{tmp_path}/layout:z", f"dir:{tmp_path}/plain")
    for layer, plain in zip(mixed.layers, layers_of("skopeo"), strict=True):
        assert (tmp_path / "plain" / layer.diff_id.hex).read_bytes() == plain
