"""Layouts and archives as skopeo sees them: a tool that shares no code with us."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from lj_image.oci.archive import archive
from lj_image.oci.copying import copy_index_into, copy_into
from lj_image.oci.layout import Layout
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage
from lj_image.oci.validate import validate
from samples.images import AMD64, ARM64, LAYERS, gzipped_in_parts, image

NAME = Reference.parse("localhost:5000/stack:25.02")


@pytest.fixture
def spliced(tmp_path: Path) -> SourceImage:
    return image(tmp_path / "blobs", compress=gzipped_in_parts)


def test_skopeo_reads_a_layout(spliced: SourceImage, tmp_path: Path, skopeo: Callable[..., str]) -> None:
    copied = copy_into(Layout.create(tmp_path / "layout"), spliced, "25.02")
    found = json.loads(skopeo("inspect", f"oci:{tmp_path}/layout:25.02"))
    assert found["Digest"] == str(copied.digest)
    assert found["Layers"] == [str(layer.descriptor.digest) for layer in spliced.layers if layer.descriptor]
    assert (found["Env"], found["Architecture"], found["Created"]) == (["A=b"], "amd64", "2025-02-28T00:00:00Z")


def test_a_copy_by_skopeo_is_the_same_image(spliced: SourceImage, tmp_path: Path, skopeo: Callable[..., str]) -> None:
    copy_into(Layout.create(tmp_path / "layout"), spliced, "25.02")
    skopeo("copy", f"oci:{tmp_path}/layout:25.02", f"oci:{tmp_path}/copy:25.02")
    skopeo("copy", f"oci:{tmp_path}/copy:25.02", f"oci-archive:{tmp_path}/copy.tar:25.02")
    for path in (tmp_path / "copy", tmp_path / "copy.tar"):
        found = open_image(path)
        validate(found)
        assert (found.manifest, found.config) == (spliced.manifest, spliced.config)


def test_one_tar_is_both_kinds_of_archive_for_skopeo(
    spliced: SourceImage, tmp_path: Path, skopeo: Callable[..., str]
) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(b"".join(archive(spliced, (NAME,))))
    raw = skopeo("inspect", "--raw", f"oci-archive:{path}:25.02")
    assert raw.encode() == spliced.manifest
    config = skopeo("inspect", "--raw", "--config", f"docker-archive:{path}:{NAME}")
    assert config.encode() == spliced.config
    skopeo("copy", f"docker-archive:{path}:{NAME}", f"docker-archive:{tmp_path}/again.tar:{NAME}")
    again = open_image(tmp_path / "again.tar")
    validate(again)
    assert again.config == spliced.config


def test_skopeo_unpacks_layers_in_zstd_as_we_do(tmp_path: Path, skopeo: Callable[..., str]) -> None:
    made = image(tmp_path / "blobs", compress=zstandard.compress, media_type=MediaType.OCI_LAYER_ZSTD)
    copy_into(Layout.create(tmp_path / "layout"), made, "z")
    skopeo("copy", "--dest-decompress", f"oci:{tmp_path}/layout:z", f"dir:{tmp_path}/plain")
    assert [(tmp_path / "plain" / layer.diff_id.hex).read_bytes() for layer in made.layers] == list(LAYERS)


def test_layers_that_skopeo_made_zstd_are_read(tmp_path: Path, skopeo: Callable[..., str]) -> None:
    plain = image(tmp_path / "blobs", compress=bytes, media_type=MediaType.OCI_LAYER)
    copy_into(Layout.create(tmp_path / "layout"), plain, "25.02")
    skopeo("copy", "--dest-compress-format", "zstd", f"oci:{tmp_path}/layout:25.02", f"oci:{tmp_path}/zstd:25.02")
    found = open_image(tmp_path / "zstd")
    assert {layer.compression for layer in found.layers} == {"zstd"}
    validate(found)
    assert [layer.diff_id for layer in found.layers] == [layer.diff_id for layer in plain.layers]


def test_skopeo_finds_each_platform_of_an_index(tmp_path: Path, skopeo: Callable[..., str]) -> None:
    every = [image(tmp_path / "blobs", platform=platform) for platform in (AMD64, ARM64)]
    index = copy_index_into(Layout.create(tmp_path / "layout"), every, "25.02")
    for architecture in ("amd64", "arm64"):
        found = skopeo("--override-arch", architecture, "inspect", f"oci:{tmp_path}/layout:25.02")
        assert json.loads(found)["Architecture"] == architecture
    skopeo("copy", "--all", f"oci:{tmp_path}/layout:25.02", f"oci:{tmp_path}/copy:25.02")
    assert Layout.open(tmp_path / "copy").references()["25.02"].digest == index.digest
    Layout.open(tmp_path / "copy").validate()
