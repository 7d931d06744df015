"""Images read from a registry and pushed to one, both in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_registry import HOST, FakeRegistry, digest_of, once

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.content import content_of
from lj_image.oci.copying import copy_into
from lj_image.oci.descriptor import Platform, descriptor_of
from lj_image.oci.layout import Layout
from lj_image.oci.manifest import Index
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.oci.validate import validate
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError
from lj_image.registry.image import read_image
from samples.images import AMD64, ARM64, LAYERS, gzipped, image, sha256
from standins.publishing import publish_at, push_image, push_index

NAME = Reference.parse(f"{HOST}/team/stack:25.02")


@pytest.fixture
def fake() -> FakeRegistry:
    return FakeRegistry(location="/v2/{repository}/blobs/uploads/1?_state=a%3D%3D")


@pytest.fixture
def registry(fake: FakeRegistry) -> Iterator[Registry]:
    with Registry(HOST, credentials=lambda _: None, transport=fake.transport(), sleep=lambda _: None, environ={}) as it:
        yield it


@pytest.fixture
def wanted(tmp_path: Path) -> SourceImage:
    return image(tmp_path / "blobs")


def test_an_image_that_was_pushed_is_there_whole(
    registry: Registry, fake: FakeRegistry, wanted: SourceImage, tmp_path: Path
) -> None:
    assert str(push_image(registry, NAME, wanted)) == digest_of(wanted.manifest or b"")
    assert set(fake.blobs["team/stack"]) == {
        digest_of(wanted.config),
        *(digest_of(gzipped(layer)) for layer in LAYERS),
    }
    methods = [(request.method, request.url.path.split("/")[4]) for request in fake.asked]
    assert methods[-2:] == [("PUT", "manifests"), ("GET", "manifests")], "the tag comes last, and is read back"
    found = read_image(registry, NAME, AMD64)
    validate(found)
    assert (found.manifest, found.config, found.name) == (wanted.manifest, wanted.config, str(NAME))
    copy_into(Layout.create(tmp_path / "layout"), found, "25.02")
    Layout.open(tmp_path / "layout").validate()


def test_the_layers_of_an_image_that_is_read_stay_where_they_are(
    registry: Registry, fake: FakeRegistry, wanted: SourceImage
) -> None:
    push_image(registry, NAME, wanted)
    fake.asked.clear()
    found = read_image(registry, NAME, AMD64)
    assert fake.paths("GET") == [
        "/v2/team/stack/manifests/25.02",
        f"/v2/team/stack/blobs/sha256:{sha256(wanted.config)}",
    ]
    assert {layer.origin for layer in found.layers} == {f"{HOST}/team/stack"}


def test_what_is_there_is_not_sent_again_and_what_is_near_is_mounted(
    registry: Registry, fake: FakeRegistry, wanted: SourceImage
) -> None:
    push_image(registry, NAME, wanted)
    again = publish_at(registry, Reference.parse(f"{HOST}/team/stack:again"), content_of(wanted)).delivery
    assert again is not None
    assert (again.existing, again.mounted, again.sent) == (3, 0, 0)
    near = content_of(read_image(registry, NAME, AMD64))
    mounted = publish_at(registry, Reference.parse(f"{HOST}/other:1"), near).delivery
    assert mounted is not None
    assert (mounted.existing, mounted.mounted, mounted.sent) == (0, 2, 1), "a configuration is sent"


def test_platforms_are_pushed_by_digest_and_their_index_by_tag(
    registry: Registry, fake: FakeRegistry, tmp_path: Path
) -> None:
    every = {str(of): image(tmp_path, platform=of) for of in (AMD64, ARM64)}
    digest = push_index(registry, NAME, every.values())
    assert str(digest) == digest_of(fake.manifests["team/stack"]["25.02"][0])
    assert [
        item["platform"]["architecture"] for item in json.loads(fake.manifests["team/stack"]["25.02"][0])["manifests"]
    ] == [
        "amd64",
        "arm64",
    ]
    for name, pushed in every.items():
        assert read_image(registry, NAME, Platform.parse(name)).manifest == pushed.manifest
    with pytest.raises(UsageError, match=r"no image for linux/s390x; it has linux/amd64, linux/arm64"):
        read_image(registry, NAME, Platform.parse("linux/s390x"))


def test_an_index_in_an_index_is_looked_into_and_a_knot_is_not(
    registry: Registry, fake: FakeRegistry, wanted: SourceImage
) -> None:
    push_index(registry, NAME, [wanted])
    inner = fake.manifests["team/stack"]["25.02"][0]
    outer = Index((descriptor_of(inner, MediaType.OCI_INDEX),))
    registry.put_manifest("team/stack", "outer", outer.to_bytes(), MediaType.OCI_INDEX)
    assert read_image(registry, replace(NAME, tag="outer"), AMD64).manifest == wanted.manifest
    content = outer
    for _ in range(3):
        registry.put_manifest("team/stack", "knot", content.to_bytes(), MediaType.OCI_INDEX)
        content = Index((descriptor_of(content.to_bytes(), MediaType.OCI_INDEX),))
    registry.put_manifest("team/stack", "knot", content.to_bytes(), MediaType.OCI_INDEX)
    with pytest.raises(ArtifactError, match="indexes of indexes"):
        read_image(registry, replace(NAME, tag="knot"), AMD64)


def test_an_image_that_is_not_there_or_not_to_be_had_is_an_artifact_error(
    registry: Registry, fake: FakeRegistry
) -> None:
    with pytest.raises(ArtifactError, match=r"r\.example has no manifest team/stack:25\.02") as raised:
        read_image(registry, NAME, AMD64)
    assert raised.value.hint
    fake.before.append(once(403, "DENIED"))
    with pytest.raises(ArtifactError, match="does not let this account"):
        read_image(registry, NAME, AMD64)


def test_no_tag_moves_when_a_blob_does_not_arrive(registry: Registry, fake: FakeRegistry, wanted: SourceImage) -> None:
    fake.before += [once(403, "DENIED", method="POST")] * 3
    with pytest.raises(RegistryError, match="does not let this account"):
        push_image(registry, NAME, wanted)
    lost = replace(wanted.layers[0], open=lambda: io.BytesIO(b"short"), file=None)
    with pytest.raises(ArtifactError, match="other bytes"):
        push_image(registry, NAME, replace(wanted, layers=(lost, *wanted.layers[1:])))
    assert fake.manifests.get("team/stack", {}) == {}
