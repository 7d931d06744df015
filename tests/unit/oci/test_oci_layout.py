"""Blobs and layouts on disk."""

from __future__ import annotations

import errno
import io
import json
import stat
import threading
from pathlib import Path

import pytest

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.copying import copy_index_into, copy_into
from lj_image.oci.descriptor import descriptor_of
from lj_image.oci.digest import Digest
from lj_image.oci.layout import Layout
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import image_in
from lj_image.oci.validate import validate
from samples.images import AMD64, ARM64, LAYERS, gzipped, image, sha256


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if "partial" in path.name]


def test_a_blob_lies_under_its_digest_and_nobody_may_write_it(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    digest = store.put(b"hello\n")
    path = tmp_path / "blobs" / "sha256" / sha256(b"hello\n")
    assert path.read_bytes() == store.read(digest) == store.open(digest).read() == b"hello\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert (store.has(digest), store.size_bytes(digest)) == (True, 6)
    assert store.put(b"hello\n") == digest


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)

    class Cut:
        def read(self, size: int, /) -> bytes:
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        store.receive(Cut(), Digest(sha256(b"x")), 1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_other_bytes_than_promised_do_not_become_a_blob(tmp_path: Path) -> None:
    store, digest = BlobStore(tmp_path), Digest(sha256(b"promised"))
    for content, size_bytes in ((b"delivered", 9), (b"promise", 8), (b"promised", 7)):
        with pytest.raises(ArtifactError, match="came as"):
            store.receive(io.BytesIO(content), digest, size_bytes)
    assert not store.has(digest)
    assert leftovers(tmp_path) == []
    store.receive(io.BytesIO(b"promised"), digest, 8)
    assert store.read(digest) == b"promised"


def test_a_finished_file_moves_in_and_another_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, digest = BlobStore(tmp_path / "store"), Digest(sha256(b"x"))
    file = tmp_path / "file"
    file.write_bytes(b"x")
    store.adopt(file, digest)
    assert not file.exists()
    other = BlobStore(tmp_path / "other")
    for _ in range(2):
        other.link(store.path(digest), digest)
    assert other.path(digest).samefile(store.path(digest))
    monkeypatch.setattr(Path, "hardlink_to", refused)
    copies = BlobStore(tmp_path / "copies")
    copies.link(store.path(digest), digest)
    assert not copies.path(digest).samefile(store.path(digest))
    assert copies.read(digest) == b"x"
    assert leftovers(tmp_path) == []


def refused(*_: object) -> None:
    raise OSError(errno.EXDEV, "another file system")


def test_a_file_of_another_file_system_is_copied_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, digest, file = BlobStore(tmp_path / "store"), Digest(sha256(b"x")), tmp_path / "file"
    file.write_bytes(b"x")
    replace = Path.replace

    def refused_from_outside(self: Path, target: Path) -> Path:
        if self == file:
            raise OSError(errno.EXDEV, "another file system")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refused_from_outside)
    store.adopt(file, digest)
    assert store.read(digest) == b"x"
    assert not file.exists()


