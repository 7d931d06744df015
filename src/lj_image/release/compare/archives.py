"""What lies on disk as one side: what `docker save` writes, an OCI layout, or an image in the cache's own layout."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lj_image.errors import ArtifactError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest, digest_of_stream
from lj_image.oci.media_types import MediaType
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage, SourceLayer, image_in
from lj_image.oci.tars import NotATarError
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.tree import LayerTree


@dataclass(frozen=True, slots=True)
class FilesSide:
    """An image in files."""

    name: str
    where: str
    """Its path, for messages."""
    image: SourceImage

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        return self.image.settings.fields

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Of its layers, from the lowest on."""
        return tuple(str(layer.diff_id) for layer in self.image.layers)

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield the wanted layers; raises ArtifactError for one that is missing, damaged, or another."""
        found = {diff_id: layer for layer in self.image.layers if (diff_id := str(layer.diff_id)) in wanted}
        for diff_id, layer in found.items():
            yield diff_id, _scanned(layer, self.where)


def archive_side(path: Path, platform: str | None) -> FilesSide:
    """Open an archive; `platform` chooses among several images.

    Raises ArtifactError for one that is damaged, UsageError for one that holds no such image or several.
    """
    return FilesSide(f"archive {path}", str(path), open_image(path, Platform.parse(platform) if platform else None))


def cached_side(folder: Path, manifest: str, name: str) -> FilesSide:
    """Open an image among the blobs of a layout, by its manifest's digest; raises ArtifactError for a damaged one."""
    blobs, digest = BlobStore(folder), Digest.parse(manifest)
    described = Descriptor(MediaType.OCI_MANIFEST, digest, blobs.size_bytes(digest))
    return FilesSide(name, str(folder), image_in(blobs, described, name))


def _scanned(layer: SourceLayer, where: str) -> LayerTree:
    """Read a layer; every byte is held against what it has to be."""
    if layer.descriptor is not None:
        with layer.open() as file:
            if digest_of_stream(file)[0] != layer.descriptor.digest:
                raise _damaged(where, f"the layer {layer.descriptor.digest} has another digest")
    try:
        with layer.open() as file:
            found, tree = scan_layer(file)
    except (NotATarError, zlib.error, ValueError) as error:
        raise _damaged(where, f"the layer {layer.diff_id} is no tar ({error})") from None
    if found != str(layer.diff_id):
        raise _damaged(where, f"the layer {layer.diff_id} has another content")
    return tree


def _damaged(where: str, how: str) -> ArtifactError:
    return ArtifactError(f"{where} is damaged: {how}", hint="save, copy or build it again")
