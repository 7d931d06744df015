"""Images read from a registry and pushed to one, both in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fake_registry import HOST, FakeRegistry, digest_of, once

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.copying import copy_into
from lj_image.oci.descriptor import Platform, descriptor_of
from lj_image.oci.digest import Digest
from lj_image.oci.layout import Layout
from lj_image.oci.manifest import Index
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.oci.validate import validate
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError
from lj_image.registry.image import read_image
from lj_image.registry.push import push_image, push_index
from samples.images import AMD64, ARM64, LAYERS, gzipped, image, sha256

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


class Watched:
    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}

    def blob(self, digest: Digest, state: str, sent_bytes: int, size_bytes: int) -> None:
        assert sent_bytes <= size_bytes
        states = self.seen.setdefault(str(digest), [])
        if [state] != states[-1:]:
            states.append(state)


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
    watched = Watched()
    push_image(registry, Reference.parse(f"{HOST}/team/stack:again"), wanted, watched)
    assert {tuple(states) for states in watched.seen.values()} == {("there",)}
    watched = Watched()
    push_image(registry, Reference.parse(f"{HOST}/other:1"), read_image(registry, NAME, AMD64), watched)
    assert [tuple(watched.seen[digest_of(gzipped(layer))]) for layer in LAYERS] == [("mounted",)] * 2
    assert watched.seen[digest_of(wanted.config)] == ["sending", "sent"]


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
    fake.before.append(once(403, "DENIED", method="POST"))
    with pytest.raises(RegistryError, match="does not let this account"):
        push_image(registry, NAME, wanted)
    lost = replace(wanted.layers[0], open=lambda: io.BytesIO(b"short"))
    with pytest.raises(ArtifactError, match="another size"):
        push_image(registry, NAME, replace(wanted, layers=(lost, *wanted.layers[1:])))
    assert fake.manifests.get("team/stack", {}) == {}


def test_a_tag_that_somebody_else_moved_is_found_when_it_is_read_back(
    registry: Registry, fake: FakeRegistry, wanted: SourceImage, tmp_path: Path
) -> None:
    other = image(tmp_path / "other", cmd=("other",))

    def somebody(request: httpx.Request) -> httpx.Response | None:
        if request.method == "GET" and request.url.path.endswith("/25.02"):
            headers = {"Content-Type": MediaType.OCI_MANIFEST}
            return httpx.Response(200, content=other.manifest, headers=headers)
        return None

    fake.before.append(somebody)
    with pytest.raises(RegistryError, match=r"holds sha256:\w+ instead of sha256"):
        push_image(registry, NAME, wanted)


def test_a_push_gives_a_tag_not_a_digest(registry: Registry, wanted: SourceImage) -> None:
    with pytest.raises(UsageError, match="names a digest"):
        push_image(registry, NAME.at(Digest(sha256(b""))), wanted)