def test_a_missing_and_a_damaged_blob_are_told_with_their_place(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    digest = Digest(sha256(b"x"))
    for ask in (store.open, store.read, store.size_bytes):
        with pytest.raises(ArtifactError, match=f"{digest} is missing"):
            ask(digest)
    store.path(digest).parent.mkdir(parents=True)
    store.path(digest).write_bytes(b"y")
    with pytest.raises(ArtifactError, match="another digest") as raised:
        store.read(digest)
    assert str(store.path(digest)) in str(raised.value.location)


def test_a_layout_holds_what_was_copied_into_it(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path / "layout")
    wanted = image(tmp_path / "blobs")
    copied = copy_into(layout, wanted, "25.02")
    copy_into(Layout.create(tmp_path / "layout"), wanted, "latest")
    assert json.loads((tmp_path / "layout" / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((tmp_path / "layout" / "index.json").read_text())
    assert [item["annotations"] for item in index["manifests"]] == [
        {"org.opencontainers.image.ref.name": "25.02"},
        {"org.opencontainers.image.ref.name": "latest"},
    ]
    assert {path.name for path in (tmp_path / "layout" / "blobs" / "sha256").iterdir()} == {
        *(sha256(gzipped(layer)) for layer in LAYERS),
        sha256(wanted.config),
        sha256(wanted.manifest or b""),
    }
    layout.validate()
    validate(image_in(layout.blobs, layout.references()["25.02"], "25.02"))
    assert copied.digest == layout.references()["latest"].digest


def test_a_name_that_moves_leaves_the_old_entry(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path)
    for content in (b"one", b"two"):
        layout.blobs.put(content)
        layout.set_reference("v1", descriptor_of(content, MediaType.OCI_MANIFEST))
    assert [str(item.digest)[7:] for item in layout.index().manifests] == [sha256(b"two")]


def test_names_that_are_set_at_once_are_all_there(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path)
    layout.blobs.put(b"m")
    target = descriptor_of(b"m", MediaType.OCI_MANIFEST)
    threads = [threading.Thread(target=layout.set_reference, args=(f"v{number}", target)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(layout.references()) == {f"v{number}" for number in range(20)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "index.json", "oci-layout"]


def test_two_platforms_stand_behind_one_name(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path / "layout")
    every = [image(tmp_path / "blobs", platform=platform) for platform in (AMD64, ARM64)]
    index = copy_index_into(layout, every, "25.02")
    layout.validate()
    assert layout.references()["25.02"].digest == index.digest
    assert index.media_type == "application/vnd.oci.image.index.v1+json"


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/", "a..b", "../x"])
def test_a_name_that_the_format_forbids_is_refused(name: str, tmp_path: Path) -> None:
    layout = Layout.create(tmp_path)
    layout.blobs.put(b"m")
    with pytest.raises(UsageError, match="cannot name an image"):
        layout.set_reference(name, descriptor_of(b"m", MediaType.OCI_MANIFEST))


def test_a_name_for_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="missing"):
        Layout.create(tmp_path).set_reference("v1", descriptor_of(b"m", MediaType.OCI_MANIFEST))


def test_a_folder_of_other_things_becomes_no_layout(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds other things"):
        Layout.create(tmp_path)
    with pytest.raises(UsageError, match="no OCI layout"):
        Layout.open(tmp_path)


def test_a_folder_of_ours_becomes_a_layout_whatever_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "inspected").mkdir()
    assert Layout.create(tmp_path, among_others=True).references() == {}


def test_who_makes_a_layout_second_keeps_what_the_first_has_named(tmp_path: Path) -> None:
    first = Layout.create(tmp_path)
    first.blobs.put(b"m")
    first.set_reference("v1", descriptor_of(b"m", MediaType.OCI_MANIFEST))
    (tmp_path / "oci-layout").unlink()  # as seen by whoever came before it was written
    assert list(Layout.create(tmp_path, among_others=True).references()) == ["v1"]


def test_names_that_are_dropped_stand_for_nothing_and_others_stay(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path)
    layout.blobs.put(b"m")
    for name in ("v1", "v2", "v3"):
        layout.set_reference(name, descriptor_of(b"m", MediaType.OCI_MANIFEST))
    layout.drop_references(["v1", "v3", "unknown"])
    assert list(layout.references()) == ["v2"]


def test_a_layout_of_another_version_or_without_an_index_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "oci-layout").write_text('{"imageLayoutVersion": "2.0.0"}')
    with pytest.raises(ArtifactError, match=r"imageLayoutVersion should be 1\.0\.0"):
        Layout.open(tmp_path)
    (tmp_path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    with pytest.raises(ArtifactError, match=r"index\.json is missing"):
        Layout.open(tmp_path).index()


@pytest.mark.parametrize("fault", ["missing", "digest", "size"])
def test_a_layer_that_is_missing_or_another_is_found(fault: str, tmp_path: Path) -> None:
    layout = Layout.create(tmp_path / "layout")
    copy_into(layout, image(tmp_path / "blobs"), "25.02")
    path = layout.blobs.path(Digest(sha256(gzipped(LAYERS[0]))))
    content = path.read_bytes()
    path.unlink()
    if fault != "missing":
        path.write_bytes(content[:-1] + b"\1" if fault == "digest" else content + b"\1")
    with pytest.raises(ArtifactError, match="missing" if fault == "missing" else "another digest"):
        layout.validate()
