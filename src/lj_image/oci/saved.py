"""An image in files -> SourceImage: what `docker save` writes, or an OCI layout as a folder or a tar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.entries import Entries, damaged, document, entries_of
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.layout import INDEX_FILE, REFERENCE
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import CONFIGS, INDEXES
from lj_image.oci.source import SourceImage, SourceLayer
from lj_image.oci.streams import MAGIC_BYTES, compression_of_start
from lj_image.oci.values import Value

T = TypeVar("T")
DOCKER_FILE: Final = "manifest.json"
CONTAINERD_NAME: Final = "io.containerd.image.name"
"""The annotation of an index's entry by which containerd, and engines on it, name what they load."""
_ATTESTATION: Final = "vnd.docker.reference.type"
"""The annotation of a manifest that is no image but says something about one (BuildKit, attestation storage)."""
_DEFAULT: Final = Platform("linux", "amd64")


def open_image(path: Path, platform: Platform | None = None, reference: str | None = None) -> SourceImage:
    """Open an image; `platform` and `reference` choose among several, linux/amd64 where nothing is said.

    Only documents are read, and the first bytes of each layer. Raises UsageError for what holds no such image or
    several, ArtifactError for what is damaged.
    """
    return image_among(entries_of(path), path, platform, reference)


def image_among(
    entries: Entries, path: Path, platform: Platform | None = None, reference: str | None = None
) -> SourceImage:
    """Open an image among entries, wherever they lie; `path` is what messages name. Raises as `open_image`."""
    archive = _Archive(path, entries)
    found = _oci_image(archive, platform, reference) or _docker_image(archive, reference)
    if found is None:
        raise UsageError(
            f"{path} is no saved image: it has neither an {INDEX_FILE} nor a {DOCKER_FILE}",
            hint="write one with: docker save NAME:TAG -o FILE",
        )
    return found


@dataclass(frozen=True, slots=True)
class _Archive:
    path: Path
    entries: Entries

    def has(self, name: str) -> bool:
        return self.entries.size_bytes(name) is not None

    def read(self, name: str) -> bytes:
        return document(self.entries, name, self.path)

    def verified(self, digest: Digest) -> bytes:
        content = self.read(_entry(digest))
        if Digest.of(content) != digest:
            raise damaged(self.path, f"the blob {digest} has another digest")
        return content

    def parsed(self, parse: Callable[[bytes, str], T], content: bytes, name: str) -> T:
        try:
            return parse(content, name)
        except ArtifactError as error:
            raise damaged(self.path, f"a manifest or configuration cannot be read ({error.message})") from None

    def layer(self, entry: str, diff_id: Digest, descriptor: Descriptor | None) -> SourceLayer:
        size_bytes = self.entries.size_bytes(entry)
        if size_bytes is None:
            raise damaged(self.path, f"{entry} is missing")
        with self.entries.open(entry) as stream:
            compression = compression_of_start(stream.read(MAGIC_BYTES))
        return SourceLayer(diff_id, compression, size_bytes, lambda: self.entries.open(entry), descriptor)

    def require_as_many(self, layers: int, config: ImageConfig) -> None:
        if layers != len(config.diff_ids):
            raise damaged(self.path, f"it has {layers} layers, and its configuration names {len(config.diff_ids)}")


def _entry(digest: Digest) -> str:
    return f"blobs/sha256/{digest.hex}"


def _docker_image(archive: _Archive, reference: str | None) -> SourceImage | None:
    """Read manifest.json of `docker save` (moby, image/spec/v1.2.md, "Combined Image JSON + Filesystem Changeset")."""
    if not archive.has(DOCKER_FILE):
        return None
    saved = _chosen(archive, archive.parsed(_docker_manifests, archive.read(DOCKER_FILE), DOCKER_FILE), reference)
    content = archive.read(saved.config)
    config = archive.parsed(ImageConfig.parse, content, saved.config)
    archive.require_as_many(len(saved.layers), config)
    pairs = zip(saved.layers, config.diff_ids, strict=True)
    return SourceImage(
        str(archive.path), content, tuple(archive.layer(entry, diff_id, None) for entry, diff_id in pairs)
    )


@dataclass(frozen=True, slots=True)
class _DockerManifest:
    config: str
    layers: tuple[str, ...]
    tags: tuple[str, ...]


