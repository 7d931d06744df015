"""Content of a registry, in memory: every document below a tag, and blobs that are opened at an offset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fake_registry import HOST, FakeRegistry, digest_of, once

from lj_image.errors import ArtifactError
from lj_image.oci.content import Blob, Content
from lj_image.oci.reference import Reference
from lj_image.registry.client import Registry
from lj_image.registry.content import content_at
from samples.images import AMD64, ARM64, LAYERS, gzipped, image
from standins.publishing import push_index

NAME = Reference.parse(f"{HOST}/team/stack:25.02")


@pytest.fixture
def fake() -> FakeRegistry:
    return FakeRegistry()


@pytest.fixture
def registry(fake: FakeRegistry) -> Iterator[Registry]:
    with Registry(HOST, credentials=lambda _: None, transport=fake.transport(), sleep=lambda _: None, environ={}) as it:
        yield it


@pytest.fixture
def found(registry: Registry, fake: FakeRegistry, tmp_path: Path) -> Content:
    push_index(registry, NAME, [image(tmp_path, platform=of) for of in (AMD64, ARM64)])
    fake.asked.clear()
    return content_at(registry, NAME)


def largest(found: Content) -> Blob:
    return max(found.blobs, key=lambda blob: blob.descriptor.size_bytes)


def test_every_document_below_a_tag_is_read_once_and_no_blob(found: Content, fake: FakeRegistry) -> None:
    kept = fake.manifests["team/stack"]
    assert [document.content for document in found.documents][-1] == kept["25.02"][0]
    assert {str(document.descriptor.digest) for document in found.documents} == {*kept} - {"25.02"}
    assert [request.url.path.split("/")[4] for request in fake.asked] == ["manifests"] * 3


def test_a_blob_is_asked_for_from_an_offset_on_and_its_origin_is_known(found: Content, fake: FakeRegistry) -> None:
    blob, content = largest(found), gzipped(LAYERS[1])
    with blob.open_at(1000) as stream:
        assert stream.read(len(content)) == content[1000:]
    assert fake.asked[-1].headers["Range"] == "bytes=1000-"
    assert blob.origin == f"{HOST}/team/stack"


def test_a_registry_that_knows_no_ranges_is_read_past_what_is_not_wanted(found: Content, fake: FakeRegistry) -> None:
    blob, content = largest(found), gzipped(LAYERS[1])
    fake.before += [lambda request: httpx.Response(200, content=content)] * 2
    with blob.open_at(1000) as stream:
        assert stream.read(len(content)) == content[1000:]


def test_other_bytes_than_those_of_the_digest_are_found_when_they_are_read(found: Content, fake: FakeRegistry) -> None:
    blob = largest(found)
    fake.blobs["team/stack"][str(blob.descriptor.digest)] = bytes(blob.descriptor.size_bytes)
    with blob.open_at(0) as stream, pytest.raises(ArtifactError, match="other bytes"):
        stream.read(blob.descriptor.size_bytes + 1)


def test_what_the_source_refuses_is_the_sources_fault(found: Content, registry: Registry, fake: FakeRegistry) -> None:
    fake.before.append(once(403, "DENIED"))
    with pytest.raises(ArtifactError, match=r"the source cannot be read: r\.example does not let this account"):
        largest(found).open_at(0)
    with pytest.raises(ArtifactError, match=r"source cannot be read: r\.example has no manifest team/none:1"):
        content_at(registry, Reference.parse(f"{HOST}/team/none:1"))


def test_an_index_whose_image_is_gone_is_not_copied(found: Content, registry: Registry, fake: FakeRegistry) -> None:
    del fake.manifests["team/stack"][digest_of(found.documents[0].content)]
    with pytest.raises(ArtifactError, match="has no manifest team/stack@sha256"):
        content_at(registry, NAME)
