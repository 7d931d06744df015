"""Content without attestations, and with media types of another kind; expected documents are written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.errors import ArtifactError
from lj_image.oci.content import Content, content_of, content_of_images
from lj_image.oci.pruning import of_kind, without_attestations
from samples.attested import attested
from samples.images import AMD64, ARM64, image

DOCKER = "application/vnd.docker"


@pytest.fixture
def one(tmp_path: Path) -> Content:
    return content_of(image(tmp_path / "blobs"))


def test_an_index_of_one_image_and_its_attestation_becomes_that_image(one: Content) -> None:
    left = without_attestations(attested(one))
    assert left.documents == one.documents
    assert [blob.descriptor for blob in left.blobs] == [blob.descriptor for blob in one.blobs]


def test_an_index_of_two_platforms_stays_an_index(tmp_path: Path) -> None:
    images = [image(tmp_path / "blobs", platform=platform) for platform in (AMD64, ARM64)]
    both = content_of_images(images, "both")
    with_one_attested = attested(content_of(images[0]))
    index = json.loads(both.root.content)
    index["manifests"].append(json.loads(with_one_attested.root.content)["manifests"][1])
    left = without_attestations(_with_root(with_one_attested, both, index))
    assert json.loads(left.root.content)["manifests"] == json.loads(both.root.content)["manifests"]
    assert {item.descriptor.digest for item in left.documents[:-1]} == {
        item.descriptor.digest for item in both.documents[:-1]
    }


def _with_root(attested_one: Content, both: Content, index: dict[str, object]) -> Content:
    from lj_image.oci.content import Document
    from lj_image.oci.descriptor import descriptor_of

    content = json.dumps(index).encode()
    root = Document(descriptor_of(content, both.root.descriptor.media_type), content)
    documents = {item.descriptor.digest: item for item in (*both.documents[:-1], *attested_one.documents[:-1])}
    blobs = {blob.descriptor.digest: blob for blob in (*both.blobs, *attested_one.blobs)}
    return Content("both", (*documents.values(), root), tuple(blobs.values()))


def test_what_has_no_attestation_stays_what_it_is(one: Content) -> None:
    assert without_attestations(one) is one
    assert of_kind(one, "oci") is one


def test_dockers_types_are_another_manifest_of_the_same_blobs(one: Content) -> None:
    converted = of_kind(one, "docker")
    manifest = json.loads(converted.root.content)
    assert manifest["mediaType"] == f"{DOCKER}.distribution.manifest.v2+json"
    assert manifest["config"]["mediaType"] == f"{DOCKER}.container.image.v1+json"
    assert {layer["mediaType"] for layer in manifest["layers"]} == {f"{DOCKER}.image.rootfs.diff.tar.gzip"}
    assert [layer["digest"] for layer in manifest["layers"]] == [
        layer["digest"] for layer in json.loads(one.root.content)["layers"]
    ]
    assert converted.blobs == one.blobs
    assert of_kind(converted, "oci").root.descriptor.digest == one.root.descriptor.digest


def test_an_index_names_its_converted_images(tmp_path: Path) -> None:
    both = content_of_images([image(tmp_path / "b", platform=item) for item in (AMD64, ARM64)], "both")
    converted = of_kind(both, "docker")
    index = json.loads(converted.root.content)
    assert index["mediaType"] == f"{DOCKER}.distribution.manifest.list.v2+json"
    assert [item["digest"] for item in index["manifests"]] == [
        str(item.descriptor.digest) for item in converted.documents[:-1]
    ]
    assert [item["platform"]["architecture"] for item in index["manifests"]] == ["amd64", "arm64"]


def test_a_layer_in_zstd_has_no_type_of_dockers(tmp_path: Path) -> None:
    zstd = content_of(image(tmp_path / "z", media_type="application/vnd.oci.image.layer.v1.tar+zstd"))
    with pytest.raises(ArtifactError, match="no type of docker's") as caught:
        of_kind(zstd, "docker")
    assert "--compression gzip" in (caught.value.hint or "")


def test_attestations_without_an_image_are_no_image(one: Content) -> None:
    whole = attested(one)
    index = json.loads(whole.root.content)
    index["manifests"] = index["manifests"][1:]
    content = json.dumps(index).encode()
    with pytest.raises(ArtifactError, match="no image"):
        without_attestations(replace(whole, documents=(*whole.documents[:-1], replace(whole.root, content=content))))
