"""Content written as a layout: readable by others, the same bytes each time, gone on with where a try ended."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lj_image.errors import ArtifactError, LjImageError, UsageError
from lj_image.oci import exporting
from lj_image.oci.content import Blob, Content, content_of
from lj_image.oci.exporting import Exported, export_folder, export_tar
from lj_image.oci.layout import Layout
from lj_image.oci.layout_content import content_in
from samples.images import image, sha256

NAMES = ({"org.opencontainers.image.ref.name": "25.02", "a.note": "b"},)


def unwatched(by_bytes: int) -> None:
    """See nothing."""


def by_tar(content: Content, path: Path) -> Exported:
    return export_tar(content, path / "image.tar", NAMES, unwatched)


def by_folder(content: Content, path: Path) -> Exported:
    return export_folder(content, path / "image", NAMES, unwatched)


@pytest.fixture
def content(tmp_path: Path) -> Content:
    return content_of(image(tmp_path / "source"))


class Cut(Exception):
    """The process ends here."""


def cut_after(content: Content, count: int) -> Content:
    """Return content whose largest blob cannot be read beyond so many bytes."""
    big = largest(content)

    class Stream(io.BytesIO):
        def read(self, size: Any = -1, /) -> bytes:
            if block := super().read(min(size, 1000)):
                return block
            raise Cut

    def open_at(offset: int) -> Stream:
        with big.open_at(0) as stream:
            return Stream(stream.read(count)[offset:])

    return with_blob(content, replace(big, open_at=open_at))


def largest(content: Content) -> Blob:
    return max(content.blobs, key=lambda blob: blob.descriptor.size_bytes)


def with_blob(content: Content, blob: Blob) -> Content:
    blobs = (blob if item.descriptor == blob.descriptor else item for item in content.blobs)
    return replace(content, blobs=tuple(blobs))


def opened_at(content: Content, seen: list[int]) -> Content:
    """Return content that notes the offsets at which its largest blob is opened."""
    big = largest(content)

    def open_at(offset: int) -> Any:
        seen.append(offset)
        return big.open_at(offset)

    return with_blob(content, replace(big, open_at=open_at))


@pytest.mark.parametrize("write", [by_tar, by_folder])
def test_what_is_written_is_read_back_as_the_same_content(
    content: Content, tmp_path: Path, write: Callable[[Content, Path], Exported]
) -> None:
    done = write(content, tmp_path)
    found = content_in(done.path, "25.02")
    assert [item.content for item in found.documents] == [item.content for item in content.documents]
    assert {blob.descriptor.digest for blob in found.blobs} == {blob.descriptor.digest for blob in content.blobs}
    assert (done.written_bytes, done.kept_bytes) == (content.size_bytes, 0)


def test_a_tar_holds_a_valid_layout_with_its_notes(content: Content, tmp_path: Path) -> None:
    path = by_tar(content, tmp_path).path
    with tarfile.open(path) as tar:
        assert tar.getnames()[:2] == ["oci-layout", "index.json"]
        tar.extractall(tmp_path / "unpacked", filter="data")
    layout = Layout.open(tmp_path / "unpacked")
    layout.validate()
    assert layout.references()["25.02"].annotations["a.note"] == "b"
    assert path.stat().st_mode & 0o777 == 0o644


def test_the_same_content_gives_the_same_bytes_also_in_two_tries(content: Content, tmp_path: Path) -> None:
    whole = by_tar(content, tmp_path / "whole").path.read_bytes()
    assert by_tar(content, tmp_path / "again").path.read_bytes() == whole
    with pytest.raises(Cut):
        by_tar(cut_after(content, 1500), tmp_path / "cut")
    assert [path.name for path in (tmp_path / "cut").iterdir()] == [".image.tar.partial"]
    assert by_tar(content, tmp_path / "cut").path.read_bytes() == whole
    assert [path.name for path in (tmp_path / "cut").iterdir()] == ["image.tar"]


def test_a_second_try_reads_no_more_of_the_source_than_is_missing(content: Content, tmp_path: Path) -> None:
    with pytest.raises(Cut):
        by_tar(cut_after(content, 1500), tmp_path)
    seen: list[int] = []
    done = by_tar(opened_at(content, seen), tmp_path)
    (offset,) = seen
    assert 0 < offset <= 1500
    assert done.kept_bytes >= offset


def test_a_damaged_beginning_is_written_anew(content: Content, tmp_path: Path) -> None:
    with pytest.raises(Cut):
        by_tar(cut_after(content, 1500), tmp_path)
    partial = tmp_path / ".image.tar.partial"
    kept = partial.read_bytes()
    partial.write_bytes(kept[:-10] + b"##########")
    seen: list[int] = []
    done = by_tar(opened_at(content, seen), tmp_path)
    assert seen[-1] == 0
    assert done.path.read_bytes() == by_tar(content, tmp_path / "whole").path.read_bytes()


def test_the_beginning_of_another_image_is_not_gone_on_with(content: Content, tmp_path: Path) -> None:
    (tmp_path / ".image.tar.partial").write_bytes(bytes(100_000))
    written = by_tar(content, tmp_path).path.read_bytes()
    assert written == by_tar(content, tmp_path / "whole").path.read_bytes()


@pytest.mark.parametrize("write", [by_tar, by_folder])
def test_a_blob_of_other_bytes_is_an_error_and_nothing_appears(
    content: Content, tmp_path: Path, write: Callable[[Content, Path], Exported]
) -> None:
    big = largest(content)
    size = big.descriptor.size_bytes
    false = replace(big, open_at=lambda offset: io.BytesIO(bytes(size)[offset:]))
    with pytest.raises(ArtifactError, match=r"came as|other bytes"):
        write(with_blob(content, false), tmp_path / "out")
    assert not (tmp_path / "out/image.tar").exists()
    assert not list((tmp_path / "out").rglob(big.descriptor.digest.hex))
    assert content_in(write(content, tmp_path / "out").path).root.content == content.root.content


def test_a_folder_keeps_what_it_has_and_mends_what_is_damaged(content: Content, tmp_path: Path) -> None:
    folder = by_folder(content, tmp_path).path
    assert by_folder(content, tmp_path).written_bytes == 0
    blob = folder / "blobs/sha256" / largest(content).descriptor.digest.hex
    blob.chmod(0o644)
    blob.write_bytes(b"damaged")
    assert by_folder(content, tmp_path).written_bytes == largest(content).descriptor.size_bytes
    assert sha256(blob.read_bytes()) == blob.name


def test_a_second_image_in_a_folder_adds_only_the_blobs_that_are_new(content: Content, tmp_path: Path) -> None:
    folder = by_folder(content, tmp_path).path
    following = content_of(image(tmp_path / "source", cmd=("another",)))
    done = export_folder(following, folder, ({"org.opencontainers.image.ref.name": "25.03"},), unwatched)
    assert done.kept_bytes > 10 * done.written_bytes
    Layout.open(folder).validate()
    assert [content_in(folder, name).root.content for name in ("25.02", "25.03")] == [
        content.root.content,
        following.root.content,
    ]


def test_the_watch_has_seen_each_byte_once_in_the_end(content: Content, tmp_path: Path) -> None:
    seen: list[int] = []
    export_tar(content, tmp_path / "a.tar", NAMES, seen.append)
    assert sum(seen) == content.size_bytes
    (tmp_path / ".b.tar.partial").write_bytes((tmp_path / "a.tar").read_bytes()[:-40_000] + bytes(20_000))
    seen.clear()
    export_tar(content, tmp_path / "b.tar", NAMES, seen.append)
    assert sum(seen) == content.size_bytes


def test_two_exports_do_not_write_one_file(content: Content, tmp_path: Path) -> None:
    def inside(by_bytes: int) -> None:
        with pytest.raises(UsageError, match="another export writes"):
            by_tar(content, tmp_path)

    export_tar(content, tmp_path / "image.tar", NAMES, inside)


def test_a_disk_that_is_too_small_is_found_before_a_blob_is_read(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 1000))  # type: ignore[attr-defined]
    seen: list[int] = []
    for write in (by_tar, by_folder):
        with pytest.raises(LjImageError, match="has room for 1,000 bytes, and") as raised:
            write(opened_at(content, seen), tmp_path)
        assert raised.value.hint
    assert seen == []
