"""Archives on disk, in each form, whole and damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from diff_archives import config_of, digest, distribution, docker_save, oci_files, oci_folder, oci_tar, tar_of

from lj_image.catalog.release import Release
from lj_image.errors import ArtifactError, LjImageError, UsageError
from lj_image.release.diff.archives import contents_of_archive
from lj_image.release.diff.claims import Claims
from lj_image.release.diff.compare import diff
from lj_image.release.diff.contents import Contents

BASE = tar_of({"etc/os": b"Debian\n"})
SIX_1 = tar_of(distribution("six", "1.16.0"))
SIX_2 = tar_of(
    {"usr/lib/python3.11/site-packages/.wh.six-1.16.0.dist-info": b"", **distribution("six", "1.17.0", "BSD")}
)
AMD64 = {"amd64": ([BASE, SIX_1], {})}


def nothing_known(*_: object, **__: object) -> Release:
    raise UsageError("no release")


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Contents]:
    def contents(path: Path, platform: str | None = None) -> Contents:
        cache = tmp_path / "cache"
        return contents_of_archive(path, cache, Claims(nothing_known, cache), platform=platform)

    return contents


def saved(folder: Path) -> Path:
    return docker_save(folder / "saved.tar", [BASE, SIX_1])


def layout_folder(folder: Path) -> Path:
    return oci_folder(folder / "layout", oci_files(AMD64))


def layout_tar(folder: Path) -> Path:
    return oci_tar(folder / "layout.tar", oci_files(AMD64))


def saved_by_25(folder: Path) -> Path:
    """Both forms in one tar, with blobs that are not compressed."""
    files = oci_files(AMD64, compress=bytes)
    blobs = [f"blobs/sha256/{digest(layer)[7:]}" for layer in (BASE, SIX_1)]
    config = f"blobs/sha256/{digest(config_of([BASE, SIX_1]))[7:]}"
    manifest = json.dumps([{"Config": config, "RepoTags": None, "Layers": blobs}]).encode()
    return oci_tar(folder / "both.tar", files | {"manifest.json": manifest})


@pytest.mark.parametrize("form", [saved, layout_folder, layout_tar, saved_by_25])
def test_every_form_holds_the_same(form: Callable[[Path], Path], tmp_path: Path, read: Callable[..., Contents]) -> None:
    for _ in range(2):  # the second time the layers are remembered
        found = read(form(tmp_path))
        assert {item.name: item.version for item in (found.distributions or {}).values()} == {"six": "1.16.0"}
        assert [layer.identity for layer in found.layers or ()] == [digest(BASE), digest(SIX_1)]
        assert [layer.title for layer in found.layers or ()] == ["step 1", "step 2"]
        assert found.platform == "linux/amd64"
        assert found.components is None
        assert "not built by lj-image" in found.notes[0]


def test_sizes_are_those_in_the_archive(tmp_path: Path, read: Callable[..., Contents]) -> None:
    unpacked, compressed = read(saved(tmp_path)), read(layout_tar(tmp_path))
    assert (unpacked.measure, [layer.size_bytes for layer in unpacked.layers or ()]) == (
        "unpacked",
        [len(BASE), len(SIX_1)],
    )
    assert (compressed.measure, [layer.size_bytes for layer in compressed.layers or ()]) == (
        "compressed",
        [len(gzip.compress(layer, mtime=0)) for layer in (BASE, SIX_1)],
    )


def test_two_archives_are_compared_to_the_file(tmp_path: Path, read: Callable[..., Contents]) -> None:
    newer = oci_folder(tmp_path / "newer", oci_files({"amd64": ([BASE, SIX_2], {})}))
    found = diff(read(saved(tmp_path)), read(newer), files=True)
    assert [(item.name, item.kind, item.licence_before, item.licence_after) for item in found.distributions or ()] == [
        ("six", "up", "MIT", "BSD")
    ]
    assert found.layers is not None
    assert (found.layers.in_place, found.layers.pull.by_position_bytes) == (1, len(gzip.compress(SIX_2, mtime=0)))
    assert [(item.path.rpartition("site-packages/")[2], item.kind) for item in found.files or ()] == [
        ("six-1.16.0.dist-info/METADATA", "removed"),
        ("six-1.17.0.dist-info/METADATA", "added"),
        ("six/__init__.py", "changed"),
    ]


def test_the_platform_chooses_among_several(tmp_path: Path, read: Callable[..., Contents]) -> None:
    both = oci_folder(tmp_path / "both", oci_files(AMD64 | {"arm64": ([BASE], {})}))
    assert read(both).platform == "linux/amd64"
    assert read(both, "linux/arm64").platform == "linux/arm64"
    with pytest.raises(UsageError, match=r"holds no images for linux/arm64; it holds linux/amd64"):
        read(layout_folder(tmp_path), "linux/arm64")


def test_attestations_are_no_images_and_an_index_may_name_an_index(
    tmp_path: Path, read: Callable[..., Contents]
) -> None:
    files = oci_files(AMD64)
    inner = json.loads(files["index.json"])
    said_of_it = {"vnd.docker.reference.type": "attestation-manifest"}
    inner["manifests"].append({"digest": "sha256:" + "0" * 64, "size": 500, "annotations": said_of_it})
    text = json.dumps(inner).encode()
    files[f"blobs/sha256/{digest(text)[7:]}"] = text
    described = {"digest": digest(text), "size": len(text), "mediaType": "application/vnd.oci.image.index.v1+json"}
    outer = {"manifests": [described]}
    assert read(oci_folder(tmp_path / "l", files | {"index.json": json.dumps(outer).encode()})).distributions


def damaged(error: LjImageError, *words: str) -> bool:
    return all(word in error.message for word in (*words, "damaged")) and error.hint == "save or copy it again"


@pytest.mark.parametrize("kept_bytes", [0, 300, 700, 12_000])
def test_a_tar_that_ends_early_is_damaged(kept_bytes: int, tmp_path: Path, read: Callable[..., Contents]) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(ArtifactError) as raised:
        read(path)
    assert damaged(raised.value, "not a whole tar")


def test_a_missing_blob_is_named(tmp_path: Path, read: Callable[..., Contents]) -> None:
    files = oci_files(AMD64)
    name = f"blobs/sha256/{digest(gzip.compress(SIX_1, mtime=0))[7:]}"
    del files[name]
    for path in (oci_folder(tmp_path / "l", files), oci_tar(tmp_path / "l.tar", files)):
        with pytest.raises(ArtifactError) as raised:
            read(path)
        assert damaged(raised.value, f"{name} is missing")


@pytest.mark.parametrize("remembered", [False, True])
def test_a_layer_with_another_content_is_found_out(
    remembered: bool, tmp_path: Path, read: Callable[..., Contents]
) -> None:
    files = oci_files(AMD64)
    if remembered:
        read(oci_folder(tmp_path / "good", files))
    name = f"blobs/sha256/{digest(gzip.compress(SIX_1, mtime=0))[7:]}"
    with pytest.raises(ArtifactError) as raised:
        read(oci_folder(tmp_path / "bad", files | {name: gzip.compress(tar_of(distribution("six", "6.6.6")))}))
    assert damaged(raised.value, "another digest" if remembered else "another content")
    with pytest.raises(ArtifactError) as raised:
        read(oci_folder(tmp_path / "bad", files | {name: files[name][:-40]}))
    assert damaged(raised.value)


def test_a_manifest_with_another_content_is_found_out(tmp_path: Path, read: Callable[..., Contents]) -> None:
    files = oci_files(AMD64)
    manifest = json.loads(files["index.json"])["manifests"][0]["digest"]
    with pytest.raises(ArtifactError) as raised:
        read(oci_folder(tmp_path / "l", files | {f"blobs/sha256/{manifest[7:]}": b"{}"}))
    assert damaged(raised.value, "another digest")


@pytest.mark.parametrize("index", [b"{", b"[]", b'{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}'])
def test_an_index_that_is_none_is_damage(index: bytes, tmp_path: Path, read: Callable[..., Contents]) -> None:
    with pytest.raises(ArtifactError) as raised:
        read(oci_folder(tmp_path / "l", oci_files(AMD64) | {"index.json": index}))
    assert damaged(raised.value, "a manifest or configuration cannot be read")


def test_layers_in_zstd_are_read(tmp_path: Path, read: Callable[..., Contents]) -> None:
    found = read(oci_folder(tmp_path / "l", oci_files(AMD64, compress=zstandard.compress)))
    assert [layer.identity for layer in found.layers or ()] == [digest(BASE), digest(SIX_1)]
    assert found.measure == "compressed"
    assert found.distributions


def test_an_archive_that_is_compressed_as_a_whole_is_to_be_unpacked(
    tmp_path: Path, read: Callable[..., Contents]
) -> None:
    path = tmp_path / "saved.tar.gz"
    path.write_bytes(gzip.compress(saved(tmp_path).read_bytes()))
    with pytest.raises(UsageError) as raised:
        read(path)
    assert f"gunzip {path}" in str(raised.value.hint)


def test_another_tar_or_folder_is_no_image(tmp_path: Path, read: Callable[..., Contents]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.tar").write_bytes(BASE)
    for path in (tmp_path / "empty", tmp_path / "x.tar"):
        with pytest.raises(UsageError, match="no saved image"):
            read(path)


def test_several_saved_images_are_named(tmp_path: Path, read: Callable[..., Contents]) -> None:
    manifest = [{"Config": "c", "RepoTags": ["a:1"], "Layers": []}, {"Config": "d", "RepoTags": ["b:2"], "Layers": []}]
    path = tmp_path / "x.tar"
    path.write_bytes(tar_of({"manifest.json": json.dumps(manifest).encode()}))
    with pytest.raises(UsageError, match=r"2 images: a:1, b:2"):
        read(path)
