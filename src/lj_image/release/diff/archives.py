"""An archive on disk -> Contents: what `docker save` writes, or an OCI layout as a folder or tar."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.streams import BLOCK_BYTES
from lj_image.oci.tars import NotATarError
from lj_image.release.diff.claims import Claims
from lj_image.release.diff.contents import Contents, LayerFact
from lj_image.release.diff.layered import SelfDescription, contents_of_layers, step_titles
from lj_image.release.diff.scan import LayerFiles, LayerMemory, scan_layer

_GZIP: Final = b"\x1f\x8b"
_TAR_BLOCK_BYTES: Final = 512
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_ATTESTATION: Final = "vnd.docker.reference.type"
"""The annotation of a manifest that is no image but says something about one (BuildKit, attestation storage)."""
_INDEX: Final = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")


class Entries(Protocol):
    """Named entries of an archive, in any order."""

    def has(self, name: str) -> bool:
        """Say whether there is an entry of this name."""

    def open(self, name: str) -> BinaryIO:
        """Open an entry; raises KeyError where there is none."""


@dataclass(frozen=True)
class FolderEntries:
    """An OCI layout as a folder."""

    folder: Path

    def has(self, name: str) -> bool:
        """Say whether there is a file of this name."""
        return (self.folder / name).is_file()

    def open(self, name: str) -> BinaryIO:
        """Open a file."""
        if not self.has(name):
            raise KeyError(name)
        return (self.folder / name).open("rb")


@dataclass(frozen=True)
class TarEntries:
    """A tar; entries are found by seeking, so nothing of it is unpacked."""

    tar: tarfile.TarFile
    members: Mapping[str, tarfile.TarInfo]

    def has(self, name: str) -> bool:
        """Say whether there is an entry of this name."""
        return name in self.members

    def open(self, name: str) -> BinaryIO:
        """Open an entry, through a link if it is one."""
        content = self.tar.extractfile(self.members[name])
        if content is None:
            raise KeyError(name)
        return content  # type: ignore[return-value]  # IO[bytes], which reads as well


@dataclass(frozen=True, slots=True)
class Blob:
    """Where a layer lies in an archive, and what it has to be."""

    entry: str
    diff_id: str
    digest: str | None
    """Of the entry's bytes; None where only the diff id is said."""


@dataclass(frozen=True, slots=True)
class ReadBlob:
    """A layer as it lies in an archive."""

    layer: LayerFiles
    size_bytes: int
    compressed: bool


@dataclass(frozen=True, slots=True)
class SavedImage:
    """One image of an archive."""

    image_id: str
    config: Mapping[str, Any]
    blobs: tuple[Blob, ...]


def contents_of_archive(path: Path, cache_dir: Path, claims: Claims, *, platform: str | None = None) -> Contents:
    """Read an archive; `platform` chooses among several images.

    Raises ArtifactError for one that is damaged, UsageError for one that holds no such image or several.
    """
    memory = LayerMemory(cache_dir)
    with _damage_explained(path), _opened(path) as entries:
        image = _oci_image(entries, path, platform) or _docker_image(entries, path)
        if image is None:
            raise UsageError(
                f"{path} is no saved image: it has neither an index.json nor a manifest.json",
                hint="write one with: docker save NAME:TAG -o FILE",
            )
        read = [_read(entries, blob, memory, path) for blob in image.blobs]
        said, steps = _said(image, path, compressed=bool(read) and all(blob.compressed for blob in read)), _steps(image)
    titles = step_titles(steps, len(read))
    facts = (LayerFact(blob.layer.diff_id, title, blob.size_bytes) for blob, title in zip(read, titles, strict=True))
    return contents_of_layers(said, [blob.layer for blob in read], facts, claims)


def _said(image: SavedImage, path: Path, *, compressed: bool) -> SelfDescription:
    config = image.config
    return SelfDescription(
        name=f"archive {path}",
        short=path.name,
        kind="archive",
        image_id=image.image_id,
        platform=f"{config.get('os', 'linux')}/{config.get('architecture', 'unknown')}",
        labels=(config.get("config") or {}).get("Labels") or {},
        measure="compressed" if compressed else "unpacked",
    )


def _steps(image: SavedImage) -> tuple[str, ...]:
    """Return what made each layer, from the lowest on; nothing where the history is not kept."""
    history = image.config.get("history") or ()
    return tuple(item.get("created_by", "") for item in history if not item.get("empty_layer"))


@contextmanager
def _opened(path: Path) -> Iterator[Entries]:
    if path.is_dir():
        yield FolderEntries(path)
        return
    with path.open("rb") as file:
        start = file.read(len(_ZSTD))
        file.seek(max(0, path.stat().st_size - _TAR_BLOCK_BYTES))
        end = file.read()
    if start.startswith((_GZIP, _ZSTD)):
        raise UsageError(
            f"{path} is compressed as a whole, so its entries cannot be found without reading all of it",
            hint=f"unpack it first: {'gunzip' if start.startswith(_GZIP) else 'unzstd'} {path}",
        )
    with tarfile.open(path, "r:") as tar:
        if end.strip(b"\0"):  # POSIX: two blocks of zeros end it; tarfile takes a cut header for the end, too
            raise tarfile.ReadError("unexpected end of data")
        yield TarEntries(tar, {item.name.removeprefix("./"): item for item in tar.getmembers()})


@contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    """Turn whatever a broken archive does to its readers into an ArtifactError."""
    try:
        yield
    except tarfile.ReadError as error:
        raise _damaged(path, f"not a whole tar ({error})") from None
    except KeyError as error:
        raise _damaged(path, f"{error.args[0]} is missing") from None
    except (NotATarError, zlib.error) as error:
        raise _damaged(path, f"a layer is no tar ({error})") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise _damaged(path, f"a manifest or configuration cannot be read ({error})") from None


def _damaged(path: Path, how: str) -> ArtifactError:
    return ArtifactError(f"{path} is damaged: {how}", hint="save or copy it again")


def _docker_image(entries: Entries, path: Path) -> SavedImage | None:
    """Read manifest.json of `docker save` (moby, image/spec/v1.2.md, "Combined Image JSON + Filesystem Changeset")."""
    if not entries.has("manifest.json"):
        return None
    manifests = json.loads(_bytes(entries, "manifest.json"))
    if len(manifests) != 1:
        names = ", ".join(tag for item in manifests for tag in item["RepoTags"] or ())
        raise UsageError(f"{path} holds {len(manifests)} images: {names}", hint="save the one to compare by itself")
    text = _bytes(entries, manifests[0]["Config"])
    config = json.loads(text)
    pairs = zip(manifests[0]["Layers"], config["rootfs"]["diff_ids"], strict=True)
    blobs = tuple(Blob(entry, diff_id, None) for entry, diff_id in pairs)
    return SavedImage(f"sha256:{hashlib.sha256(text).hexdigest()}", config, blobs)


def _oci_image(entries: Entries, path: Path, platform: str | None) -> SavedImage | None:
    """Read index.json (OCI image spec, image-layout.md)."""
    if not entries.has("index.json"):
        return None
    index = json.loads(_bytes(entries, "index.json"))
    found = dict(_manifests(entries, index, path))
    if not found and entries.has("manifest.json"):
        return None
    wanted = {digest: of for digest, of in found.items() if platform is None or of in (platform, "")}
    if platform is None and len(found) > 1:
        wanted = {digest: of for digest, of in found.items() if of == "linux/amd64"}
    if len(wanted) != 1:
        known = ", ".join(of or "an image without a platform" for of in found.values()) or "nothing"
        raise UsageError(
            f"{path} holds {len(wanted) or 'no'} images for {platform or 'linux/amd64'}; it holds {known}",
            hint="name one with --platform, or save the image to compare by itself",
        )
    return _saved(entries, next(iter(wanted)), path)


def _manifests(entries: Entries, index: Mapping[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    """Yield digest and platform of each image in an index, and in those that it names."""
    for item in index["manifests"]:
        if _ATTESTATION in (item.get("annotations") or {}):
            continue
        if item.get("mediaType") in _INDEX:
            yield from _manifests(entries, json.loads(_verified(entries, item["digest"], path)), path)
            continue
        named = item.get("platform") or {}
        yield item["digest"], f"{named['os']}/{named['architecture']}" if named else ""


def _saved(entries: Entries, digest: str, path: Path) -> SavedImage:
    manifest = json.loads(_verified(entries, digest, path))
    image_id = manifest["config"]["digest"]
    config = json.loads(_verified(entries, image_id, path))
    pairs = zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True)
    blobs = tuple(Blob(_entry(item["digest"]), diff_id, item["digest"]) for item, diff_id in pairs)
    return SavedImage(image_id, config, blobs)


def _entry(digest: str) -> str:
    """Return the name of a blob; a digest becomes part of a path, so nothing else may."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"no digest of ours: {digest!r}")
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _bytes(entries: Entries, name: str) -> bytes:
    with entries.open(name) as file:
        return file.read()


def _verified(entries: Entries, digest: str, path: Path) -> bytes:
    text = _bytes(entries, _entry(digest))
    if f"sha256:{hashlib.sha256(text).hexdigest()}" != digest:
        raise _damaged(path, f"the blob {digest} has another digest")
    return text


def _read(entries: Entries, blob: Blob, memory: LayerMemory, path: Path) -> ReadBlob:
    """Read a layer, or remember it; every byte is held against what the archive says that it is."""
    with entries.open(blob.entry) as file:
        start, size_bytes = file.read(len(_ZSTD)), file.seek(0, 2)
        if start == _ZSTD:
            raise ArtifactError(
                f"{path}: the layer {blob.diff_id} is compressed with zstd, which lj-image does not read",
                hint="copy the image with gzip layers, or load it into an engine and save it there",
            )
        compressed = start.startswith(_GZIP)
        expected = blob.digest or (None if compressed else blob.diff_id)
        layer = memory.read(blob.diff_id) if expected else None
        file.seek(0)
        if layer is None:
            layer = scan_layer(file)
            memory.write(layer)
        elif _sha256(file) != expected:
            raise _damaged(path, f"the layer {expected} has another digest")
    if layer.diff_id != blob.diff_id:
        raise _damaged(path, f"the layer {blob.diff_id} has another content")
    return ReadBlob(layer, size_bytes, compressed)


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"