def _docker_manifests(content: bytes, name: str) -> tuple[_DockerManifest, ...]:
    value = Value.parse_array(content, name)
    return tuple(
        _DockerManifest(item["Config"].text(), item["Layers"].texts(), item["RepoTags"].texts())
        for item in value.items()
    )


def _chosen(archive: _Archive, every: tuple[_DockerManifest, ...], reference: str | None) -> _DockerManifest:
    wanted = [item for item in every if reference is None or reference in item.tags]
    if len(wanted) != 1:
        names = ", ".join(tag for item in every for tag in item.tags)
        count = f"{len(wanted)} images" if wanted else f"no image {reference or ''}".rstrip()
        raise UsageError(f"{archive.path} holds {count}: {names}", hint="name one, or save it by itself")
    return wanted[0]


def _oci_image(archive: _Archive, platform: Platform | None, reference: str | None) -> SourceImage | None:
    """Read index.json (OCI image spec, image-layout.md)."""
    if not archive.has(INDEX_FILE):
        return None
    index = archive.parsed(Index.parse, archive.read(INDEX_FILE), INDEX_FILE)
    named = tuple(item for item in index.manifests if reference is None or reference in _names(item))
    found = dict(_images(archive, named))
    if not found and archive.has(DOCKER_FILE):
        return None
    return _image(archive, _one(archive, found, platform, reference))


def _names(item: Descriptor) -> tuple[str | None, ...]:
    return item.annotations.get(REFERENCE), item.annotations.get(CONTAINERD_NAME)


def _one(
    archive: _Archive,
    found: Mapping[Digest, tuple[Descriptor, Platform]],
    platform: Platform | None,
    reference: str | None,
) -> Descriptor:
    wanted = [item for item, of in found.values() if platform is None or of.serves(platform)]
    if platform is None and len(found) > 1:
        wanted = [item for item, of in found.values() if of.serves(_DEFAULT)]
    if len(wanted) != 1:
        known = ", ".join(map(_shown, found.values())) or "nothing"
        name = f" {reference}" if reference else ""
        raise UsageError(
            f"{archive.path} holds {len(wanted) or 'no'} images{name} for {platform or _DEFAULT}; it holds {known}",
            hint="name one with --platform, or save the image by itself",
        )
    return wanted[0]


def _shown(item: tuple[Descriptor, Platform]) -> str:
    name = item[0].annotations.get(REFERENCE)
    return f"{name} ({item[1]})" if name else str(item[1])


def _images(archive: _Archive, items: tuple[Descriptor, ...]) -> Iterator[tuple[Digest, tuple[Descriptor, Platform]]]:
    """Yield each image of an index, and of those that it names; what is not there or is no image is passed over.

    An engine on containerd saves the index of every platform with the blobs of one.
    """
    present = [item for item in items if archive.has(_entry(item.digest))]
    for item in present or items:
        if _ATTESTATION in item.annotations:
            continue
        if item.media_type in INDEXES:
            inner = archive.parsed(Index.parse, archive.verified(item.digest), str(item.digest))
            yield from _images(archive, inner.manifests)
        elif (platform := item.platform or _stated(archive, item)) is not None:
            yield item.digest, (item, platform)


def _stated(archive: _Archive, item: Descriptor) -> Platform | None:
    """Return the platform that an image's configuration states; None for a manifest that is no image's."""
    manifest = archive.parsed(Manifest.parse, archive.verified(item.digest), str(item.digest))
    if manifest.config.media_type and manifest.config.media_type not in CONFIGS:
        return None
    content = archive.verified(manifest.config.digest)
    return archive.parsed(ImageConfig.parse, content, str(manifest.config.digest)).platform


def _image(archive: _Archive, item: Descriptor) -> SourceImage:
    content = archive.verified(item.digest)
    manifest = archive.parsed(Manifest.parse, content, str(item.digest))
    text = archive.verified(manifest.config.digest)
    config = archive.parsed(ImageConfig.parse, text, str(manifest.config.digest))
    archive.require_as_many(len(manifest.layers), config)
    pairs = zip(manifest.layers, config.diff_ids, strict=True)
    layers = tuple(archive.layer(_entry(layer.digest), diff_id, layer) for layer, diff_id in pairs)
    return SourceImage(str(archive.path), text, layers, content, item)
