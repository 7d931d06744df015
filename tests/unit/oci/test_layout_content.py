"""A layout in a folder or a tar as what is published: all of it, byte for byte, or an error that says what is wrong."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.layout_content import content_in, entries_in
from samples.images import sha256

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
MARK = b'{"imageLayoutVersion":"1.0.0"}'


def described(content: bytes, media_type: str, **members: object) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256(content)}", "size": len(content), **members}


def named(name: str) -> dict[str, dict[str, str]]:
    return {"annotations": {"org.opencontainers.image.ref.name": name}}


class Files(dict[str, bytes]):
    """The files of a layout, written by hand."""

    def add(self, content: bytes, media_type: str, **members: object) -> dict[str, Any]:
        self[f"blobs/sha256/{sha256(content)}"] = content
        return described(content, media_type, **members)

    def image(self, layer: bytes = b"a layer", **members: object) -> dict[str, Any]:
        config = self.add(b'{"os":"linux","architecture":"amd64"}', "application/vnd.oci.image.config.v1+json")
        lower = self.add(layer, "application/vnd.oci.image.layer.v1.tar+gzip")
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [lower]}
        return self.add(json.dumps(manifest).encode(), MANIFEST, **members)

    def index(self, *items: Mapping[str, Any], **members: object) -> dict[str, Any]:
        return self.add(index_json(*items), INDEX, **members)

    def folder(self, path: Path, *items: Mapping[str, Any]) -> Path:
        for name, content in self.every(*items).items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return path

    def tar(self, path: Path, *items: Mapping[str, Any]) -> Path:
        with tarfile.open(path, "w") as tar:
            for name, content in self.every(*items).items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return path

    def every(self, *items: Mapping[str, Any]) -> dict[str, bytes]:
        return {"oci-layout": MARK, "index.json": index_json(*items), **self}


def index_json(*items: Mapping[str, Any]) -> bytes:
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": items}).encode()


@pytest.mark.parametrize("form", ["folder", "tar"])
def test_an_index_comes_with_all_below_it_and_after_it(tmp_path: Path, form: str) -> None:
    files = Files()
    first, second = files.image(b"first"), files.image(b"second")
    root = files.index(first, files.index(second))
    found = content_in(getattr(files, form)(tmp_path / "layout", root))
    digests = [str(document.descriptor.digest) for document in found.documents]
    assert digests[0] == first["digest"]
    assert digests[-1] == root["digest"]
    assert digests.index(second["digest"]) < 2
    assert len(digests) == 4
    assert {str(blob.descriptor.digest) for blob in found.blobs} == {
        f"sha256:{sha256(content)}" for content in (b"first", b"second", b'{"os":"linux","architecture":"amd64"}')
    }
    assert found.root.content == files[f"blobs/sha256/{root['digest'][7:]}"]


@pytest.mark.parametrize("form", ["folder", "tar"])
def test_a_blob_is_opened_in_place_at_any_offset(tmp_path: Path, form: str) -> None:
    files = Files()
    found = content_in(getattr(files, form)(tmp_path / "layout", files.image(b"0123456789")))
    layer = next(blob for blob in found.blobs if blob.descriptor.size_bytes == 10)
    for offset, expected in ((0, b"0123456789"), (7, b"789"), (10, b"")):
        with layer.open_at(offset) as stream:
            assert stream.read(100) == expected


def test_of_several_one_is_named_and_a_digest_under_two_names_is_one(tmp_path: Path) -> None:
    files = Files()
    first, second = files.image(b"first"), files.image(b"second")
    path = files.folder(tmp_path, first | named("25.01"), second | named("25.02"), second | named("latest"))
    assert [item.names for item in entries_in(path)] == [("25.01",), ("25.02", "latest")]
    assert str(content_in(path, "latest").root.descriptor.digest) == second["digest"]
    assert str(content_in(path, first["digest"]).root.descriptor.digest) == first["digest"]
    with pytest.raises(UsageError, match=r"holds 2 images: 25\.01; 25\.02, latest"):
        content_in(path)
    with pytest.raises(UsageError, match=r"nothing named '25\.1'") as raised:
        content_in(path, "25.1")
    assert "25.01" in (raised.value.hint or "")


def test_a_layer_with_an_address_of_its_own_is_left_out(tmp_path: Path) -> None:
    files = Files()
    config = files.add(b"{}", "application/vnd.oci.image.config.v1+json")
    foreign = described(b"far away", "application/vnd.oci.image.layer.nondistributable.v1.tar", urls=["https://a.b/c"])
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [foreign]})
    found = content_in(files.folder(tmp_path, files.add(manifest.encode(), MANIFEST)))
    assert [str(blob.descriptor.digest) for blob in found.blobs] == [config["digest"]]


def test_a_blob_that_is_missing_or_short_is_found_before_anything_is_read(tmp_path: Path) -> None:
    files = Files()
    root = files.image(b"a whole layer")
    layer = f"blobs/sha256/{sha256(b'a whole layer')}"
    files[layer] = b"a whole lay"
    with pytest.raises(ArtifactError, match=r"has 11 bytes instead of 13"):
        content_in(files.tar(tmp_path / "short.tar", root))
    del files[layer]
    with pytest.raises(ArtifactError, match=rf"{sha256(b'a whole layer')} is missing"):
        content_in(files.tar(tmp_path / "missing.tar", root))


def test_a_manifest_of_other_bytes_is_refused(tmp_path: Path) -> None:
    files = Files()
    root = files.image()
    name = f"blobs/sha256/{root['digest'][7:]}"
    files[name] = files[name].replace(b"layers", b"Layers")
    with pytest.raises(ArtifactError, match="other bytes than its digest"):
        content_in(files.folder(tmp_path, root))


def test_a_document_that_calls_itself_otherwise_is_refused(tmp_path: Path) -> None:
    files = Files()
    with pytest.raises(
        ArtifactError, match=r"is called application/\S*index\S*, and calls itself application/\S*manifest"
    ):
        content_in(files.folder(tmp_path, files.image() | {"mediaType": INDEX}))


def test_what_is_no_image_says_its_type(tmp_path: Path) -> None:
    files = Files()
    root = files.index(files.add(b"{}", "application/vnd.example"))
    with pytest.raises(ArtifactError, match=r"type 'application/vnd\.example', which is no manifest"):
        content_in(files.folder(tmp_path, root))


def test_a_knot_of_indexes_is_not_followed(tmp_path: Path) -> None:
    files = Files()
    root = files.image()
    for _ in range(20):
        root = files.index(root)
    with pytest.raises(ArtifactError, match="more documents than an image has"):
        content_in(files.folder(tmp_path, root))


def test_a_blob_with_two_sizes_is_refused(tmp_path: Path) -> None:
    files = Files()
    config = files.add(b"{}", "application/vnd.oci.image.config.v1+json")
    layer = files.add(b"layer", "application/vnd.oci.image.layer.v1.tar")
    parts = {"config": config, "layers": [layer, layer | {"size": 6}]}
    root = files.add(json.dumps({"schemaVersion": 2, "mediaType": MANIFEST} | parts).encode(), MANIFEST)
    with pytest.raises(ArtifactError, match="5 bytes, and 6 elsewhere"):
        content_in(files.folder(tmp_path, root))


def test_what_docker_save_writes_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(UsageError, match="docker save") as raised:
        content_in(tmp_path)
    assert "skopeo copy docker-archive:" in (raised.value.hint or "")


def test_what_is_no_layout_or_an_empty_one_or_of_a_later_version_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no OCI layout"):
        content_in(tmp_path)
    with pytest.raises(UsageError, match="no file"):
        content_in(tmp_path / "absent.tar")
    empty = Files().folder(tmp_path / "empty")
    with pytest.raises(UsageError, match="empty layout"):
        content_in(empty)
    (empty / "oci-layout").write_text('{"imageLayoutVersion":"2.0.0"}')
    with pytest.raises(ArtifactError, match=r"should be 1\.0\.0"):
        content_in(empty)
