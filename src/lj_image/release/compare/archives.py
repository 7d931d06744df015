"""What lies on disk as one side: what `docker save` writes, an OCI layout, or an image in the cache's own layout."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.digest import Digest, digest_of_stream
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.manifest import Manifest
from lj_image.oci.tars import NotATarError
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.tree import LayerTree
from lj_image.release.diff import archives

_ZSTD: Final = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class ArchiveSide:
    """An image of an archive."""

    path: Path
    image: archives.SavedImage

    @property
    def name(self) -> str:
        """As it was named."""
        return f"archive {self.path}"

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        return self.image.config

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Of its layers, from the lowest on."""
        return tuple(blob.diff_id for blob in self.image.blobs)

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield the wanted layers; raises ArtifactError for one that is damaged, or another than it should be."""
        found = {blob.diff_id: blob for blob in self.image.blobs if blob.diff_id in wanted}
        with archives._damage_explained(self.path), archives._opened(self.path) as entries:
            for blob in found.values():
                with entries.open(blob.entry) as file:
                    yield blob.diff_id, _scanned(file, blob.diff_id, blob.digest, str(self.path))


def archive_side(path: Path, platform: str | None) -> ArchiveSide:
    """Open an archive; `platform` chooses among several images.

    Raises ArtifactError for one that is damaged, UsageError for one that holds no such image or several.
    """
    with archives._damage_explained(path), archives._opened(path) as entries:
        image = archives._oci_image(entries, path, platform) or archives._docker_image(entries, path)
    if image is None:
        raise UsageError(
            f"{path} is no saved image: it has neither an index.json nor a manifest.json",
            hint="write one with: docker save NAME:TAG -o FILE",
        )
    return ArchiveSide(path, image)


@dataclass(frozen=True, slots=True)
class BlobsSide:
    """An image that was assembled without an engine, as it lies in the cache."""

    name: str
    blobs: BlobStore
    manifest: Manifest
    image: ImageConfig

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        return self.image.fields

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Of its layers, from the lowest on."""
        return tuple(map(str, self.image.diff_ids))

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield the wanted layers; raises ArtifactError for one that is missing, damaged, or another."""
        pairs = dict(zip(self.diff_ids, self.manifest.layers, strict=True))
        for diff_id in wanted & pairs.keys():
            digest = pairs[diff_id].digest
            with self.blobs.open(digest) as file:
                yield diff_id, _scanned(file, diff_id, str(digest), str(self.blobs.path(digest)))


def cached_side(folder: Path, manifest: str, name: str) -> BlobsSide:
    """Open an image among the blobs of a layout, by its manifest's digest; raises ArtifactError for a damaged one."""
    blobs = BlobStore(folder)
    read = Manifest.parse(blobs.read(Digest.parse(manifest)), f"the manifest {manifest}")
    image = ImageConfig.parse(blobs.read(read.config.digest), f"the configuration {read.config.digest}")
    if len(image.diff_ids) != len(read.layers):
        raise _damaged(str(folder), f"{manifest} has {len(read.layers)} layers, its configuration another number")
    return BlobsSide(name, blobs, read, image)


def _scanned(file: BinaryIO, diff_id: str, digest: str | None, where: str) -> LayerTree:
    """Read a layer; every byte is held against what it has to be. `digest` is that of the file, if it is known."""
    if file.read(len(_ZSTD)) == _ZSTD:
        raise ArtifactError(
            f"{where}: the layer {diff_id} is compressed with zstd, which lj-image does not read",
            hint="copy the image with gzip layers, or load it into an engine and save it there",
        )
    file.seek(0)
    if digest is not None and str(digest_of_stream(file)[0]) != digest:
        raise _damaged(where, f"the layer {digest} has another digest")
    file.seek(0)
    try:
        found, tree = scan_layer(file)
    except (NotATarError, zlib.error, ValueError) as error:
        raise _damaged(where, f"the layer {diff_id} is no tar ({error})") from None
    if found != diff_id:
        raise _damaged(where, f"the layer {diff_id} has another content")
    return tree


def _damaged(where: str, how: str) -> ArtifactError:
    return ArtifactError(f"{where} is damaged: {how}", hint="save, copy or build it again")
